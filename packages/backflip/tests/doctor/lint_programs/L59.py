# L59: an observation is overwritten after it was returned

# %% mistake
class Stack:
    def step(self, action):
        frame, reward, terminated, truncated, info = self.env.step(action)
        self.stack[:-1] = self.stack[1:].copy()
        self.stack[-1] = frame
        return self.stack, reward, terminated, truncated, info  # here

# %% mistake
class Stack:
    def observation(self, frame):
        self._frames[..., -1] = frame
        return self._frames  # here

# %% mistake
import numpy as np
class Particle:
    def reset(self):
        self.z = np.zeros(2)
        return self.z.copy()
    def step(self, action):
        self.z[1] += action
        self.z[0] += self.z[1]
        return self.z, 0.0, False, False, {}  # here

# %% right
class Stack:
    def step(self, action):
        frame, reward, terminated, truncated, info = self.env.step(action)
        self.stack[-1] = frame
        return self.stack.copy(), reward, terminated, truncated, info
    def reset(self):
        self.stack[:] = 0
        return self.stack
class Rolled:
    def observation(self, frame):
        self.frames = self.roll(self.frames)
        self.frames[-1] = frame
        return self.frames
class Named:
    def observation(self, frame):
        self.seen["frame"] = frame
        return self.seen
