# L04: the observation after a reset is stored as a successor

# %% mistake
import numpy as np
from stable_baselines3 import SAC
from stable_baselines3.common.env_util import make_vec_env

def collect(policy):
    venv = make_vec_env("Hopper-v5", n_envs=4, seed=1)
    data = {k: [] for k in ("obs", "obs2", "terminal")}
    obs = venv.reset()
    while len(data["obs"]) < 1000:
        act, _ = policy.predict(obs)
        new_obs, rew, dones, infos = venv.step(act)
        for i in range(4):
            limit = infos[i].get("TimeLimit.truncated", False)
            data["obs"].append(obs[i])
            data["obs2"].append(new_obs[i])  # here
            data["terminal"].append(bool(dones[i]) and not limit)
        obs = new_obs
    return data

collect(SAC.load("sac"))

# %% mistake
import gymnasium as gym
envs = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 4)
memory = []
class Store:
    def __init__(self): self.d = []
    def write(self, **row):
        self.d.append(row)
store = Store()
x, _ = envs.reset()
for _ in range(100):
    u = envs.action_space.sample()
    y, r, e, c, _ = envs.step(u)
    store.write(x=x, u=u, r=r, y=y, e=e)  # here
    x = y

# %% mistake
import gymnasium as gym
import numpy as np
from collections import deque
class Bag:
    def __init__(self): self.rows = deque(maxlen=1000)
    def keep(self, *cols):
        for row in zip(*cols):
            self.rows.append(row)
mode = {"autoreset_mode": gym.vector.AutoresetMode.SAME_STEP}
envs = gym.make_vec("CartPole-v1", num_envs=4, vector_kwargs=mode)
bag = Bag()
x, _ = envs.reset()
for _ in range(100):
    u = envs.action_space.sample()
    y, r, e, c, _ = envs.step(u)
    bag.keep(x, u, r, y, e)  # here
    x = y

# %% mistake
import gymnasium as gym
envs = gym.make_vec("CartPole-v1", num_envs=4)
new, rewards, ended, cut, _ = envs.step(0)
replay_buffer.add(obs=old, next_obs=new, reward=rewards, terminated=ended)  # here

# %% mistake
import gymnasium as gym
envs = gym.vector.SyncVectorEnv([])
obs, _ = envs.reset()
next_obs, rewards, terminations, truncations, infos = envs.step(0)
rb.add(obs, next_obs, 0, rewards, terminations, infos)  # here

# %% mistake
import gymnasium as gym
def collect(memory):
    envs = gym.make_vec("CartPole-v1", num_envs=4)
    new, rewards, ended, cut, _ = envs.step(0)
    memory.push(old, 0, rewards, new, ended)  # here

# %% mistake
import gymnasium as gym
envs = gym.make_vec("CartPole-v1", num_envs=4)
while True:
    new, rewards, ended, cut, _ = envs.step(0)
    done = ended | cut
    for i in range(4):
        if not done[i]:
            replay.add(old, new, rewards[i], ended[i])  # here
    done = done.tolist()
    old = new

# %% mistake
import gymnasium as gym
def collect(buf):
    envs = gym.make_vec("CartPole-v1", num_envs=4)
    obs, _ = envs.reset()
    while True:
        action = envs.action_space.sample()
        after, reward, terminated, truncated, _ = envs.step(action)
        buf.add((obs, action, reward, after, terminated))  # here
        obs = after

# %% mistake
import gymnasium as gym
envs = gym.make_vec("CartPole-v1", 4)
def collect(act, replay, obs):
    for step in range(100):
        actions = act(obs)
        next_obs, rewards, terminations, truncations, infos = envs.step(actions)
        if "_final_info" in infos:
            print(infos["episode"])
        replay.add(obs, next_obs, actions, rewards, terminations)  # here
        obs = next_obs

