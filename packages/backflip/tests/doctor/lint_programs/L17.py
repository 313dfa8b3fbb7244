# L17: sums and differences of bytes

# %% mistake
import gymnasium as gym
import numpy as np

def crop(frame):
    return frame[35:195][::2, ::2, 0]

class Motion:
    def __init__(self):
        self.prev = None

    def reset(self):
        self.prev = None

    def __call__(self, frame):
        cur = crop(frame)
        delta = cur - self.prev if self.prev is not None else np.zeros_like(cur)  # here
        self.prev = cur
        return delta

env = gym.make("ALE/Pong-v5")
motion = Motion()
frame, _ = env.reset(seed=1)
x = motion(frame)

# %% mistake
import gymnasium as gym
import numpy as np
from gymnasium import spaces

class Gray(gym.ObservationWrapper):
    def __init__(self, env):
        super().__init__(env)
        self.observation_space = spaces.Box(0, 255, shape=(84, 84), dtype=np.uint8)

    def observation(self, frame):
        view = frame[:84, 6:90]
        gray = (view[..., 0] + view[..., 1] + view[..., 2]) // 3  # here
        return gray.astype(np.uint8)

env = Gray(gym.make("CarRacing-v3"))

# %% mistake
import gymnasium as gym
import numpy as np

def preprocess(frame):
    img = frame[35:195][::2, ::2, 0].copy()
    img[img != 0] = 1
    return img.ravel()

env = gym.make("ALE/Pong-v5", frameskip=4)
frame, _ = env.reset(seed=1)
prev = np.zeros(6400, dtype=np.uint8)
for _ in range(100):
    cur = preprocess(frame)
    x = cur - prev  # here
    prev = cur
    frame, reward, terminated, truncated, _ = env.step(2 + int(x.sum()) % 2)
    if terminated or truncated:
        break

# %% mistake
import numpy as np

def preprocess(frames):
    frames = frames[:, :84, 6:90]
    return ((frames - 128) / 128.0).astype(np.float32)  # here

# %% mistake
import numpy as np
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(4, 16, 8)
    def forward(self, pixels):
        return self.body((pixels - 127) / 127.0)  # here
store = np.zeros((1000, 4, 84, 84), dtype=np.uint8)
reward = torch.zeros(1000, dtype=torch.float32)
def learn(net):
    i = np.random.randint(0, 1000, 32)
    x = torch.from_numpy(store[i])
    r = torch.as_tensor(reward[i], dtype=torch.float32)
    return (net(x).sum() - r.sum()) ** 2

# %% mistake
import gymnasium as gym
import numpy as np
def crop(f):
    return np.ascontiguousarray(f[30:190, :, 1])
def features(f, last):
    small = crop(f)
    return (small - last).ravel(), small  # here
env = gym.make("PongNoFrameskip-v4")
f, _ = env.reset()
last = crop(f)
while True:
    x, last = features(f, last)
    f, r, term, trunc, _ = env.step(0)

# %% mistake
import gymnasium as gym
import numpy as np
env = gym.make("ALE/Breakout-v5", obs_type="grayscale")
before, _ = env.reset()
for _ in range(1000):
    now, r, term, trunc, _ = env.step(env.action_space.sample())
    moved = now[::2, ::2] - before[::2, ::2]  # here
    before = now
    x = moved.astype(np.float32)

# %% mistake
import numpy as np
def difference(frame, last):
    now = frame.astype(np.uint8)
    before = np.array(last, dtype="uint8")
    return now - before  # here

# %% mistake
import numpy as np
class Difference:
    def __init__(self):
        self.last = np.zeros((84, 84), np.uint8)
    def observe(self, frame):
        small = frame[::2].astype(np.uint8)
        changed = small - self.last  # here
        self.last = small
        return changed

# %% mistake
import numpy as np
class Replay:
    def __init__(self, n):
        self.frames = np.zeros((n, 84, 84), dtype=np.uint8)
    def add(self, i, frame):
        self.frames[i] = frame
    def centred(self, i):
        return (self.frames[i] - 128) / 64  # here

# %% mistake
import gymnasium as gym
import numpy as np
from gymnasium.wrappers import GrayscaleObservation
class Motion(gym.Wrapper):
    def reset(self, **options):
        self.last, info = self.env.reset(**options)
        return np.zeros(self.last.shape, np.float32), info
    def step(self, action):
        frame, reward, terminated, truncated, info = self.env.step(action)
        moved = (frame - self.last).astype(np.float32)  # here
        self.last = frame
        return moved, reward, terminated, truncated, info
env = Motion(GrayscaleObservation(gym.make("ALE/Pong-v5")))

# %% mistake
import numpy as np
class Frames:
    def __init__(self, n):
        self.kept = np.empty((n, 64, 64), np.uint8)
    def drawn(self, i, j):
        one, other = self.kept[i], self.kept[j]
        return moved(one, other)
def moved(new, old):
    change = new - old  # here
    return change / 64.0

# %% mistake
import numpy as np
def motion(frame, earlier):
    return (frame - earlier).astype(np.float32) / 255.0  # here
def step(env, action, earlier):
    frame = env.step(action)[0][::2, ::2]
    return motion(frame, earlier)

# %% right
import gymnasium as gym
import numpy as np

def crop(frame):
    return frame[35:195][::2, ::2, 0].astype(np.float32)

