# L69: the time limit is not reset

# %% mistake
import gymnasium as gym
class Walk(gym.Env):
    def __init__(self):
        self.t = 0
    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return self.place, {}
    def step(self, action):
        self.place += action
        self.t += 1  # here
        return self.place, 0.0, False, self.t >= 100, {}

# %% right
import gymnasium as gym
class Walk(gym.Env):
    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self._begin()
        return 0, {}
    def _begin(self):
        self.t = 0
    def step(self, action):
        self.t += 1
        self.total += 1
        return 0, 0.0, False, self.t >= 100, {"total": self.total}
class Many(gym.Env):
    def reset(self):
        self.t[:] = 0
        self.k.fill(0)
        return 0, {}
    def step(self, action):
        self.t += 1
        self.k += 1
        return 0, 0.0, False, (self.t >= 100) | (self.k > 9), {}
class Again(gym.Env):
    def reset(self):
        self.__init__()
        return 0, {}
    def step(self, action):
        self.t += 1
        return 0, 0.0, False, self.t >= 100, {}