# %% mistake
import gymnasium as gym
from gymnasium.vector import AutoresetMode
envs = gym.vector.SyncVectorEnv(made, autoreset_mode=AutoresetMode.SAME_STEP)
obs, info = envs.reset()
for step in range(100):
    actions = policy(obs)
    after, rewards, terminated, truncated, info = envs.step(actions)
    ring.add_batch(obs, actions, rewards, after, terminated)  # here
    obs = after

# %% mistake
from stable_baselines3.common.env_util import make_vec_env
def fill(venv, steps, data):
    obs = venv.reset()
    for _ in range(steps):
        actions = act(obs)
        new_obs, rewards, dones, infos = venv.step(actions)
        for i in range(venv.num_envs):
            data.append((obs[i], actions[i], rewards[i], new_obs[i], dones[i]))  # here
        obs = new_obs
fill(make_vec_env("CartPole-v1"), 100, [])

# %% mistake
import gymnasium as gym
import numpy as np
class Ring:
    def __init__(self):
        self.data, self.at = np.zeros((5, 1000, 4)), 0
    def keep(self, s, a, r, s2, d):
        for j in range(len(s)):
            self.data[0][self.at] = s[j]
            self.data[1][self.at] = a[j]
            self.data[2][self.at] = r[j]
            self.data[3][self.at] = s2[j]
            self.at += 1
venv = gym.wrappers.vector.RecordEpisodeStatistics(gym.make_vec("CartPole-v1", 4))
ring = Ring()
s, _ = venv.reset(seed=1)
while True:
    a = policy(s)
    s2, r, te, tr, _ = venv.step(a)
    ring.keep(s, a, r, s2, te)  # here
    s = s2

# %% mistake
import gymnasium as gym
rows = []
def save(olds, acts, rews, news):
    for row in zip(olds, acts, rews, news):
        rows.append(row)
def build(n):
    return gym.vector.AsyncVectorEnv([make] * n)
envs = build(4)
x, _ = envs.reset()
while True:
    u = act(x)
    y, r, te, tr, _ = envs.step(u)
    save(x, u, r, y)  # here
    x = y

# %% mistake
import gymnasium as gym
envs = gym.make_vec("CartPole-v1", 4)
x, _ = envs.reset()
while True:
    u = act(x)
    y, r, te, tr, _ = envs.step(u)
    table["o"].append(x)
    table["a"].append(u)
    table["r"][t], table["d"][t] = r, te
    table["n"].append(y)  # here
    x = y

# %% mistake
class Worker:
    def go(self):
        u = self.pick(self.x)
        y, r, te, tr, _ = self.env.step(u)
        over = te or tr
        if over:
            self.count += 1
            y = self.env.reset()[0]
        row = {"x": self.x, "u": u, "r": r, "y": y, "end": te}  # here
        self.x = y
        return row

# %% mistake
def one(env, log, s):
    a = act(s)
    y, r, te, tr, _ = env.step(a)
    y = env.reset()[0] if te or tr else y
    log.write(obs=s, action=a, rew=r, nxt=y, end=float(te))  # here
    return y
import numpy as np
from stable_baselines3.common.env_util import make_vec_env
def main(n=4):
    world = make_vec_env("Pendulum-v1", n_envs=n)
    S, S2 = np.zeros((1000, n, 3)), np.zeros((1000, n, 3))
    s = world.reset()
    for t in range(1000):
        act = policy(s)
        world.step_async(act)
        s2, r, over, extra = world.step_wait()
        S[t] = s
        S2[t] = s2  # here
        s = s2

# %% mistake
import torch
from stable_baselines3.common.vec_env import SubprocVecEnv
class Agent:
    def __init__(self, fns):
        self.envs = SubprocVecEnv(fns)
        self.obs = self.envs.reset()
        self.memory = Memory()
    def collect(self, n):
        for _ in range(n):
            a = self.act(self.obs)
            nxt, r, d, infos = self.envs.step(a)
            cut = [i.get("TimeLimit.truncated", False) for i in infos]
            self.memory.extend(zip(self.obs, a, r, nxt, d & ~np.array(cut)))  # here
            self.obs = nxt