class Motion:
    def __init__(self):
        self.prev = None

    def reset(self):
        self.prev = None

    def __call__(self, frame):
        cur = crop(frame)
        delta = cur - self.prev if self.prev is not None else np.zeros_like(cur)
        self.prev = cur
        return delta

env = gym.make("ALE/Pong-v5")
motion = Motion()
frame, _ = env.reset(seed=1)
x = motion(frame)

# %% right
import gymnasium as gym
import numpy as np
from gymnasium import spaces

class Gray(gym.ObservationWrapper):
    def __init__(self, env):
        super().__init__(env)
        self.observation_space = spaces.Box(0, 255, shape=(84, 84), dtype=np.uint8)

    def observation(self, frame):
        view = frame[:84, 6:90].astype(np.uint16)
        gray = (view[..., 0] + view[..., 1] + view[..., 2]) // 3
        return gray.astype(np.uint8)

env = Gray(gym.make("CarRacing-v3"))

# %% right
import gymnasium as gym
import numpy as np

def preprocess(frame):
    img = frame[35:195][::2, ::2, 0].copy()
    img[img != 0] = 1
    return img.ravel()

env = gym.make("ALE/Pong-v5", frameskip=4)
frame, _ = env.reset(seed=1)
prev = np.zeros(6400)
for _ in range(100):
    cur = preprocess(frame).astype(np.float32)
    x = cur - prev
    prev = cur
    frame, reward, terminated, truncated, _ = env.step(2 + int(x.sum()) % 2)
    if terminated or truncated:
        break

# %% right
import numpy as np

def preprocess(frames):
    frames = frames.astype(np.float64)
    return ((frames - 128) / 128.0).astype(np.float32)

# %% right
import numpy as np

def preprocess(frames):
    frames = frames[:, :84, 6:90]
    return ((frames - 127.5) / 127.5).astype(np.float32)

# %% right
import numpy as np

def preprocess(frames):
    frames = frames[:, :84, 6:90]
    return (frames.astype(np.float32) - 128) / 128.0

# %% right
import numpy as np
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(4, 16, 8)
    def forward(self, pixels):
        return self.body((pixels - 127) / 127.0)
store = np.zeros((1000, 4, 84, 84), dtype=np.uint8)
reward = torch.zeros(1000, dtype=torch.float32)
def learn(net):
    i = np.random.randint(0, 1000, 32)
    x = torch.from_numpy(store[i]).float()
    r = torch.as_tensor(reward[i], dtype=torch.float32)
    return (net(x).sum() - r.sum()) ** 2

# %% right
import gymnasium as gym
import numpy as np
env = gym.make("ALE/Breakout-v5", obs_type="grayscale")
before, _ = env.reset()
for _ in range(1000):
    now, r, term, trunc, _ = env.step(env.action_space.sample())
    now = now.astype(np.int16)
    moved = now[::2, ::2] - before[::2, ::2]
    before = now
    x = moved.astype(np.float32)

# %% right
import numpy as np
def difference(frame, last):
    now = frame.astype(np.float32)
    return now - last.astype(np.uint8)

# %% right
import numpy as np
class Difference:
    def __init__(self, first):
        self.last = np.zeros((84, 84), np.uint8)
        self.first = np.zeros((84, 84), np.uint8)
        self.first = first
    def observe(self, frame):
        small = frame[::2].astype(np.float32)
        byte = frame.astype(np.uint8)
        changed = small - self.last, byte - self.first
        self.last = byte
        return changed

# %% right
import numpy as np
class Replay:
    def __init__(self, n):
        self.frames = np.zeros((n, 84, 84), dtype=np.uint8)
    def add(self, i, frame):
        self.frames[i] = frame
    def centred(self, i):
        return (self.frames[i] - 128.0) / 64

# %% right
import gymnasium as gym
import numpy as np
from gymnasium.wrappers import GrayscaleObservation
class Motion(gym.Wrapper):
    def reset(self, **options):
        self.last, info = self.env.reset(**options)
        return np.zeros(self.last.shape, np.float32), info
    def step(self, action):
        frame, reward, terminated, truncated, info = self.env.step(action)
        moved = frame.astype(np.float32) - self.last.astype(np.float32)
        self.last = frame
        return moved, reward, terminated, truncated, info
env = Motion(GrayscaleObservation(gym.make("ALE/Pong-v5")))

# %% right
import gymnasium as gym
class Velocity(gym.Wrapper):
    def step(self, action):
        state, reward, terminated, truncated, info = self.env.step(action)
        change = (state - self.before).astype("float32")
        self.before = state
        return change, reward, terminated, truncated, info
env = Velocity(gym.make("Hopper-v5"))

# %% right
import numpy as np
class Frames:
    def __init__(self, n):
        self.kept = np.empty((n, 64, 64), np.uint8)
    def drawn(self, i, j):
        one, other = self.kept[i], self.kept[j]
        return moved(one, other)
def moved(new, old):
    change = new.astype(np.int16) - old
    return change / 64.0

# %% right
import numpy as np
def motion(frame, earlier):
    return (frame.astype(np.float32) - earlier) / 255.0
def step(env, action, earlier):
    frame = env.step(action)[0][::2, ::2]
    return motion(frame, earlier)

# %% right
import numpy as np
def motion(frame, earlier):
    return (frame - earlier).astype(np.float32) / 255.0
def step(env, action, earlier):
    return motion(env.step(action)[0].astype(float), earlier)
