# L37: the target is of the state that is updated

# %% mistake
import numpy as np
def learn(env, q, state, alpha, gamma):
    action = int(q[state].argmax())
    next_state, reward, terminated, truncated, _ = env.step(action)
    target = reward + gamma * np.max(q[state])  # here
    q[state, action] += alpha * (target - q[state, action])
    return next_state

# %% mistake
def learn(env, table, s, a, alpha):
    s2, r, end, _ = env.step(a)
    table[s][a] = table[s][a] + alpha * (r + 0.95 * max(table[s]) - table[s][a])  # here
    return s2

# %% right
import numpy as np
def learn(env, q, state, alpha, gamma):
    next_state, reward, terminated, truncated, _ = env.step(0)
    target = reward + gamma * np.max(q[next_state]) * (1 - terminated)
    q[state, 0] += alpha * (target - q[state, 0])
def turned(env, q, s, alpha, gamma):
    s2, r, end, _ = env.step(0)
    before, s = s, s2
    q[before, 0] += alpha * (r + gamma * np.max(q[s]) - q[before, 0])
def planned(q, s, reward, gamma):
    q[s, 0] = reward + gamma * np.max(q[s])