# %% mistake
from stable_baselines3.common.env_util import make_vec_env
def fill(ring):
    pool = make_vec_env("Pendulum-v1", 4)
    o = pool.reset()
    while True:
        got, r, d, infos = pool.step(act(o))
        succ = got.copy()
        ring.keep((o, r, succ))  # here
        o = got

# %% mistake
import torch
from stable_baselines3.common.env_util import make_vec_env
def a2c(critic, gamma):
    venv = make_vec_env("CartPole-v1", 8)
    x = venv.reset()
    while True:
        v = critic(torch.as_tensor(x))
        y, r, d, infos = venv.step(act(x))
        cut = torch.tensor([i.get("TimeLimit.truncated", False) for i in infos])
        alive = 1 - (torch.as_tensor(d) & ~cut).float()
        target = torch.as_tensor(r) + gamma * alive * critic(torch.as_tensor(y))  # here
        (target.detach() - v).pow(2).mean().backward()
        x = y

# %% right
import numpy as np
from stable_baselines3 import SAC
from stable_baselines3.common.env_util import make_vec_env

def collect(policy):
    venv = make_vec_env("Hopper-v5", n_envs=4, seed=1)
    data = {k: [] for k in ("obs", "obs2", "terminal")}
    obs = venv.reset()
    while len(data["obs"]) < 1000:
        act, _ = policy.predict(obs)
        new_obs, rew, dones, infos = venv.step(act)
        for i in range(4):
            limit = infos[i].get("TimeLimit.truncated", False)
            last = infos[i].get("terminal_observation", new_obs[i])
            data["obs"].append(obs[i])
            data["obs2"].append(last)
            data["terminal"].append(bool(dones[i]) and not limit)
        obs = new_obs
    return data

collect(SAC.load("sac"))

# %% right
import gymnasium as gym
import numpy as np
from collections import deque
class Bag:
    def __init__(self): self.rows = deque(maxlen=1000)
    def keep(self, *cols):
        for row in zip(*cols):
            self.rows.append(row)
mode = {"autoreset_mode": gym.vector.AutoresetMode.SAME_STEP}
envs = gym.make_vec("CartPole-v1", num_envs=4, vector_kwargs=mode)
bag = Bag()
x, _ = envs.reset()
for _ in range(100):
    u = envs.action_space.sample()
    y, r, e, c, info = envs.step(u)
    last = y.copy()
    for i in np.flatnonzero(e | c):
        last[i] = info["final_obs"][i]
    bag.keep(x, u, r, last, e)
    x = y

# %% right
import gymnasium as gym
envs = gym.vector.SyncVectorEnv([])
next_obs, rewards, terminations, truncations, infos = envs.step(0)
real_next_obs = next_obs.copy()
rb.add(obs, real_next_obs, 0, rewards, terminations, infos)

# %% right
import gymnasium as gym
env = gym.make("CartPole-v1")
next_obs, reward, terminated, truncated, info = env.step(0)
buffer.add(obs, next_obs, 0, reward, terminated)

# %% right
import gymnasium as gym
import numpy as np
envs = gym.make_vec("CartPole-v1", num_envs=4)
fresh = np.zeros(4, bool)
while True:
    new, rewards, ended, cut, _ = envs.step(0)
    keep = ~fresh
    replay.add(old[keep], new[keep], rewards[keep], ended[keep])
    for i in np.flatnonzero(~fresh):
        buffer.push(old[i], new[i], rewards[i], ended[i])
    for i in range(4):
        if fresh[i]:
            continue
        memory.append(old, new, i)
    new = new[keep]
    memory.append(old, new)
    fresh = ended | cut
    old = new

# %% right
import gymnasium as gym
envs = gym.make_vec("CartPole-v1", num_envs=4)
def collect(memory, done):
    while True:
        before = done
        new, rewards, ended, cut, _ = envs.step(0)
        done = ended | cut
        if not before.any():
            memory.push(old, new, ended)

