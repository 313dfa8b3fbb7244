# L42: a table of values keeps whole numbers

# %% mistake
import numpy as np
q = np.zeros((5, 2), dtype=int)  # here
def learn(s, a, r, after, alpha, gamma):
    q[s, a] += alpha * (r + gamma * q[after].max() - q[s, a])

# %% mistake
import numpy as np
class Agent:
    def __init__(self):
        self.table = np.zeros([4, 2], "int32")  # here
    def learn(self, s, a, r, after):
        target = r + self.gamma * np.max(self.table[after])
        self.table[s, a] = r + self.gamma * np.max(self.table[after])

# %% right
import numpy as np
q = np.zeros((5, 2))
visits = np.zeros((5, 2), dtype=int)
def learn(s, a, r, after, gamma):
    visits[s, a] += 1
    q[s, a] += (r + gamma * q[after].max() - q[s, a]) / visits[s, a]