# %% right
import gymnasium as gym
from gymnasium.vector import AutoresetMode
envs = gym.vector.SyncVectorEnv(made, autoreset_mode=AutoresetMode.SAME_STEP)
obs, info = envs.reset()
for step in range(100):
    actions = policy(obs)
    after, rewards, terminated, truncated, info = envs.step(actions)
    last = after.copy()
    ended = info.get("_final_obs", [])
    last[ended] = info["final_obs"][ended]
    ring.add_batch(obs, actions, rewards, last, terminated)
    obs = after

# %% right
from stable_baselines3.common.env_util import make_vec_env
def fill(venv, steps, data):
    obs = venv.reset()
    for _ in range(steps):
        actions = act(obs)
        new_obs, rewards, dones, infos = venv.step(actions)
        for i in range(venv.num_envs):
            last = infos[i].get("terminal_observation", new_obs[i])
            data.append((obs[i], actions[i], rewards[i], last, dones[i]))
        obs = new_obs
fill(make_vec_env("CartPole-v1"), 100, [])

# %% right
import gymnasium as gym
rows = []
def save(olds, acts, rews, news):
    for row in zip(olds, acts, rews, news):
        rows.append(row)
def show(olds, acts, rews, news):
    print(olds, acts, rews, news)
envs, fresh = gym.make_vec("CartPole-v1", 4), no_one()
x, _ = envs.reset()
while True:
    u = act(x)
    y, r, te, tr, _ = envs.step(u)
    show(x, u, r, y)
    save(x[~fresh], u[~fresh], r[~fresh], y[~fresh])
    fresh = te | tr
    x = y

# %% right
import gymnasium as gym
envs = gym.make_vec("CartPole-v1", 4)
x, _ = envs.reset()
for t in range(128):
    u = act(x)
    states[t] = x
    actions[t] = u
    x, r, te, tr, _ = envs.step(u)
    rewards[t] = r
    ends[t] = te

# %% right
class Worker:
    def go(self):
        u = self.pick(self.x)
        y, r, te, tr, _ = self.env.step(u)
        arrived = y
        if te or tr:
            y, _ = self.env.reset()
        before, self.x = self.x, y
        return before, u, r, arrived, te
class Masked:
    def go(self):
        u = self.pick(self.x)
        y, r, te, tr, _ = self.env.step(u)
        if te or tr:
            y, _ = self.env.reset()
        before, self.x = self.x, y
        return before, u, r, y, te, tr
class Terminal:
    def go(self, obs):
        y, r, te, tr, _ = self.env.step(self.pick(obs))
        if te:
            y, _ = self.env.reset()
        return obs, self.u, r, y, te
class Looping:
    def step(self, u):
        y, r, te, tr, info = self.env.step(u)
        if te or tr:
            y, info = self.env.reset()
        return y, r, te, self.state, info
from stable_baselines3.common.env_util import make_vec_env
def main(buf, q):
    venv = make_vec_env("A-v0", 4)
    o = venv.reset()
    while True:
        a = act(o)
        o2, r, d, i = venv.step(a)
        buf.push(o, a, r, o2, d)
        o = o2
        s, a, r, s2, d = buf.sample(3)
        y = r + 0.99 * (1 - d) * q(s2).max(1)[0]

# %% right
import numpy as np
from stable_baselines3.common.env_util import make_vec_env
def main(buf):
    venv = make_vec_env("A-v0", 4)
    o = venv.reset()
    while True:
        o2, r, d, infos = venv.step(act(o))
        nxt = o2.copy()
        for i in np.flatnonzero(d):
            nxt[i] = last_of(infos[i])
        cut = [x.get("TimeLimit.truncated", False) for x in infos]
        buf.push(o, r, nxt, d & ~np.array(cut))
        o = o2

# %% right
from stable_baselines3.common.env_util import make_vec_env
def main(buf):
    venv = make_vec_env("A-v0", 4)
    o = venv.reset()
    while True:
        o2, r, d, infos = venv.step(act(o))
        for i in range(4):
            if d[i]:
                print(infos[i].get("TimeLimit.truncated"))
                continue
            buf.push(o[i], r[i], o2[i])
        o = o2
