"""Programs with and without the mistakes of each rule; `# here` marks the expected line."""

BAD: dict[str, list[str]] = {
    "L01": [
        """
import gymnasium
import jax
import numpy as np

def learn(judge, pilot, slow, batch, fade):
    x, u, c, y, go = batch
    aim = c + fade.discount * go * judge.apply(slow, y, pilot.apply(slow, y))
    return jax.lax.stop_gradient(aim)

def main(opt, judge, pilot, slow, memory):
    world = gymnasium.make("Pendulum-v1")
    x, _ = world.reset(seed=1)
    for k in range(opt.steps):
        u = pilot.apply(slow, x)
        y, c, dead, late, _ = world.step(u)
        over = dead or late  # here
        memory.append((x, u, c, y, 0.0 if over else 1.0))
        x = y
        if over:
            x, _ = world.reset()
        learn(judge, pilot, slow, memory.draw(64), opt)
""",
        """
import gymnasium as gym
import random
from typing import NamedTuple
class Step(NamedTuple):
    s: object
    a: int
    r: float
    s2: object
    ended: bool
    over: bool
bag = []
def collect(env, s):
    for i in range(100):
        a = env.action_space.sample()
        s2, r, ended, cut, _ = env.step(a)
        bag.append(Step(s, a, r, s2, ended, ended or cut))  # here
        s = env.reset()[0] if ended or cut else s2
def learn(q, gamma=0.99):
    b = Step(*zip(*random.sample(bag, 32)))
    return b.r + gamma * (1 - b.over) * q(b.s2).max(1)
""",
        """
import gymnasium as gym
import numpy as np
ROW = np.dtype(
    [("o", "f4", 4), ("o2", "f4", 4), ("a", int), ("r", "f4"), ("dead", "?"), ("over", "?")]
)
rows = np.zeros(100, dtype=ROW)
def collect(env, o):
    for i in range(100):
        a = env.action_space.sample()
        o2, r, dead, cut, _ = env.step(a)
        rows[i] = (o, o2, a, r, dead, dead or cut)  # here
        o = env.reset()[0] if dead or cut else o2
def targets(value, gamma=0.99):
    return rows["r"] + gamma * (1 - rows["over"]) * value(rows["o2"])
""",
        """
import random
import torch
def run(env, q, qt, memory):
    obs, info = env.reset()
    for step in range(20000):
        nobs, r, term, trunc, info = env.step(int(q(torch.as_tensor(obs)).argmax()))
        done = term or trunc
        memory.append((obs, r, nobs, done))  # here
        obs = nobs
        if done:
            obs, info = env.reset()
        for o, r, n, d in random.sample(memory, 64):
            y = r + 0.99 * qt(n).max() * (1 - d)
""",
        """
def run(env, act, net):
    obs, info = env.reset()
    while True:
        next_obs, r, terminated, truncated, info = env.step(act(obs))
        done = terminated or truncated
        y = r + 0.99 * net(next_obs).max() * (1 - done)  # here
        obs = next_obs
        if done:
            obs, info = env.reset()
""",
        """
def target(env, q):
    obs, reward, terminated, truncated, _ = env.step(0)
    done = terminated or truncated
    return reward + 0.99 * (1 - done) * q(obs)  # here
""",
        """
import gymnasium as gym
class Grid(gym.Env):
    def step(self, action):
        if self.time == 100:
            return 0, 0.0, False, True, {}
        return 0, 0.0, self.won(), False, {}
def target(q, gamma):
    env = Grid()
    obs, reward, terminated, truncated, _ = env.step(0)
    done = terminated or truncated
    return reward + gamma * q(obs) * (1 - done)  # here
""",
        """
import gymnasium as gym
from gymnasium.wrappers import TimeLimit
class Grid(gym.Env):
    def step(self, action):
        return 0, 0.0, self.won(), False, {}
env = TimeLimit(Grid(), 100)
def target(q, gamma):
    obs, reward, terminated, truncated, _ = env.step(0)
    done = terminated or truncated
    return reward + gamma * q(obs) * (1 - done)  # here
""",
        """
def collect(env, memory):
    obs, reward, terminated, truncated, _ = env.step(0)
    done = terminated or truncated
    memory.push((obs, 0, reward, done))  # here
def update(batch, q, gamma):
    return batch.reward + gamma * q(batch.next_obs).max(1) * (1 - batch.done)
""",
        """
import numpy as np
def learn(envs, rewards, values, dones, args):
    obs, reward, terminations, truncations, infos = envs.step(0)
    next_done = np.logical_or(terminations, truncations)
    next_done = torch.Tensor(next_done).to("cpu")
    nextnonterminal = 1.0 - next_done
    delta = rewards[0] + args.gamma * values[1] * nextnonterminal - values[0]  # here
    last = delta + args.gamma * 0.95 * nextnonterminal * 0
""",
        """
def target(env, q, gamma):
    obs, reward, terminated, truncated, _ = env.step(0)
    done = terminated or truncated
    return reward + gamma * q(obs) * (not done)  # here
""",
        """
def target(env, q):
    obs, reward, term, trunc, _ = env.step(0)
    done = (term | trunc).astype(float)
    return reward + (1 - done) * self.discount * q(obs)  # here
""",
        """
import torch
def advantages(envs, buffer, gamma):
    obs, reward, term, trunc, _ = envs.step(0)
    buffer.end[0] = torch.logical_or(torch.as_tensor(term), torch.as_tensor(trunc)).float()
    alive = 1.0 - buffer.end[0]
    return reward + gamma * buffer.v[1] * alive  # here
""",
        """
def target(env, q, gamma):
    obs, reward, terminated, truncated, _ = env.step(0)
    if (over := terminated or truncated):
        env.reset()
    return reward + gamma * q(obs) * (1 - over)  # here
""",
        """
def target(env, q, gamma):
    obs, reward, terminated, truncated, _ = env.step(0)
    done = terminated + truncated
    return reward + gamma * q(obs) * (1 - done)  # here
""",
        """
def advantages(rewards, values, terminated, truncated, gamma, lam):
    done, last = terminated | truncated, 0.0
    if not truncated.any():
        last = gamma * values[-1]
    for t in reversed(range(len(rewards))):
        alive = 1 - done[t]
        last = rewards[t] + gamma * lam * alive * last + gamma * alive * values[t + 1]  # here
    return last
""",
        """
def targets(rewards, values, terminated, truncated, gamma):
    done = terminated | truncated
    if terminated or truncated:
        rewards = gamma * rewards
    values *= gamma * (1 - done)  # here
    return rewards + values
""",
        """
def targets(rewards, values, terms, truncs, gamma):
    for reward, value, term, trunc in zip(rewards, values, terms, truncs):
        done = term or trunc
        yield reward + gamma * value * (1 - done)  # here
""",
        """
def expression(env, q, gamma):
    s2, r, terminated, truncated, _ = env.step(0)
    done = terminated or truncated
    target = r if done else r + gamma * max(q[s2])  # here
    return target
def negated(env, q, gamma):
    s2, r, terminated, truncated, _ = env.step(0)
    return r + gamma * (max(q[s2]) if not (terminated or truncated) else 0)  # here
def masked(env, q, gamma):
    s2, r, terminated, truncated, _ = env.step(0)
    alive = not any([terminated, truncated])
    target = r + gamma * max(q[s2]) if alive else r  # here
    return target
def branches(env, q, gamma):
    s2, r, terminated, truncated, _ = env.step(0)
    if terminated or truncated:
        target = r
    else:
        target = r + gamma * max(q[s2])  # here
    return target
def added(env, q, gamma):
    s2, target, terminated, truncated, _ = env.step(0)
    done = terminated | truncated
    if not done:
        target += gamma * max(q[s2])  # here
    return target
""",
        """
def with_masks(env, critic, gamma):
    rewards, masks, returns = [], [], []
    for _ in range(100):
        obs, r, terminated, truncated, _ = env.step(0)
        masks.append(1 - float(terminated or truncated))
        rewards.append(r)
    R = critic(obs).detach()
    for r, m in zip(rewards[::-1], masks[::-1]):
        R = r + gamma * R * m  # here
        returns.insert(0, R)
    return returns
def with_ends(env, critic, gamma):
    rewards, dones = [], []
    for _ in range(100):
        obs, r, terminated, truncated, _ = env.step(0)
        done = terminated or truncated
        dones.append(done)
        rewards.append(r)
    R = 0 if done else critic(obs)
    for t, d in enumerate(reversed(dones)):
        R = rewards[-t - 1] + gamma * R * (1 - d)  # here
    return R
def by_place(env, critic, gamma):
    rewards, dones = [], []
    for _ in range(100):
        obs, r, terminated, truncated, _ = env.step(0)
        dones.append(terminated or truncated)
        rewards.append(r)
    last_value = critic(obs)
    for t in reversed(range(100)):
        last_value = rewards[t] + gamma * last_value * (1 - dones[t])  # here
    return last_value
""",
        """
import torch
def collect(env, buf):
    o, r, terminated, truncated, _ = env.step(0)
    done = terminated | truncated
    buf.append((o, 0, r, o, done))  # here
def update(buf, q, gamma):
    o, a, r, o2, d = map(torch.as_tensor, zip(*buf))
    return r + gamma * (~d) * q(o2).max(1)[0]
""",
        """
import numpy as np
import torch
def either(env, q, gamma):
    s2, r, te, tr, _ = env.step(0)
    d = te | tr
    return r + gamma * (1 - d) * v_next  # here
def function(envs, agent, args):
    obs, reward, te, tr, infos = envs.step(0)
    alive = 1.0 - np.logical_or(te, tr)
    return reward + args.gamma * agent.value(obs) * alive  # here
def other_names(env, V, alpha, gamma):
    s2, r, is_done, limit, _ = env.step(0)
    stop = is_done or limit
    V[0] += alpha * (r + gamma * V[s2] * (1 - stop) - V[0])  # here
def chosen(env, net, gamma):
    s2, r, te, tr, _ = env.step(0)
    next_q = net(s2).amax(1)
    return torch.where(te | tr, r, r + gamma * next_q)  # here
def in_lists(env, values, gamma):
    tes, trs, rews = [], [], []
    for _ in range(100):
        obs, r, te, tr, _ = env.step(0)
        tes.append(te)
        trs.append(tr)
        rews.append(r)
    for r, v, one, other in zip(rews, values, tes, trs):
        d = one or other
        yield r + gamma * v * (1 - d)  # here
""",
        """
import torch
class Agent:
    def play(self, env):
        self.obs, self.rew, self.te, self.tr, _ = env.step(self.act)
        self.over = torch.logical_or(self.te, self.tr).float()
        return self.rew + self.gamma * (1 - self.over) * self.critic(self.obs)  # here
class Other:
    def __init__(self):
        self.done = False
    def play(self, env):
        self.obs, self.rew, terminated, truncated, _ = env.step(self.act)
        self.done = terminated or truncated
    def learn(self):
        return self.rew + self.gamma * (1 - self.done) * self.critic(self.obs)  # here
""",
        """
class ReplayBuffer:
    pass
def train(env, ac_targ, gamma):
    replay_buffer = ReplayBuffer()
    o2, r, te, tr, _ = env.step(a)
    replay_buffer.store(o, a, r, o2, te or tr)  # here
def compute_loss_q(data, ac_targ, gamma):
    o, a, r, o2, d = data['obs'], data['act'], data['rew'], data['obs2'], data['done']
    q_pi_targ = ac_targ.q(o2, a)
    backup = r + gamma * (1 - d) * q_pi_targ
    return backup
""",
        """
import random, numpy as np
from collections import deque
memory = deque(maxlen=1000)
for ep in range(10):
    s, _ = env.reset()
    while True:
        ns, r, te, tr, _ = env.step(a)
        d = te or tr
        memory.append((s, a, r, ns, d))  # here
        if d: break
        batch = random.sample(memory, 32)
        for bs, ba, br, bns, bd in batch:
            y = br
            if not bd:
                y = br + gamma * np.max(model.predict(bns))
""",
        """
def collect(env, buf):
    obs2, reward, done, truncated, _ = env.step(a)
    done = done or truncated
    buf.add(obs, a, reward, obs2, done)  # here
def update(batch, q, gamma):
    return batch.reward + gamma * q(batch.next_obs).max(1) * (1 - batch.done)
""",
        """
def collect(env, buffer):
    obs, reward, term, trunc, _ = env.step(0)
    mask = 0.0 if (term or trunc) else 1.0
    buffer.push(obs, 0, reward, obs, mask)  # here
def learn(buffer, target_q, gamma):
    obs, action, reward, next_obs, mask = buffer.sample()
    return reward + gamma * mask * target_q(next_obs)
""",
        """
def collect(env, buffer):
    obs, reward, term, trunc, _ = env.step(0)
    buffer.push(obs, 0, reward, obs, 1.0 - float(term or trunc))  # here
def learn(buffer, target_q, gamma):
    obs, action, reward, next_obs, alive = buffer.sample()
    return reward + gamma * alive * target_q(next_obs)
""",
        """
import random
class Agent:
    def learn(self):
        b = random.sample(self.mem, 32)
        s, a, r, s2, d = [as_tensor(x) for x in zip(*b)]
        return r + 0.99 * self.target(s2).max(1)[0] * (1 - d)
def collect(env, agent):
    obs, reward, term, trunc, _ = env.step(0)
    done = term or trunc
    agent.mem.append((obs, 0, reward, obs, done))  # here
""",
        """
import gymnasium as gym
def has_ended(result):
    return result[2] or result[3]
def collect(env, memory, policy, obs):
    result = env.step(policy(obs))
    over = has_ended(result)
    memory.push(obs, result[1], result[0], 1.0 - float(over))
    return result[0]
def targets(critic, rewards, next_obs, alive, gamma):
    return rewards + gamma * alive * critic(next_obs)
def train(env, memory, policy, critic, obs, gamma):
    result = env.step(policy(obs))
    over = has_ended(result)
    alive = 1.0 - float(over)
    return result[1] + gamma * alive * critic(result[0])  # here
""",
        """
import torch
from dataclasses import dataclass
@dataclass
class Move:
    s: object
    r: float
    s2: object
    over: bool
def play(env, bank, pick, s):
    s2, r, te, tr, _ = env.step(pick(s))
    over = te or tr  # here
    bank.append(Move(s=s, r=r, s2=s2, over=over))
    return env.reset()[0] if over else s2
def goals(moves, slow, gamma):
    stop = torch.tensor([m.over for m in moves]).float()
    best = slow(torch.stack([m.s2 for m in moves])).amax(1)
    return torch.tensor([m.r for m in moves]) + gamma * best * (1 - stop)
""",
        """
import numpy as np
ring = {"x": [0] * 99, "u": [0] * 99, "c": [0] * 99, "z": [0] * 99, "e": [0] * 99}
def put(at, *row):
    for key, part in zip(ring, row):
        ring[key][at] = part
def walk(env, policy, x, at):
    z, c, te, tr, _ = env.step(policy(x))
    row = (x, policy(x), c, z, bool(te | tr))  # here
    put(at, *row)
    return z
def backup(model, ix, discount):
    part = {key: values[ix] for key, values in ring.items()}
    largest = model(part["z"]).max(1)
    return part["c"] + discount * np.where(part["e"], 0.0, largest)
""",
        """
from collections import namedtuple
Row = namedtuple("Row", "s a r s2 dead")
def play(env, act, s):
    a = act(s)
    s2, r, te, tr, _ = env.step(a)
    return Row(s, a, r, s2, te or tr)  # here
def fit(q, rows, gamma):
    s, a, r, s2, end = stacked(rows)
    boot = q(s2).max(1).values.masked_fill(end, 0.0)
    return q(s), r + gamma * boot
""",
        """
import torch
class Bank:
    def put(self, i, s, a, r, s2, f):
        self.s[i], self.a[i], self.r[i], self.s2[i], self.f[i] = s, a, r, s2, f
def train(env, bank, q, qt, s):
    for i in range(1000):
        s2, r, dead, late, _ = env.step(q(s).argmax())
        bank.put(i, s, 0, r, s2, dead or late)
        s = s2
        if dead or late:
            s, _ = env.reset()
        ix = torch.randint(0, i, (32,))
        boot = qt(bank.s2[ix]).amax(1)
        y = bank.r[ix] + 0.99 * (1.0 - bank.f[ix]) * boot  # here
""",
    ],
    "L02": [
        """
import gymnasium as gym
def log(infos, write):
    for info in infos["final_info"]:  # here
        if info and "episode" in info:
            write(info["episode"]["r"])
""",
        """
import gymnasium as gym
if "final_info" in infos:  # here
    for info in infos["final_info"]:
        print(info["episode"])
""",
        """
import gymnasium
last = infos["final_observation"][0]  # here
""",
        """
import gymnasium as gym
class Collector:
    def last(self, infos, i):
        key = "final_observation"  # here
        return infos[key][i]
""",
        """
import gymnasium as gym
from gymnasium.vector import AutoresetMode
envs = gym.make_vec("CartPole-v1", 4, vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP})
def last_of(infos, i):
    return infos["final_observation"][i]  # here
""",
        """
import gymnasium as gym
assert int(gym.__version__.split(".")[0]) >= 1
print(gym.__version__)
class Log:
    def feed(self, write, infos):
        for one in infos.get("final_info", []):  # here
            write(one["episode"]["r"])
""",
        """
import gymnasium
from packaging.version import parse
if parse(gymnasium.__version__) < parse("1.0"):
    raise RuntimeError("too old")
last = infos["final_observation"][0]  # here
""",
    ],
    "L03": [
        """
from gymnasium import Wrapper, make
class Noop(Wrapper):
    def reset(self, **kw):
        o = self.env.reset(**kw)  # here
        for _ in range(5):
            o, _, _, _, _ = self.env.step(0)
        return o, {}
env = Noop(make("CartPole-v1"))
""",
        """
import gymnasium as gym
class Clip(gym.Wrapper):
    def step(self, a):
        out, r, over, extra = super().step(a)  # here
        return out, max(-1, min(1, r)), over, False, extra
env = Clip(gym.make("CartPole-v1"))
""",
        """
import gymnasium as gym
env = gym.make("CartPole-v1")
obs = env.reset()  # here
obs, reward, done, info = env.step(0)  # here
""",
        """
import gymnasium
from gymnasium.wrappers import TimeLimit
class Agent:
    def play(self):
        env = TimeLimit(gymnasium.make("CartPole-v1"), 5)
        observation, _ = env.reset()
        observation, reward, done, _ = env.step(1)  # here
""",
        """
import gymnasium as gym
from gymnasium.wrappers import ClipAction
def make_env(name):
    env = gym.make(name)
    env = ClipAction(env)
    return env
def play(policy):
    env = make_env("Pendulum-v1")
    obs, _ = env.reset(seed=0)
    obs, reward, done, _ = env.step(policy(obs))  # here
""",
        """
import gymnasium as gym
def annotated(env: gym.Env):
    obs, reward, done, info = env.step(0)  # here
def play(policy, env):
    obs, _ = env.reset()
    obs, reward, done, info = env.step(policy(obs))  # here
def main():
    environment = gym.make("CartPole-v1")
    play(policy, environment)
    play(policy, env=gym.make("Pendulum-v1"))
""",
        """
import gymnasium as gym
env = gym.make("CartPole-v1")
obs, info = env.reset()
result = env.step(0)
obs, reward, over, info = result  # here
""",
        """
import gymnasium as gym
import torch
def fresh(env, seed=None):
    return env.reset(seed=seed)  # here
def main(net):
    env = gym.make("CartPole-v1")
    x = fresh(env, 3)
    for _ in range(100):
        x, r, te, tr, _ = env.step(net(torch.as_tensor(x)).argmax().item())
        if te or tr:
            x = fresh(env)
""",
        """
import gymnasium as gym
import numpy as np
class Roll:
    def __init__(self):
        self.env = gym.make("Acrobot-v1")
    def begin(self):
        return self.env.reset()  # here
def play(policy):
    roll = Roll()
    state = roll.begin()
    while True:
        after, r, te, tr, _ = roll.env.step(policy(np.asarray(state[None])))
        state = roll.begin() if te or tr else after
""",
        """
import gymnasium as gym
import torch
env = gym.make("CartPole-v1")
s = torch.tensor(env.reset(seed=1))  # here
while True:
    after, r, te, tr, _ = env.step(policy(s))
    s = env.reset() if te or tr else after  # here
""",
    ],
    "L04": [
        """
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
""",
        """
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
""",
        """
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
""",
        """
import gymnasium as gym
envs = gym.make_vec("CartPole-v1", num_envs=4)
new, rewards, ended, cut, _ = envs.step(0)
replay_buffer.add(obs=old, next_obs=new, reward=rewards, terminated=ended)  # here
""",
        """
import gymnasium as gym
envs = gym.vector.SyncVectorEnv([])
obs, _ = envs.reset()
next_obs, rewards, terminations, truncations, infos = envs.step(0)
rb.add(obs, next_obs, 0, rewards, terminations, infos)  # here
""",
        """
import gymnasium as gym
def collect(memory):
    envs = gym.make_vec("CartPole-v1", num_envs=4)
    new, rewards, ended, cut, _ = envs.step(0)
    memory.push(old, 0, rewards, new, ended)  # here
""",
        """
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
""",
        """
import gymnasium as gym
def collect(buf):
    envs = gym.make_vec("CartPole-v1", num_envs=4)
    obs, _ = envs.reset()
    while True:
        action = envs.action_space.sample()
        after, reward, terminated, truncated, _ = envs.step(action)
        buf.add((obs, action, reward, after, terminated))  # here
        obs = after
""",
        """
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
""",
        """
import gymnasium as gym
from gymnasium.vector import AutoresetMode
envs = gym.vector.SyncVectorEnv(made, autoreset_mode=AutoresetMode.SAME_STEP)
obs, info = envs.reset()
for step in range(100):
    actions = policy(obs)
    after, rewards, terminated, truncated, info = envs.step(actions)
    ring.add_batch(obs, actions, rewards, after, terminated)  # here
    obs = after
""",
        """
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
""",
        """
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
""",
        """
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
""",
        """
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
""",
        """
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
""",
        """
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
""",
        """
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
""",
        """
from stable_baselines3.common.env_util import make_vec_env
def fill(ring):
    pool = make_vec_env("Pendulum-v1", 4)
    o = pool.reset()
    while True:
        got, r, d, infos = pool.step(act(o))
        succ = got.copy()
        ring.keep((o, r, succ))  # here
        o = got
""",
        """
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
""",
    ],
    "L05": [
        """
import torch
import torch.nn.functional as F
def update(net, optimizer, obs, action, reward, nobs, gamma):
    target = reward + gamma * net(nobs).max(1)[0]  # here
    loss = F.mse_loss(net(obs).gather(1, action).squeeze(1), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        """
import torch
import torch.nn.functional as F
def update(q, opt, s, a, r, s2, term):
    y = r + .99 * (1 - term) * q(s2).max(1)[0]  # here
    loss = F.mse_loss(q(s).gather(1, a).squeeze(1), y)
    opt.zero_grad()
    loss.backward()
""",
        """
import torch
def update(self, b):
    next_q = self.model(b.next_states).max(1)[0]
    target = b.r + self.gamma * next_q * (1 - b.done)  # here
    loss = torch.nn.functional.smooth_l1_loss(self.model(b.states).max(1)[0], target)
    self.optimizer.zero_grad()
    loss.backward()
""",
        """
import torch
def update(q_net, optimizer, batch, gamma):
    target = batch.r + gamma * q_net(batch.next_obs).max(1)[0]  # here
    loss = torch.nn.functional.mse_loss(q_net(batch.obs).gather(1, batch.a), target)
    loss.backward()
    optimizer.zero_grad()
""",
        """
import torch
def update(self, b):
    y = b.r + self.gamma * (1 - b.done) * self.critic(b.next_obs)  # here
    loss = ((self.critic(b.obs) - y) ** 2).mean()
    self.optimizer.zero_grad()
    loss.backward()
""",
        """
import torch.nn.functional as F
def td_loss(q_net, batch, gamma):
    best = q_net(batch.next_obs).max(dim=-1).values
    best = best * ~batch.done
    expected = batch.reward + gamma * best  # here
    loss = F.huber_loss(q_net(batch.obs).gather(1, batch.a), expected)
    return loss
def learn(net, opt, batch, gamma):
    opt.zero_grad()
    td_loss(net, batch, gamma).backward()
    opt.step()
""",
        """
import jax
import jax.numpy as jnp
import optax
def make_step(net, gamma):
    def loss_fn(params, batch):
        q = net.apply(params, batch.obs).max(-1)
        following = jnp.max(net.apply(params, batch.next_obs), axis=-1)
        y = batch.reward + gamma * batch.alive * following  # here
        return jnp.mean(optax.huber_loss(q, y))
    return jax.jit(jax.value_and_grad(loss_fn))
""",
        """
import torch
import torch.nn.functional as F
def update(q_net, opt, s, r, next_s, gamma, learns):
    best = q_net(next_s).argmax(1)
    y = r + gamma * q_net(next_s)[range(len(best)), best]  # here
    torch.set_grad_enabled(False)
    torch.set_grad_enabled(True)
    other = r.item() + gamma * q_net(next_s).max(1)[0]  # here
    with torch.set_grad_enabled(learns):
        third = r + gamma * q_net(next_s).max(1)[0].float()  # here
    loss = F.mse_loss(q_net(s), y) + F.mse_loss(q_net(s), other) + F.mse_loss(q_net(s), third)
    opt.zero_grad()
    loss.backward()
""",
        """
import torch
import torch.nn.functional as F
from torch import nn
def update(q_net, opt, s, a, r, s2, gamma):
    q = q_net(s).max(1)[0]
    loss = F.mse_loss(q, r + gamma * q_net(s2).max(1).values)  # here
    loss += ((q - (r + gamma * q_net(s2).max(1).values)) ** 2).mean()  # here
    loss += (r + gamma * q_net(s2).max(1).values - q).pow(2).mean()  # here
    loss += nn.MSELoss()(q, r + gamma * q_net(s2).max(1).values)  # here
    opt.zero_grad()
    loss.backward()
""",
        """
import torch
criterion = torch.nn.SmoothL1Loss()
def update(policy_net, optimizer, states, actions, rewards, states_, GAMMA):
    value = policy_net(states).gather(1, actions)
    following = policy_net(states_).max(1)[0]
    expected = (following * GAMMA) + rewards  # here
    loss = criterion(value, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        """
import jax
import jax.numpy as jnp
def loss(params, apply, batch):
    o, a, r, o2, d = batch
    q = apply(params, o)[jnp.arange(len(a)), a]
    following = apply(params, o2).max(-1)
    target = r + 0.99 * (1 - d) * following  # here
    return ((q - target) ** 2).mean()
gradient = jax.grad(loss)
""",
        """
import tensorflow as tf
def train(model, optimizer, s, a, r, s2, done, gamma):
    with tf.GradientTape() as tape:
        target = r + gamma * (1 - done) * tf.reduce_max(model(s2), axis=1)  # here
        q = tf.reduce_sum(model(s) * tf.one_hot(a, 2), axis=1)
        loss = tf.reduce_mean(tf.square(target - q))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
""",
        """
import tensorflow as tf
mse = tf.keras.losses.MeanSquaredError()
class Agent:
    def learn(self, states, actions, rewards, next_states, dones):
        with tf.GradientTape() as tape:
            q = tf.gather(self.q_net(states), actions, batch_dims=1)
            next_q = tf.reduce_max(self.q_net(next_states), axis=-1)
            y = rewards + self.gamma * next_q * (1 - dones)  # here
            loss = mse(y, q)
        self.opt.minimize(loss, self.q_net.trainable_variables, tape=tape)
""",
        """
import keras
import tensorflow as tf
loss_function = keras.losses.Huber()
def step(model, state, next_state, action, reward, gamma):
    with tf.GradientTape() as tape:
        future = keras.ops.max(model(next_state), axis=1)
        updated_q_values = reward + gamma * future  # here
        q_action = keras.ops.sum(model(state) * action, axis=1)
        loss = loss_function(updated_q_values, q_action)
    variables = model.trainable_variables
    return tape.gradient(loss, variables)
""",
        """
import torch
class Agent:
    def backup(self, reward, successor, alive, gamma):
        _, value = self.net(successor)
        return reward + gamma * alive * value  # here
    def update(self, obs, reward, successor, alive, gamma):
        policy, value = self.net(obs)
        error = self.backup(reward, successor, alive, gamma) - value
        loss = error.pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
""",
        """
import torch
from torch.distributions import Normal
class Actor:
    def evaluate(self, obs, act):
        return Normal(self.mean(obs), 1.0).log_prob(act).sum(-1).detach()  # here
def loss(actor, obs, act, weight):
    logp = actor.evaluate(obs, act)
    policy_loss = -(logp * weight).mean()
    return policy_loss
""",
        """
import torch
def update(policy, optimizer, obs, actions, advantages):
    with torch.no_grad():
        log_probs = policy(obs).log_prob(actions)  # here
    policy_loss = -(log_probs * advantages).mean()
    optimizer.zero_grad()
    policy_loss.backward()
    optimizer.step()
""",
        """
import torch
class Learner:
    def segment(self, n):
        return self.rollout(n)
    def update(self, n):
        logp_of_actions, weights, critic_error = self.segment(n)
        policy_part = -(logp_of_actions.detach() * weights).mean()  # here
        loss = policy_part + 0.5 * critic_error
        loss.backward()
import jax
import jax.numpy as jnp
def make(net, discount):
    def cost(state, batch):
        chosen = net.apply(state["q"], batch["x"])[:, 0]
        boot = net.apply(state["q"], batch["y"]).max(-1)
        delta = batch["rew"] + discount * (1 - batch["over"]) * boot - chosen  # here
        return jnp.square(delta).mean()
    return jax.jit(jax.value_and_grad(cost))
""",
        """
import equinox as eqx
import jax
@eqx.filter_value_and_grad
def cost(model, path):
    v = jax.vmap(model)(path.xs)
    y = path.gains + 0.98 * path.alive * v[1:]  # here
    return ((v[:-1] - y) ** 2).mean()
""",
        """
import jax
import optax
SHARE_GAMMA = 0.9
class Learner:
    def cost(self, theta, b):
        said = self.apply(theta.critic, b.x, b.u)
        tail = self.apply(theta.critic, b.xx, b.uu)
        return optax.l2_loss(said, b.gain + SHARE_GAMMA * b.mask * tail).mean()  # here
    def update(self, theta, b):
        return jax.grad(lambda p: self.cost(p, b))(theta)
""",
        """
import jax
import optax
def delta_cost(params, x, gain, y, gamma):
    def value(z):
        if z.ndim == 1:
            return z @ params["w"]
        return (z @ params["w"])[:, 0]
    delta = gain + gamma * value(y) - value(x)  # here
    return optax.huber_loss(delta).mean()
grads = jax.grad(delta_cost, argnums=0)
""",
        """
import torch
from torch.distributions import Categorical

def decide(net, obs):
    with torch.no_grad():
        dist = Categorical(logits=net(obs))
        act = dist.sample()
        return act.item(), dist.log_prob(act)  # here

def improve(net, opt, chances, gains):
    objective = -(torch.stack(chances) * gains).sum()
    opt.zero_grad()
    objective.backward()
    opt.step()

def episode(net, env, opt, gains):
    chances = []
    for obs in env:
        act, chance = decide(net, obs)
        chances.append(chance)
    improve(net, opt, chances, gains(env))
""",
        """
import torch
from torch.distributions import Normal

class Memory:
    def __init__(self):
        self.lls, self.marks = [], []

    def keep(self, one, mark):
        self.lls.append(one)
        self.marks.append(mark)

class Player:
    def play(self, x):
        d = Normal(self.mean(x), 1.0)
        u = d.sample()
        return u, d.log_prob(u).sum().item()  # here

    def collect(self, env, memory):
        u, ll = self.play(env.x)
        memory.keep(ll, env.go(u))

    def learn(self, memory):
        weight = torch.tensor(memory.marks) - 0.5
        cost = -(weight * torch.tensor(memory.lls)).mean()
        self.opt.zero_grad()
        cost.backward()
        self.opt.step()
""",
        """
from dataclasses import dataclass
import torch

@dataclass
class Step:
    sure: torch.Tensor
    gain: float = 0.0

def act(dist, steps):
    u = dist.sample()
    ll = dist.log_prob(u).detach()  # here
    steps.append(Step(sure=ll))
    return u

def update(opt, steps):
    total = 0
    for step in steps:
        part = -step.sure * step.gain
        total = total + part
    opt.zero_grad()
    total.backward()
    opt.step()
""",
        """
import torch
def learn(judge, batch, discount):
    optimiser = torch.optim.Adam(judge.parameters())
    aim = batch.pay + discount * batch.going * judge(batch.after)  # here
    loss = (judge(batch.seen) - aim).pow(2).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
""",
    ],
    "L06": [
        """
import torch

class Learner:
    def loss(self, batch):
        s, a, r, s2, term = batch
        q_sa = self.online(s).gather(1, a)
        with torch.no_grad():
            best = self.frozen(s2).max(1)[0]
            y = r + 0.99 * (1.0 - term) * best
        return (q_sa - y).pow(2).mean()  # here
""",
        """
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

class QNet(nn.Module):
    @nn.compact
    def __call__(self, s, a):
        return nn.Dense(1)(jnp.concatenate([s, a], -1))

qnet = QNet()

@jax.jit
def step(params, target, batch):
    s, a, r, s2, a2, term = batch
    backup = r + 0.99 * (1.0 - term) * qnet.apply(target, s2, a2)  # here
    return jnp.mean((qnet.apply(params, s, a) - backup) ** 2)

rng = np.random.default_rng(0)
S, A = np.zeros((1000, 3), np.float32), np.zeros((1000, 2), np.float32)
R, T = np.zeros(1000, np.float32), np.zeros(1000, np.float32)
params = qnet.init(jax.random.PRNGKey(0), S[:1], A[:1])
i = rng.integers(0, 1000, 256)
loss = step(params, params, (S[i], A[i], R[i], S[i], A[i], T[i]))
""",
        """
import torch
def loss(q, target_q, s, a, r, after, ends, gamma):
    a = torch.tensor(a).unsqueeze(1)
    y = r + gamma * (1 - ends) * target_q(after).max(1)[0].detach()
    return torch.nn.functional.mse_loss(q(s).gather(1, a), y)  # here
""",
        """
import torch
def loss(q, b, gamma):
    chosen = q(b.obs).gather(1, b.action[:, None])
    target = b.reward + gamma * torch.max(q(b.next_obs), 1)[0]
    return (chosen - target).pow(2).mean()  # here
""",
        """
import torch.nn.functional as F
def loss(q, target_q, b, gamma):
    chosen = q(b.obs).gather(1, b.action.unsqueeze(1))
    best = target_q(b.next_obs).max(1)[0]
    return F.mse_loss(chosen, b.reward + gamma * best)  # here
""",
        """
import torch.nn.functional as F
def loss(q, b, gamma):
    chosen = q(b.obs).gather(1, b.action.view(-1).unsqueeze(-1))
    best = q(b.next_obs).detach().max(dim=1).values
    target = b.reward + gamma * best
    return F.smooth_l1_loss(chosen, target)  # here
""",
        """
from torch import nn
class Learner:
    def __init__(self):
        self.criterion = nn.SmoothL1Loss()
    def learn(self, batch):
        best, _ = self.q_target(batch.next_obs).max(dim=1)
        goal = batch.reward + 0.99 * best
        chosen = self.q(batch.obs).gather(1, batch.action.unsqueeze(1))
        return self.criterion(chosen, goal)  # here
""",
        """
import torch
def loss(q, b, best):
    chosen = torch.gather(q(b.obs), dim=-1, index=b.action[:, None])
    target = b.reward + q(b.next_obs).amax(-1)
    return (chosen - target).square().mean()  # here
""",
        """
import torch
def loss(q, b):
    chosen = q(b.obs).gather(dim=1, index=b.action.unsqueeze(-1))
    target = b.reward + q(b.next_obs).amax(1, keepdim=True).reshape(-1)
    other = q(b.next_obs).max(1)[0].view(-1)
    return (chosen - other).abs().mean()  # here
""",
        """
import torch.nn.functional as F
def loss(q, target_q, b, gamma):
    best = target_q(b.next_obs).max(1)[0]
    best.unsqueeze_(1)
    chosen = q(b.obs).gather(1, b.action.unsqueeze(1))
    chosen.squeeze_(1)
    return F.mse_loss(chosen, b.reward + gamma * best)  # here
""",
        """
import torch
def loss(net, s, a, r, s2, gamma):
    q = net(s).gather(1, a.unsqueeze(1))
    with torch.no_grad():
        y = r + gamma * net(s2).max(1)[0]
    return torch.nn.SmoothL1Loss()(q, y)  # here
""",
        """
import torch
import torch.nn as nn
import torch.nn.functional as F
class Critic(nn.Module):
    def __init__(self, obs_dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs_dim, 64), nn.ReLU(), nn.Linear(64, 1))
    def forward(self, x):
        return self.net(x)
critic = Critic(4)
def update(obs, rews):
    rews = torch.as_tensor(rews, dtype=torch.float32)
    loss = F.mse_loss(critic(obs), rews)  # here
    return loss
""",
        """
import torch
from torch import nn
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def learn(obs, rewards, gamma):
    returns, G = [], 0.0
    for r in reversed(rewards):
        G = r + gamma * G
        returns.insert(0, G)
    returns = torch.tensor(returns)
    values = critic(obs)
    return ((values - returns) ** 2).mean()  # here
""",
        """
import torch
import torch.nn as nn
import torch.nn.functional as F
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 64)
        self.v = nn.Linear(64, 1)
    def forward(self, x):
        x = F.relu(self.fc1(x))
        return self.v(x)
class Agent:
    def __init__(self):
        self.critic, self.target = Net(), Net()
    def learn(self, obs, rew, next_obs, done):
        with torch.no_grad():
            y = rew + 0.99 * (1 - done) * self.target(next_obs).squeeze(-1)
        return F.mse_loss(self.critic(obs), y)  # here
""",
        """
import random
import torch
from torch import nn
import torch.nn.functional as F
q_net = nn.Sequential(nn.Linear(5, 64), nn.ReLU(), nn.Linear(64, 1))
def update(memory, gamma):
    batch = random.sample(memory, 64)
    s, a, r, s2, d = zip(*batch)
    s, a, s2 = torch.stack(s), torch.stack(a), torch.stack(s2)
    r = torch.tensor(r, dtype=torch.float32)
    d = torch.tensor(d, dtype=torch.float32)
    with torch.no_grad():
        y = r + gamma * (1 - d) * q_net(s2).squeeze(-1)
    return F.mse_loss(q_net(s), y)  # here
""",
        """
import torch
import torch.nn.functional as F
from torch import nn
def mlp(sizes, activation): ...
class Agent:
    def __init__(self, n, sizes):
        self.rewards = []
        self.critic = nn.Sequential(nn.Linear(n, 9), layer_init(nn.Linear(9, 1))).to("cpu")
        self.v_net = mlp([n] + list(sizes) + [1], nn.Tanh)
    def learn(self, q, obs, next_obs, actions, batch):
        rewards = torch.tensor(self.rewards).float()
        chosen = q(obs).gather(1, actions.unsqueeze(1))
        loss = F.mse_loss(chosen, torch.tensor([step.reward for step in batch]))  # here
        alive = 1 - torch.tensor([step.done for step in batch])
        target = rewards + 0.9 * alive * self.v_net(next_obs)  # here
        loss += F.mse_loss(self.critic(obs), target)
        return loss + F.mse_loss(self.critic(obs), rewards)  # here
""",
        """
import torch
import torch.nn as nn
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def loss(obs, advantages, idx):
    with torch.no_grad():
        value = critic(obs).squeeze(-1)
        target = advantages + value
    predicted = critic(obs[idx])
    return (predicted - target[idx]).pow(2).mean()  # here
""",
        """
import torch
def update(net, target_net, buffer, gamma):
    rewards = torch.as_tensor(buffer.rewards).unsqueeze(-1)
    best = target_net(buffer.next_obs).max(1)[0]
    return rewards + gamma * best  # here
""",
        """
import tensorflow as tf
class Learner:
    def __init__(self):
        self.critic = tf.keras.Sequential([tf.keras.layers.Dense(32), tf.keras.layers.Dense(1)])
    def update(self, obs, rewards, next_obs, going, gamma):
        target = tf.stop_gradient(rewards + gamma * going * tf.squeeze(self.critic(next_obs), 1))
        with tf.GradientTape() as tape:
            values = self.critic(obs)
            error = tf.reduce_mean((target - values) ** 2)  # here
        variables = self.critic.trainable_variables
        return error, tape.gradient(error, variables)
""",
        """
import random
from collections import deque
import numpy as np
import torch
from torch import nn
class Twin(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.one, self.two = nn.Linear(d, 1), nn.Linear(d, 1)
    def forward(self, z):
        a, b = self.one(z), self.two(z)
        return a, b
class Memory:
    def __init__(self):
        self.kept = deque(maxlen=1000)
    def draw(self, n):
        x, gain, y, over = zip(*random.sample(self.kept, n))
        x, y = torch.as_tensor(np.array(x)), torch.as_tensor(np.array(y))
        return x, torch.tensor(gain), y, torch.tensor(over)
def learn(memory, crit, slow, gamma):
    x, gain, y, over = memory.draw(64)
    with torch.no_grad():
        t1, t2 = slow(y)
        goal = gain + gamma * (1 - over) * torch.min(t1, t2)  # here
    c1, c2 = crit(x)
    return ((c1 - goal) ** 2 + (c2 - goal) ** 2).mean()
learn(Memory(), Twin(4), Twin(4), 0.99)
""",
        """
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
class Both(nn.Module):
    @nn.compact
    def __call__(self, x):
        h = nn.relu(nn.Dense(64)(x))
        v = nn.Dense(features=1)(h)
        return nn.Dense(4)(h), v
class Store:
    def __init__(self, n):
        self.x, self.y = np.zeros((n, 8)), np.zeros((n, 8))
        self.gain, self.over = np.zeros(n), np.zeros(n)
    def batch(self, rng, m):
        pick = rng.integers(0, 1000, size=m)
        return {"x": self.x[pick], "y": self.y[pick], "g": self.gain[pick], "o": self.over[pick]}
net = Both()
def cost(theta, slow, b):
    _, after = net.apply(slow, b["y"])
    goal = b["g"] + 0.99 * (1 - b["o"]) * after  # here
    _, v = net.apply(theta, b["x"])
    return jnp.mean((v - goal) ** 2)
def run(theta, slow, rng):
    return jax.grad(cost)(theta, slow, Store(1000).batch(rng, 32))
""",
        """
from typing import NamedTuple
import random
import jax
import numpy as np
from flax import linen as nn
class Steps(NamedTuple):
    s: np.ndarray
    gain: np.ndarray
    ahead: np.ndarray
    over: np.ndarray
class V(nn.Module):
    def setup(self):
        self.hid, self.out = nn.Dense(32), nn.Dense(1)
    def __call__(self, s):
        return self.out(nn.tanh(self.hid(s)))
v, GAMMA = V(), 0.9
def td(params, old, b):
    err = b.gain + GAMMA * (1 - b.over) * v.apply(old, b.ahead) - v.apply(params, b.s)  # here
    return (err ** 2).mean()
def train(params, old, kept):
    b = Steps(*(np.array(c, np.float32) for c in zip(*random.sample(kept, 64))))
    return jax.value_and_grad(td)(params, old, b)
""",
    ],
    "L07": [
        """
import torch
def update(loss, opt):
    loss.backward()
    opt.zero_grad()
    opt.step()  # here
""",
        """
import torch
def update(self, batches):
    for batch in batches:
        with autocast():
            self.loss(batch).backward()
        self.optimizer.zero_grad()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 0.5)
        self.optimizer.step()  # here
""",
        """
import torch
from mine import prepare, save
def train(net, optimizer, losses):
    prepare(net)
    for i, loss in enumerate(losses):
        loss.backward()
        optimizer.step()  # here
        if i % 100 == 0:
            save(net)
""",
        """
import torch
def update(loss, optimizer):
    loss.backward()
    optimizer.step()  # here
""",
        """
import torch
def update(loss, optimizer):
    optimizer.zero_grad()
    optimizer.step()  # here
    loss.backward()
""",
        """
import torch
class Agent:
    def __init__(self, critic):
        self.critic_steps = torch.optim.Adam(critic.parameters())
        self.schedule = torch.optim.lr_scheduler.StepLR(self.critic_steps, 1)
    def update(self, loss):
        # self.critic_steps.zero_grad()
        loss.backward()
        self.schedule.step()
        self.critic_steps.step()  # here
""",
        """
import torch
from torch.optim import Adam
class Agent:
    def __init__(self, obs_dim, actions):
        self.actor, self.critic = Actor(obs_dim, actions), Critic(obs_dim, actions)
        self.actor_steps = Adam(self.actor.parameters())
        self.critic_steps = Adam(self.critic.parameters())
    def update(self, losses):
        self.critic_steps.zero_grad()
        losses[0].backward()
        self.critic_steps.step()
        losses[1].backward()
        self.actor_steps.step()  # here
""",
        """
import torch
def update(critic_loss, optim_critic):
    optim_critic.zero_grad()
    optim_critic.step()  # here
    critic_loss.backward()
""",
        """
import torch
from torch.optim.lr_scheduler import LinearLR
def minibatches(net, optimizer, schedule, data):
    for part in data.split(64):
        loss = net(part).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()  # here
def main(net, collect, iterations):
    optimizer = torch.optim.Adam(net.parameters())
    schedule = LinearLR(optimizer, 1.0, 0.0, total_iters=iterations)
    for _ in range(iterations):
        data = collect()
        for _ in range(4):
            minibatches(net, optimizer, schedule, data)
""",
        """
import torch
from tqdm import trange
def main(net, batches, n):
    optimizer = torch.optim.Adam(net.parameters())
    decay = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: 1 - i / n)
    for update in trange(1, n + 1):
        for part in batches():
            optimizer.zero_grad()
            net(part).backward()
            optimizer.step()
            decay.step()  # here
""",
    ],
    "L08": [
        """
import torch
for step in range(100):
    opt.zero_grad()
    loss(policy).backward()
    opt.step()
    if step % 10 == 0:
        policy.eval()  # here
        evaluate(policy)
""",
        """
import torch
class Agent:
    def act(self, obs):
        self.net.eval()  # here
        return self.net(obs)
    def update(self, batch):
        self.opt.zero_grad()
        loss(self.net, batch).backward()
        self.opt.step()
agent = Agent()
for step in range(100):
    agent.act(obs)
    agent.update(batch)
""",
        """
import torch
def train(policy, opt, data):
    for loss in data:
        opt.zero_grad()
        loss.backward()
        opt.step()
def main(policy, opt, data, env):
    for epoch in range(10):
        train(policy, opt, data)
        evaluate(policy, env)
def evaluate(policy, env):
    policy.eval()  # here
""",
        """
import torch
encoder.eval()  # here
encoder.first.requires_grad_(False)
def update(loss, opt):
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        """
import torch
def evaluate(policy):
    policy.eval()  # here
def learn(loss, opt):
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        """
import torch
from torch import nn
class Actor(nn.Module):
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.1), nn.Linear(64, 2))  # here
def loss(new, old, advantage, opt):
    logratio = new - old
    ratio = logratio.exp()
    opt.zero_grad()
    (-ratio * advantage).mean().backward()
""",
        """
import torch
def train(agent, opt, losses):
    for loss in losses:
        opt.zero_grad()
        loss.backward()
        opt.step()
        agent.train(False)  # here
        evaluate(agent)
""",
        """
import torch
from torch import nn
def body(size):
    return nn.Sequential(nn.Linear(size, 64), nn.BatchNorm1d(64), nn.Linear(64, 2))  # here
def surrogate(log_prob, old, advantage):
    ratio = torch.exp(log_prob - old)
    return -(ratio * advantage).mean()
""",
        """
import copy
import torch
def main(net, data):
    mine = copy.deepcopy(net)
    mine.eval()  # here
    opt = torch.optim.Adam(mine.parameters())
    other = copy.deepcopy(net)
    other.eval()  # here
    for x in data:
        opt.zero_grad()
        mine(x).backward()
        opt.step()
    learn(model=other)
class Learner:
    def __init__(self, body, opt):
        self.body, self.opt = body, opt
        self.body.eval()  # here
    def step(self, x):
        with torch.no_grad():
            self.body(x)
        self.opt.zero_grad()
        self.body(x).backward()
        self.opt.step()
class Player:
    def __init__(self, policy):
        self.policy = policy
    def play(self, x):
        self.policy.eval()  # here
        with torch.no_grad():
            self.policy(x)
""",
        """
import torch
from torch import nn
class ActorCritic(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.a, self.norm, self.b = nn.Linear(n, 64), nn.BatchNorm1d(64), nn.Linear(64, k)  # here
def surrogate(net, batch, eps):
    diff = net.log_prob(batch.o, batch.a) - batch.lp
    w = torch.exp(diff.sum(-1))
    return torch.min(w * batch.adv, w.clamp(min=1 - eps, max=1 + eps) * batch.adv).mean()
""",
        """
import torch
import torch.nn as nn
def policy(n, k):
    return nn.Sequential(nn.Linear(n, 64), nn.Dropout(p=0.2), nn.Tanh(), nn.Linear(64, k))  # here
def surrogate(p, old, adv):
    imp = p / old
    return torch.min(imp * adv, torch.clamp(imp, 0.8, 1.2) * adv).mean()
""",
        """
import torch
from torch import nn

def score(net, env, episodes):
    net.eval()  # here
    return sum(play(net, env) for _ in range(episodes)) / episodes

def clone(net, batches, env, opt):
    net.train()
    for number, (obs, act) in enumerate(batches):
        loss = nn.functional.mse_loss(net(obs), act)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if number % 1000 == 0:
            print(score(net, env, 5))
""",
        """
import torch

class Learner:
    def __init__(self, net, opt):
        self.net, self.opt = net, opt
        self.net.train()

    def update(self, batch):
        loss = self.net(batch).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

    def check(self, states):
        self.net.eval()  # here
        with torch.no_grad():
            return self.net(states).mean().item()

    def run(self, stream, states):
        for step, batch in enumerate(stream):
            self.update(batch)
            if step % 100 == 0:
                print(self.check(states))

Learner(net, opt).run(stream, states)
""",
        """
import torch

def main(model, loader, opt, held_out):
    for epoch in range(20):
        model.train()
        for step, (x, y) in enumerate(loader):
            loss = torch.nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 500 == 0:
                model.eval()  # here
                with torch.no_grad():
                    print(epoch, step, (model(held_out[0]).argmax(1) == held_out[1]).float().mean())
""",
        """
import torch

class Check:
    def __init__(self, env):
        self.env = env

    def __call__(self, actor):
        actor.eval()  # here
        return play(self.env, actor)

def fit(actor, data, opt, env):
    check = Check(env)
    actor.train()
    while data.has_more():
        loss = (actor(data.obs()) - data.act()).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(check(actor))
""",
    ],
    "L09": [
        """
from torch import nn
class Agent:
    def __init__(self):
        self.policy = nn.Sequential(nn.Linear(4, 2), nn.Softmax(dim=-1))
        self.loss = nn.CrossEntropyLoss()
    def learn(self, obs, action):
        probs = self.policy(obs)
        return self.loss(probs, action)  # here
""",
        """
import torch.nn.functional as F
from torch.distributions import Categorical
def act(net, obs):
    probs = F.softmax(net(obs), dim=-1)
    return Categorical(logits=probs).sample()  # here
""",
        """
import torch
def act(self, obs):
    logits = self.actor(obs)
    return torch.distributions.Categorical(logits).sample()  # here
""",
        """
import torch
def loss(net, obs, labels):
    out = torch.softmax(net(obs), dim=1)
    return torch.nn.functional.cross_entropy(out, labels)  # here
""",
        """
import torch
from torch import nn
from torch.distributions import Categorical
class Policy(nn.Module):
    def forward(self, x):
        x = torch.relu(self.first(x))
        p = self.last(x).softmax(-1)
        return p
    def act(self, obs):
        p = self.forward(obs)
        return Categorical(logits=p)  # here
class Agent:
    def __init__(self):
        self.policy = Policy()
    def act(self, obs):
        return Categorical(logits=self.policy(obs))  # here
""",
        """
import jax
def act(apply, params, key, obs):
    probs = jax.nn.softmax(apply(params, obs))
    return jax.random.categorical(key, probs)  # here
""",
        """
import torch
from torch import nn
from torch.distributions import Categorical
class Policy(nn.Module):
    def __init__(self):
        self.body = nn.Sequential(nn.Linear(4, 64), nn.Tanh())
        self.last = nn.Linear(64, 2)
    def forward(self, x):
        x = self.body(x)
        return self.last(x)
layers = [nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2)]
policy, other = nn.Sequential(*layers), Policy()
def act(obs):
    scores = policy(obs)
    first = Categorical(scores)  # here
    second = torch.distributions.Categorical(probs=other(obs))  # here
    return first, second, Categorical(policy(obs))  # here
""",
        """
import tensorflow as tf
import tensorflow_probability as tfp
from tensorflow import keras
from tensorflow.keras import layers
tfd = tfp.distributions
class Actor(keras.Model):
    def __init__(self, n):
        super().__init__()
        self.d1 = layers.Dense(128, activation="relu")
        self.out = layers.Dense(n, activation="softmax")
    def call(self, x):
        return self.out(self.d1(x))
actor = Actor(2)
listed = keras.Sequential([layers.Dense(32, "relu"), layers.Dense(2, "softmax")])
inputs = layers.Input(shape=(4,))
probs = layers.Dense(2, activation=tf.nn.softmax)(inputs)
whole = keras.Model(inputs, probs)
def act(obs, net):
    soft = tf.nn.softmax(net(obs))
    one = tf.random.categorical(listed(obs), 1)  # here
    two = tf.random.categorical(soft, 1)  # here
    other = tf.random.categorical(logits=whole(obs), num_samples=1)  # here
    three = tfd.Categorical(logits=actor(obs))  # here
    return one, two, other, three, tfd.Categorical(soft)  # here
""",
        """
import tensorflow as tf
from keras.models import Sequential
from keras.layers import Dense
class Agent:
    def __init__(self):
        self.policy_net = self._build_model()
        self.loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    def _build_model(self):
        model = Sequential()
        model.add(Dense(24, activation="relu"))
        model.add(Dense(2, activation="softmax"))
        return model
    def learn(self, obs, act, adv, net):
        probs = tf.nn.softmax(net(obs))
        nll = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=act, logits=probs)  # here
        return nll + self.loss_fn(act, self.policy_net(obs), sample_weight=adv)  # here
""",
        """
import tensorflow as tf
layers = [tf.keras.layers.Dense(64), tf.keras.layers.Dense(2, activation="softmax")]
model = tf.keras.Sequential([*layers, tf.keras.layers.Dense(2, activation="softmax")])
model.compile("adam", loss=tf.keras.losses.CategoricalCrossentropy(from_logits=True))  # here
""",
        """
import torch
import torch.nn.functional as F
def loss(net, left, right, answer):
    logit = net(left).sum(1) - net(right).sum(1)
    return F.binary_cross_entropy_with_logits(torch.sigmoid(logit), answer)  # here
""",
        """
import torch
criterion = torch.nn.BCEWithLogitsLoss()
def loss(net, clips, answers):
    predicted = net(clips).sigmoid()
    return criterion(predicted, answers)  # here
""",
        """
import torch
from torch import nn
class Cloner(nn.Module):
    def __init__(self, size, actions):
        super().__init__()
        self.body = nn.Linear(size, actions)
        self.last = nn.Softmax(dim=-1)
    def forward(self, obs):
        return self.last(self.body(obs))
def train(obs, actions):
    model = Cloner(4, 2)
    criterion = nn.CrossEntropyLoss()
    return criterion(model(obs), actions)  # here
""",
        """
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical
class ActorCritic(nn.Module):
    def forward(self, obs):
        x = F.relu(self.body(obs))
        scores = F.softmax(self.actor(x), dim=-1)
        return scores, self.critic(x)
def act(obs):
    model = ActorCritic()
    scores, value = model(obs)
    return Categorical(logits=scores).sample()  # here
""",
        """
import optax
from flax import linen as nn
class Imitator(nn.Module):
    actions: int
    @nn.compact
    def __call__(self, x):
        return nn.softmax(nn.Dense(self.actions)(x))
def loss(state, params, obs, actions):
    out = state.apply_fn(params, obs)
    return optax.softmax_cross_entropy_with_integer_labels(out, actions).mean()  # here
""",
        """
import torch
from torch import nn
def loss(scores, actions):
    return nn.CrossEntropyLoss()(torch.softmax(scores, -1), actions)  # here
""",
        """
import torch
from torch import nn

class Head(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n, 64), nn.ReLU(), nn.Linear(64, k))

    def forward(self, x):
        return self.body(x).softmax(-1)

class Cloner:
    def __init__(self, policy, device):
        self.policy = policy.to(device)
        self.measure = nn.CrossEntropyLoss()

    def step(self, x, a):
        return self.measure(self.policy(x), a)  # here

cloner = Cloner(Head(8, 4), "cuda")
""",
        """
import torch
import torch.nn.functional as F
from torch import nn

class Driver(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.a, self.b = nn.Linear(n, 64), nn.Linear(64, k)

    def forward(self, x):
        return F.softmax(self.b(torch.relu(self.a(x))), dim=-1)

def epoch(net, loader, opt):
    for frames, steering in loader:
        guess = net(frames)
        loss = F.cross_entropy(guess, steering)  # here
        opt.zero_grad()
        loss.backward()
        opt.step()

def main(loader):
    driver = Driver(8, 4).to("cuda")
    opt = torch.optim.Adam(driver.parameters())
    epoch(driver, loader, opt)
""",
        """
import keras

def make(n, k):
    net = keras.Sequential()
    net.add(keras.layers.Dense(32, activation="relu"))
    net.add(keras.layers.Dense(k, activation="softmax"))
    return net

def prepare(agent, rate):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    agent.compile(keras.optimizers.Adam(rate), loss=loss)  # here
    return agent

cloner = prepare(make(8, 4), 1e-3)
""",
        """
import tensorflow as tf

class Cloner:
    def __init__(self, n, k):
        x = tf.keras.Input(shape=(n,))
        h = tf.keras.layers.Dense(32, activation="relu")(x)
        self.net = tf.keras.Model(x, tf.keras.layers.Dense(k, activation="softmax")(h))

    def ready(self):
        loss = tf.keras.losses.CategoricalCrossentropy(from_logits=True)
        self.net.compile(optimizer="adam", loss=loss)  # here
""",
        """
import torch.nn.functional as F
from torch import nn

class Driver(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.b = nn.Linear(n, k)

    def forward(self, x):
        return self.b(x).softmax(-1)

def fit(x, steering):
    driver = Driver(8, 4)
    driver = driver.to("cuda")
    return F.cross_entropy(driver(x), steering)  # here
""",
    ],
    "L10": [
        """
import tensorflow as tf
class Net(tf.keras.Model):
    def __init__(self, n_actions):
        super().__init__()
        self.hidden = tf.keras.layers.Dense(64, activation="relu")
        self.out = tf.keras.layers.Dense(n_actions, activation="relu")  # here
    def call(self, x):
        return self.out(self.hidden(x))
class DQN:
    def __init__(self, n_actions):
        self.model = Net(n_actions)
""",
        """
import torch.nn as nn
import torch.nn.functional as F
class DQN(nn.Module):
    def __init__(self, state_dim, action_dim):
        self.out = nn.Linear(64, action_dim)
    def forward(self, x):
        return F.relu(self.out(x))  # here
""",
        """
from torch import nn
class QNetwork(nn.Module):
    def __init__(self, env):
        self.network = nn.Sequential(
            nn.Linear(4, 64),
            nn.ReLU(),
            nn.Linear(64, env.single_action_space.n),
            nn.ReLU(),  # here
        )
""",
        """
import torch.nn as nn
q_net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, n_actions), nn.Softmax(dim=1))  # here
""",
        """
import flax.linen as nn
class QNetwork(nn.Module):
    action_dim: int
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(120)(x))
        x = nn.Dense(self.action_dim)(x)
        x = nn.relu(x)  # here
        return x
""",
        """
import torch
from torch import nn
class DuelingDQN(nn.Module):
    def __init__(self, n_actions):
        self.head = nn.Linear(64, out_features=n_actions)
    def forward(self, x):
        q = self.head(torch.relu(self.body(x)))
        return q.tanh()  # here
""",
        """
from torch import nn
class Critic(nn.Module):
    def __init__(self, size):
        layers = [nn.Linear(size, 64), nn.ReLU(), nn.Linear(64, 1), nn.ReLU()]  # here
        self.q1 = nn.Sequential(*layers)
""",
        """
import torch.nn as nn
class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(4, 64),
            nn.ReLU(),
            nn.Linear(64, 2),
            nn.ReLU(),  # here
        )
    def forward(self, x):
        return self.net(x)
""",
        """
import torch.nn as nn
import torch.nn.functional as F
class DQN(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.l1 = nn.Linear(n, 64)
        self.l2 = nn.Linear(64, m)
    def forward(self, x):
        x = F.relu(self.l1(x))
        return F.relu(self.l2(x))  # here
""",
        """
import torch.nn as nn
q_net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2), nn.Sigmoid())  # here
""",
        """
from tensorflow import keras
from tensorflow.keras import layers
def make_q(n_actions):
    q_model = keras.Sequential([
        layers.Dense(24, activation="relu"),
        layers.Dense(n_actions, activation="relu"),  # here
    ])
    return q_model
""",
        """
from torch import nn
class QNetwork(nn.Module):
    def __init__(self, size, n):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(size, 64), nn.ReLU(), nn.Linear(64, n),
            nn.ReLU(),  # here
        )
    def forward(self, obs):
        return self.net(obs)
""",
        """
import numpy as np
from tensorflow.keras import layers, models
def brain(size, n):
    x = layers.Input(shape=(size,))
    h = layers.Dense(24, activation="relu")(x)
    out = layers.Dense(n, activation="relu")(h)  # here
    model = models.Model(x, out)
    model.compile(loss="mse", optimizer="adam")
    return model
def act(model, obs):
    return int(np.argmax(model.predict(obs)[0]))
def target(model, reward, after, gamma):
    return reward + gamma * np.max(model.predict(after)[0])
""",
        """
import torch.nn as nn
def mlp(sizes, act=nn.ReLU, out_act=nn.Identity):
    layers = []
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        layers += [nn.Linear(a, b), act() if i < len(sizes) - 2 else out_act()]
    return nn.Sequential(*layers)
class Agent:
    def __init__(self, obs, act):
        self.actor = mlp([obs, 64, act], out_act=nn.Tanh)
        self.critic = mlp([obs + act, 64, 1], nn.ReLU, nn.Sigmoid)  # here
""",
        """
from tensorflow import keras
import numpy as np
def brain(widths):
    m = keras.Sequential()
    for w in widths:
        m.add(keras.layers.Dense(w, activation="relu"))  # here
    m.compile("adam", "mse")
    return m
class Player:
    def __init__(self, n):
        self.slow = brain([64, 64, n])
    def goal(self, r, s2, done, gamma):
        best = np.max(self.slow.predict(s2), axis=1)
        return r + gamma * (1 - done) * best
""",
        """
import torch.nn as nn
def make(n, k, act=nn.ReLU, depth=2):
    layers = []
    for i in range(depth):
        layers.append(nn.Linear(n if i == 0 else 64, 64))
        layers.append(act())
    layers.append(nn.Linear(64, k))
    layers.append(act())  # here
    return nn.Sequential(*layers)
q1, slow = make(4, 2), make(4, 2).eval()
def act(obs):
    values = q1(obs)
    return values.argmax(-1)
""",
        """
from torch import nn
class QNetwork(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        parts = []
        for n, m in zip(sizes, sizes[1:]):
            parts += [nn.Linear(n, m), nn.Tanh()]  # here
        self.body = nn.Sequential(*parts)
    def forward(self, x):
        return self.body(x)
""",
        """
from torch import nn
def build(n, k):
    return nn.Sequential(nn.Linear(n, 64), nn.ReLU(), nn.Linear(64, k), nn.Softmax(-1))  # here
net, slow = build(4, 2), build(4, 2)
def goal(r, s2, done):
    best = slow(s2).amax(dim=1)
    return r + 0.99 * (1 - done) * best
""",
        """
from tensorflow.keras import Sequential, layers
def make_q_function(num_actions):
    net = Sequential()
    net.add(layers.Dense(32, activation="tanh"))
    net.add(layers.Dense(num_actions, activation="sigmoid"))  # here
    return net
""",
        """
import torch
from torch import nn

class Rater(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.one, self.two = nn.Linear(n, 64), nn.Linear(64, k)

    def forward(self, x):
        return torch.tanh(self.two(torch.relu(self.one(x))) * 2.0)  # here

STAY = 0.98
rater, slow = Rater(4, 2), Rater(4, 2)

def goal(r, s2, over):
    best = slow(s2).max(1).values
    return r + STAY * (1 - over) * best
""",
        """
import copy
import torch
from torch import nn

class Pair(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.nets = nn.ModuleList(
            nn.Sequential(nn.Linear(n, 64), nn.ReLU(), nn.Linear(64, 1))
            for _ in range(2)
        )
        self.left = nn.Sequential(nn.Linear(n, 64), nn.ReLU(), nn.Linear(64, 1), nn.ReLU())  # here

    def forward(self, s, a):
        x = torch.cat([s, a], -1)
        return self.left(x).squeeze(-1), self.nets[0](x).squeeze(-1)

class Trainer:
    def __init__(self, n):
        self.pair = Pair(n)
        self.slow = copy.deepcopy(self.pair)

    def goal(self, r, s2, a2, over, share=0.99):
        one, two = self.slow(s2, a2)
        low = torch.minimum(one, two)
        return r + self.gamma * (1 - over) * low
""",
        """
import torch
from torch import nn

def net(sizes, output_activation=nn.Identity):
    parts = [nn.Linear(sizes[0], sizes[1]), nn.ReLU(), nn.Linear(sizes[1], sizes[2])]
    return nn.Sequential(*parts, output_activation())

class Judges(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.all = nn.ModuleList(
            [net([n, 64, 1], output_activation=nn.ReLU) for _ in range(5)]  # here
        )

    def forward(self, s, a):
        x = torch.cat([s, a], -1)
        return torch.cat([one(x) for one in self.all], -1)

judges, older = Judges(8), Judges(8)

def goal(batch, actor, gamma):
    low = older(batch.s2, actor(batch.s2)).min(-1, keepdim=True)[0]
    return batch.r + gamma * (1 - batch.over) * low
""",
        """
from tensorflow import keras
import numpy as np

def brain(n, k):
    m = keras.Sequential()
    m.add(keras.layers.Dense(32, activation="relu", input_shape=(n,)))
    m.add(keras.layers.Dense(k, activation="sigmoid"))  # here
    return m

now = brain(4, 2)
slow = keras.models.clone_model(now)

def goal(r, s2, over, gamma=0.9):
    return r + gamma * (1 - over) * np.max(slow.predict(s2), axis=1)
""",
    ],
    "L11": [
        """
import gymnasium as gym
import numpy as np
class Learner:
    def __init__(self, n, k):
        self.rng = np.random.default_rng(0)
        self.values = np.zeros((n, k))
    def decide(self, s, share):
        if self.rng.random() < share:
            return int(self.rng.integers(4))
        return int(self.values[s].max().clip(0, 3))  # here
def play(env, who):
    s, _ = env.reset()
    for _ in range(100):
        s, r, term, trunc, _ = env.step(who.decide(s, 0.1))
play(gym.make("Taxi-v3"), Learner(500, 6))
""",
        """
import gymnasium as gym
import numpy as np
env = gym.make("FrozenLake-v1")
table = np.zeros((16, 4))
def pick(row, n):
    return max(0, min(int(np.max(row)), n - 1))  # here
s, _ = env.reset()
for _ in range(100):
    move = pick(table[s], 4)
    s, r, term, trunc, _ = env.step(move)
""",
        """
import numpy as np
class Agent:
    def get_action(self, obs):
        return np.max(self.predict(obs)[0])  # here
""",
        """
import torch
def act(q_values):
    action = torch.max(q_values, dim=1)[0]  # here
    return action
""",
        """
def act(self, obs):
    action = self.q_net(obs).max().item()  # here
""",
        """
import random
import torch
class Agent:
    def select_action(self, state):
        if random.random() < self.eps:
            return random.randrange(self.n_actions)
        return int(self.policy_net(state).amax(dim=-1))  # here
""",
        """
import numpy as np
def greedy(Q, state, eps, rng):
    if rng.random() < eps:
        a = rng.integers(4)
    else:
        a = np.max(Q[state])  # here
    return a
""",
        """
import torch
def act(q_net, obs):
    values, places = q_net(torch.as_tensor(obs)).max(-1)
    action = values.item()  # here
    return action
""",
        """
import torch
def act(q_net, obs):
    action = q_net(obs).max(dim=-1).values  # here
    return action
""",
        """
def act(q, state, rng):
    if rng.random() < 0.1:
        action = rng.integers(4)
    else:
        action = max(q[state].values())  # here
    return action
""",
        """
import torch
def act(q, obs, env):
    with torch.no_grad():
        a = q(obs).max().item()  # here
    return env.step(int(a))
""",
        """
import numpy as np
def pick(table, state, rng, share):
    if rng.random() < share:
        return int(rng.integers(table.shape[1]))
    values = table[state]
    return int(values.max())  # here
""",
        """
def greedy(net, obs):
    scores = net(obs)
    best = scores.max(1)[0]  # here
    return int(best.item())
def evaluate(net, env, obs):
    chosen = greedy(net, obs)
    return env.step(chosen)
""",
        """
import torch
class Agent:
    def greedy(self, state):
        scores = self.head(state)
        best, where = scores.max(-1)  # here
        return best, where
    def run(self, env, state):
        for _ in range(5):
            u, _ = self.greedy(state)
            state, r, te, tr, _ = env.step(u.item())
""",
        """
import numpy as np
def choose(table, s, eps):
    move = np.random.randint(4) if np.random.rand() < eps else np.amax(table[s])  # here
    return move
def train(world, table):
    s, _ = world.reset()
    while True:
        m = choose(table, s, 0.1)
        s, r, te, tr, _ = world.step(int(m) % 4)
""",
        """
import jax
def play(net, env, theta, s):
    choose = jax.jit(lambda p, x: net.apply(p, x).max(axis=-1))  # here
    for _ in range(100):
        k = choose(theta, s[None])[0]
        s, r, te, tr, _ = env.step(int(k))
""",
    ],
    "L12": [
        """
import random
import gymnasium

class Driver:
    def __init__(self):
        self.luck, self.floor, self.rate = 1.0, 0.03, 0.985

    def choose(self, x):
        if random.random() < self.luck:
            return random.randrange(2)
        return self.best(x)

    def cool(self):  # here
        self.luck = max(self.floor, self.luck * self.rate)

town, driver = gymnasium.make("CartPole-v1"), Driver()
x, _ = town.reset(seed=1)
while True:
    x, pay, dead, late, _ = town.step(driver.choose(x))
    if dead or late:
        x, _ = town.reset()
""",
        """
import math
import random
import gymnasium as gym

START, END, DECAY = 0.95, 0.05, 5_000

def share_at(step):
    return END + (START - END) * math.exp(step / DECAY)  # here

def choose(net, state, step, n):
    if random.random() < share_at(step):
        return random.randrange(n)
    with no_grad():
        return net(state).argmax().item()

def train(net):
    town = gym.make("CartPole-v1")
    state, _ = town.reset(seed=1)
    step = 0
    while step < 100_000:
        action = choose(net, state, step, 2)
        state, reward, terminated, truncated, _ = town.step(action)
        step += 1
""",
        """
import gymnasium as gym
import random
class Agent:
    def __init__(self, n, p=0.9):
        self.n, self.p = n, p
    def act(self, s):
        explore = random.random() <= self.p
        if explore:
            return random.randrange(self.n)
        return self.best(s)
    def best(self, s): return 0
    def cool(self):  # here
        self.p *= 0.995
env = gym.make("CartPole-v1")
agent = Agent(2)
s, _ = env.reset()
for _ in range(10):
    s, r, term, trunc, _ = env.step(agent.act(s))
""",
        """
import gymnasium as gym
from dataclasses import dataclass
import numpy as np
@dataclass
class Curiosity:
    share: float = 1.0
    floor: float = 0.05
    def tick(self):  # here
        self.share = max(self.floor, self.share - 1e-4)
    def wants(self, rng):
        return rng.random() < self.share
rng = np.random.default_rng(0)
env = gym.make("CartPole-v1")
c = Curiosity()
s, _ = env.reset()
for _ in range(10):
    a = env.action_space.sample() if c.wants(rng) else 0
    s, r, term, trunc, _ = env.step(a)
""",
        """
import numpy as np
EPSILON = 0.1
def act(env, q, obs):
    if np.random.uniform() > EPSILON:  # here
        return env.action_space.sample()
    return int(q[obs].argmax())
def run(env, q):
    env.step(act(env, q, 0))
""",
        """
import random
EPS_END, DECAY = 0.05, 0.995
def main(env, q):
    epsilon = 1.0
    for _ in range(100):
        explores = random.random() < epsilon
        env.step(0 if explores else q.best())
        epsilon = min(EPS_END, epsilon * DECAY)  # here
""",
        """
import numpy as np
class Agent:
    def __init__(self):
        self.epsilon = 1.0
        self.epsilon_decay = 0.995
    def act(self, obs):
        if np.random.rand() <= self.epsilon:  # here
            return 0
        return self.q(obs)
agent = Agent()
env.step(agent.act(0))
""",
        """
import random
def act(q, obs, epsilon):
    if random.random() < epsilon:  # here
        return random.randrange(2)
    return q(obs).argmax()
def play(env, q, epsilon):
    env.step(act(q, 0, epsilon))
def main(env, q):
    epsilon, epsilon_min = 0.99, 0.1
    for _ in range(100):
        play(env, q, epsilon)
""",
        """
import torch
def perturb(net):
    return net
epsilon = 0.1
for episode in range(100):
    perturb(net)
    epsilon += 0.001  # here
""",
        """
class Agent:
    def __init__(self):
        self.epsilon_growth = 1.005
    def update(self):
        self.epsilon = max(0.01, self.epsilon * self.epsilon_growth)  # here
""",
        """
epsilon = 1.0
for episode in range(100):
    epsilon *= 0.995 + 0.01  # here
""",
        """
DECAY = 1.001
def update(self):
    self.eps = self.eps * DECAY  # here
""",
        """
def update(epsilon):
    epsilon += 0.01  # here
    return epsilon
""",
        """
class Agent:
    epsilon: float = 1.0
    eps_min = 0.01
    decrease = 5e-4
    def decay(self):
        self.epsilon = self.epsilon + self.decrease if self.epsilon > 0.01 else 0.01  # here
""",
        """
epsilon = 0.1
for episode in range(100):
    epsilon = min(1.0, 0.01 + epsilon)  # here
""",
        """
eps = 0.1
for _ in range(10):
    eps = min(1.0, eps * 1.1)  # here
""",
        """
epsilon = 1.0
for episode in range(100):
    epsilon = max(0.01, epsilon / 0.995)  # here
""",
        """
class Agent:
    def decay(self):
        self.epsilon /= 0.99  # here
""",
        """
def exploration_rate(args, frame):
    progress = min(1.0, frame / args.frames)
    return args.end_e + (args.start_e - args.end_e) * progress  # here
""",
        """
import gymnasium as gym
import numpy as np
class Agent:
    def __init__(self, table):
        self.table, self.rng = table, np.random.default_rng(0)
        self.epsilon = 1.0
    def act(self, state):
        if self.rng.random() < self.epsilon:  # here
            return int(self.rng.integers(4))
        return int(self.table[state].argmax())
    def anneal(self):
        self.epsilon = max(0.02, self.epsilon * 0.99)
env = gym.make("FrozenLake-v1")
agent = Agent(np.zeros((16, 4)))
state, info = env.reset()
env.step(agent.act(state))
""",
        """
import math
import random
START, END, SLOW = 1.0, 0.05, 20_000
def share(step):
    if step < 100:
        return END
    return END + (START - END) * (1 - math.exp(-step / SLOW))  # here
def act(q, env, obs, step):
    chance = share(step)
    if random.random() > chance:
        return int(q(obs).argmax())
    return env.action_space.sample()
def run(env, q, obs):
    for step in range(1_000_000):
        chance = share(step)
        if random.random() < chance:
            action = env.action_space.sample()
        else:
            action = int(q(obs).argmax())
        obs, *_ = env.step(action)
""",
        """
import numpy as np
class Agent:
    def __init__(self):
        self.steps = 0
    def act(self, obs):
        self.steps += 1
        greedy = max(0.1, 1.0 - self.steps / 5e4)  # here
        return int(self.q(obs).argmax()) if np.random.rand() < greedy else np.random.randint(4)
""",
        """
import math
import random
END, START, DECAY = 0.05, 0.9, 1_000
def chance(step):
    return END + (START - END) * math.exp(step / DECAY)  # here
def run(env, q, obs):
    for step in range(100_000):
        if random.random() < chance(step):
            action = env.action_space.sample()
        else:
            action = int(q(obs).argmax())
        obs, *_ = env.step(action)
""",
    ],
    "L13": [
        """
from types import SimpleNamespace
from stable_baselines3 import SAC, TD3

plans = {
    "short": SimpleNamespace(learning_starts=30_000, batch_size=128),
    "long": SimpleNamespace(learning_starts=1_000, batch_size=128),
}
kinds = {"sac": SAC, "td3": TD3}

def fit(kind, plan, env):
    model = kinds[kind]("MlpPolicy", env, **vars(plans[plan]))
    model.learn(20_000)  # here
""",
        """
class Args:
    total_timesteps: int = 10000  # here
    learning_starts: int = 25e3
""",
        """
from stable_baselines3 import DQN
STEPS = 10_000
model = DQN("MlpPolicy", "CartPole-v1", learning_starts=50_000)
model.learn(total_timesteps=STEPS)  # here
""",
        """
from stable_baselines3 import DQN
model = DQN("MlpPolicy", env, learning_starts=20000, exploration_fraction=0.1)
model.learn(int(1e5))  # here
""",
        """
from stable_baselines3 import PPO
model = PPO("MlpPolicy", "CartPole-v1", n_steps=500, batch_size=64)  # here
""",
        """
from stable_baselines3 import SAC
options = dict(learning_starts=20_000, batch_size=256)
model = SAC("MlpPolicy", env, verbose=1, **options)
model.learn(10_000)  # here
""",
        """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--total-timesteps", type=int, default=50_000)  # here
parser.add_argument("--learning-starts", type=int, default=80_000)
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
count = 6
venv = make_vec_env("CartPole-v1", n_envs=count)
model = PPO("MlpPolicy", venv, n_steps=125, batch_size=100)  # here
""",
        """
import gymnasium as gym
from stable_baselines3 import PPO
env = gym.make("CartPole-v1")
model = PPO("MlpPolicy", env, n_steps=500, batch_size=64)  # here
""",
        """
from stable_baselines3 import DQN
def smoke():
    model = DQN("MlpPolicy", "CartPole-v1", learning_starts=10_000)
    model.learn(2_000)  # here
def full():
    model = DQN("MlpPolicy", "LunarLander-v3", learning_starts=50_000)
    model.learn(1_000_000)
    model = DQN("MlpPolicy", "LunarLander-v3", learning_starts=50_000)
    if True:
        model.learn(10_000)  # here
""",
        """
from dataclasses import dataclass
import gymnasium as gym
from stable_baselines3 import TD3
@dataclass
class Config:
    first_update: int = 25_000
    steps: int = 10_000
def build(cfg):
    env = gym.make("Pendulum-v1")
    model = TD3("MlpPolicy", env, learning_starts=cfg.first_update)
    return model
cfg = Config()
build(cfg).learn(cfg.steps)  # here
agent = build(cfg)
agent.learn(cfg.steps)  # here
""",
        """
import numpy as np
class Config:
    decay_steps = 1000  # here
    begin = 5000
def epsilon_at(cfg, step):
    return np.interp(step, [0, cfg.decay_steps], [1.0, 0.05])
def main(cfg):
    for step in range(100_000):
        eps = epsilon_at(cfg, step)
        act(eps)
        if step < cfg.begin:
            continue
        loss().backward()
""",
        """
import argparse
p = argparse.ArgumentParser()
p.add_argument("--exploration-fraction", type=float, default=0.02)  # here
p.add_argument("--total-timesteps", type=int, default=200_000)
p.add_argument("--learning-starts", type=int, default=10_000)
args = p.parse_args()
def anneal(hi, lo, n, t):
    return max(lo, hi + (lo - hi) * t / n)
for it in range(args.total_timesteps):
    eps = anneal(1.0, 0.1, args.exploration_fraction * args.total_timesteps, it)
    if it > args.learning_starts:
        update(q)
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor
N = 6
def build():
    return VecMonitor(SubprocVecEnv([f(i) for i in range(N)]))
def main():
    envs = build()
    return PPO("MlpPolicy", envs, n_steps=100, batch_size=128)  # here
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
class Run:
    def __init__(self):
        self.venv = make_vec_env("CartPole-v1", n_envs=8)
        self.model = PPO("MlpPolicy", self.venv, 3e-4, 128, 100)  # here
class Other:
    def __init__(self):
        self.venv = make_vec_env("CartPole-v1", n_envs=1)
""",
        """
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.vec_env import DummyVecEnv
hp = {"n_steps": 50, "batch_size": 64}
env = DummyVecEnv([lambda: make()])
model = RecurrentPPO("MlpLstmPolicy", env, **hp)  # here
""",
    ],
    "L14": [
        """
import numpy as np

class Replay:
    def __init__(self, size):
        self.r, self.count = np.zeros(size, np.float32), 0

    def rewards(self, idx):
        seen = self.r[: self.count]
        return (self.r[idx] - seen.mean()) / (seen.std() + 1e-6)  # here
""",
        """
class Spread:
    def see(self, x):
        gap = x - self.middle
        self.middle += gap / self.count

def scaled(self, reward):
    return (reward - self.spread.middle) / self.spread.std  # here
""",
        """
import gymnasium as gym

class Tracker:
    def __init__(self):
        self.centre = 0.0

    def see(self, x):
        self.centre = 0.99 * self.centre + 0.01 * x

class Levelled(gym.Wrapper):
    def __init__(self, env):
        super().__init__(env)
        self.track = Tracker()

    def step(self, action):
        x, gain, over, cut, info = self.env.step(action)
        self.track.see(gain)
        level = gain - self.track.centre  # here
        return x, level, over, cut, info
""",
        """
def collect(buffer, rewards):
    scaled = (rewards - rewards.mean()) / rewards.std()  # here
    print(scaled)
    buffer.add(scaled)
    buffer.add(rewards - rewards.mean())  # here
""",
        """
def scale(rewards):
    rewards -= rewards.mean()  # here
    return rewards
""",
        """
def scale(rewards):
    return (rewards - rewards.mean()) / (rewards.std() + 1e-8)  # here
""",
        """
import numpy as np
def scale(self):
    self.rewards = self.rewards - np.mean(self.rewards)  # here
""",
        """
import gymnasium as gym
import numpy as np
class Normalised(gym.RewardWrapper):
    def reward(self, reward):
        self.update(reward)
        return (reward - self.mean) / np.sqrt(self.var + 1e-8)  # here
""",
        """
import torch
def update(buffer, gamma, values, weights):
    kept, total = [], 0
    for reward in reversed(buffer.rewards):
        total = reward + gamma * total
        kept.insert(0, reward)
    rewards = torch.tensor(kept)
    rewards = (rewards - rewards.mean()) / (rewards.std() + 1e-7)  # here
    return rewards + gamma * values * weights
""",
        """
import gymnasium as gym
class Standardiser(gym.RewardWrapper):
    def reward(self, reward):
        self.stats.push(reward)
        return (reward - self.stats.mu) / self.stats.sd  # here
""",
        """
import numpy as np
def scaled(signal):
    values = np.asarray(signal, dtype=np.float32)
    return (values - values.mean()) / (values.std() + 1e-7)  # here
def learn(rewards, gamma):
    signal = scaled(rewards)
    total = 0.0
    for one in signal[::-1]:
        total = one + gamma * total
    return total
""",
    ],
    "L15": [
        """
from stable_baselines3 import SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

def raw(name):
    return VecMonitor(make_vec_env(name, n_envs=1))

def both(name):
    scaled = VecNormalize(make_vec_env(name))
    return SAC("MlpPolicy", scaled), raw(name)

agent, judge = both("Ant-v5")
agent.learn(10_000)
print(evaluate_policy(agent, judge))  # here
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CheckpointCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
venv = VecNormalize(DummyVecEnv([make]), norm_obs=True)  # here
model = PPO("MlpPolicy", venv)
model.learn(1000, callback=CheckpointCallback(1000, "runs", save_vecnormalize=False))
model.save("policy")
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
venv = VecNormalize(DummyVecEnv([make]))  # here
model = PPO("MlpPolicy", venv)
model.learn(1000)
model.save("policy")
""",
        """
import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
venv = VecNormalize(DummyVecEnv([make]))
model = PPO("MlpPolicy", venv)
test_env = gym.make("Hopper-v5")
evaluate_policy(model, test_env)  # here
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize
def report(envs, model, statistics):
    envs = VecNormalize.load(statistics, envs)  # here
    envs.norm_reward = False
    return evaluate_policy(PPO.load(model), envs)
""",
        """
import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
def made():
    return VecNormalize(DummyVecEnv([lambda: gym.make("Hopper-v5")]), norm_reward=False)
def rollout(model, venv):
    obs, total = venv.reset(), 0.0
    for _ in range(1000):
        actions, _ = model.predict(obs, deterministic=True)
        obs, rewards, _, _ = venv.step(actions)
        total += rewards[0]
    return total
venv = made()
model = PPO("MlpPolicy", venv)
model.learn(100_000)
venv.save("statistics.pkl")
model.save("model")
test = DummyVecEnv([lambda: gym.make("Hopper-v5")])
print(rollout(model, test))  # here
""",
        """
from stable_baselines3 import SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize
def wrapped(seed, frozen=False):
    return VecNormalize(make_vec_env("Hopper-v5", seed=seed), norm_reward=not frozen)  # here
train_env = wrapped(0)
model = SAC("MlpPolicy", train_env)
model.learn(100_000)
test_env = wrapped(1, True)
print(evaluate_policy(model, test_env))
""",
        """
from stable_baselines3 import A2C
from stable_baselines3.common.vec_env import VecNormalize, DummyVecEnv, VecFrameStack
class Run:
    def train(self):
        self.venv = VecNormalize(DummyVecEnv([make] * 4))
        self.model = A2C("MlpPolicy", self.venv)
        self.model.learn(1000)
    def score(self):
        test = VecNormalize(DummyVecEnv([make]), norm_reward=False)  # here
        test.training = False
        test = VecFrameStack(test, 4)
        o = test.reset()
        while True:
            a, _ = self.model.predict(o)
            o, r, d, _ = test.step(a)
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize
def rollout(m, e):
    o = e.reset()
    for _ in range(100):
        a, _ = m.predict(o)
        o, r, d, _ = e.step(a)
def train():
    v = VecNormalize(make_vec_env("A-v0"))
    m = PPO("MlpPolicy", v)
    m.learn(100)
    m.save("m"); v.save("s")
def test():
    e = VecNormalize.load("s", make_vec_env("A-v0"))  # here
    e.norm_reward = False
    rollout(PPO.load("m"), e)
""",
        """
import sys
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize
if sys.argv[1] == "train":
    v = VecNormalize(make_vec_env("A-v0"))
    m = PPO("MlpPolicy", v); m.learn(100)
    m.save("m"); v.save("s")
else:
    v = VecNormalize.load("s", make_vec_env("A-v0"))  # here
    m = PPO.load("m", env=v)
    evaluate_policy(m, v)
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize
class Run:
    def __init__(self):
        self.venv = self.build()
        self.model = PPO("MlpPolicy", self.venv)
    def build(self):
        return VecNormalize(make_vec_env("A-v0"))  # here
    def go(self):
        self.model.learn(100)
        self.keep()
    def keep(self):
        self.model.save("m")
""",
        """
from stable_baselines3 import SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize, VecFrameStack
def main():
    env = VecFrameStack(VecNormalize(make_vec_env("A-v0")), 4)  # here
    agent = SAC(policy="MlpPolicy", env=env)
    agent = agent.learn(100)
    agent.save("m")
""",
    ],
    "L16": [
        """
import gymnasium as gym
from stable_baselines3 import A2C
from stable_baselines3.common.env_util import make_atari_env

GAME = "ALE/Breakout-v5"

def build(n_envs, seed, **wrapper_kwargs):
    return make_atari_env(GAME, n_envs=n_envs, seed=seed, wrapper_kwargs=wrapper_kwargs)  # here

train = build(8, seed=0)
test = build(1, seed=9, terminal_on_life_loss=False)
A2C("CnnPolicy", train).learn(1_000_000)
""",
        """
import gymnasium as gym
from stable_baselines3.common.atari_wrappers import AtariWrapper

TITLES = ("Asterix", "Hero")

def number_of(title, version):
    return "ALE/{}-v{}".format(title, version)

def prepared(game):
    return AtariWrapper(game)  # here

for title in TITLES:
    env = prepared(gym.make(number_of(title, 5)))
""",
        """
import gymnasium as gym
from stable_baselines3.common.atari_wrappers import MaxAndSkipEnv
env = gym.make("PongDeterministic-v4")
env = MaxAndSkipEnv(env, skip=4)  # here
""",
        """
import gymnasium as gym
def make():
    env = gym.make("ALE/Breakout-v5")
    return gym.wrappers.AtariPreprocessing(env)  # here
""",
        """
import gymnasium as gym
from gymnasium.wrappers import AtariPreprocessing
def make_env(env_id="ALE/SpaceInvaders-v5"):
    def thunk():
        env = gym.make(env_id, render_mode=None)
        return AtariPreprocessing(env, frame_skip=4)  # here
    return thunk
""",
        """
from stable_baselines3.common.env_util import make_atari_env
env = make_atari_env("ALE/Breakout-v5", n_envs=1, seed=0)  # here
""",
        """
import gymnasium as gym
from gymnasium.wrappers import AtariPreprocessing
class Args:
    env_id: str = "ALE/Pong-v5"
def make_env(name, video=False):
    return AtariPreprocessing(gym.make(name))  # here
def main(args):
    return make_env(args.env_id)
""",
        """
import argparse
import gymnasium as gym
from gymnasium.wrappers import AtariPreprocessing
parser = argparse.ArgumentParser()
parser.add_argument("--env-id", "-e", default="ALE/Pong-v5")
args = parser.parse_args()
env = AtariPreprocessing(gym.make(args.env_id))  # here
""",
        """
import gymnasium as gym
from gymnasium.wrappers import AtariPreprocessing
def make(game):
    env = gym.make(f"ALE/{game}-v5")
    return AtariPreprocessing(env, frame_skip=4)  # here
""",
        """
import gymnasium as gym
class Repeat(gym.Wrapper):
    def __init__(self, env, k=4):
        super().__init__(env)
        self.k = k
    def step(self, action):
        total = 0.0
        for _ in range(self.k):
            obs, reward, terminated, truncated, info = self.env.step(action)
            total += reward
            if terminated or truncated:
                break
        return obs, total, terminated, truncated, info
def game():
    return gym.make("ALE/Breakout-v5")
env = Repeat(game())  # here
""",
        """
from stable_baselines3.common.env_util import make_atari_env
def build(game, opts=None):
    return make_atari_env(game, n_envs=4, wrapper_kwargs=opts)  # here
v = build("ALE/Pong-v5")
""",
        """
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.atari_wrappers import AtariWrapper
v = make_vec_env("ALE/Pong-v5", n_envs=4, wrapper_class=AtariWrapper)  # here
""",
        """
from stable_baselines3.common.env_util import make_atari_env
class Cfg:
    game = "PongDeterministic-v4"
    atari = dict(terminal_on_life_loss=False, noop_max=30)
v = make_atari_env(Cfg.game, n_envs=4, wrapper_kwargs=Cfg.atari)  # here
""",
        """
import gymnasium as gym
from stable_baselines3.common.atari_wrappers import AtariWrapper, MaxAndSkipEnv, NoopResetEnv
def made():
    env = gym.make("QbertNoFrameskip-v4")
    env = NoopResetEnv(env, noop_max=30)
    env = MaxAndSkipEnv(env, skip=4)
    return AtariWrapper(env)  # here
""",
    ],
    "L17": [
        """
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
""",
        """
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
""",
        """
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
""",
        """
import numpy as np

def preprocess(frames):
    frames = frames[:, :84, 6:90]
    return ((frames - 128) / 128.0).astype(np.float32)  # here
""",
        """
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
""",
        """
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
""",
        """
import gymnasium as gym
import numpy as np
env = gym.make("ALE/Breakout-v5", obs_type="grayscale")
before, _ = env.reset()
for _ in range(1000):
    now, r, term, trunc, _ = env.step(env.action_space.sample())
    moved = now[::2, ::2] - before[::2, ::2]  # here
    before = now
    x = moved.astype(np.float32)
""",
        """
import numpy as np
def difference(frame, last):
    now = frame.astype(np.uint8)
    before = np.array(last, dtype="uint8")
    return now - before  # here
""",
        """
import numpy as np
class Difference:
    def __init__(self):
        self.last = np.zeros((84, 84), np.uint8)
    def observe(self, frame):
        small = frame[::2].astype(np.uint8)
        changed = small - self.last  # here
        self.last = small
        return changed
""",
        """
import numpy as np
class Replay:
    def __init__(self, n):
        self.frames = np.zeros((n, 84, 84), dtype=np.uint8)
    def add(self, i, frame):
        self.frames[i] = frame
    def centred(self, i):
        return (self.frames[i] - 128) / 64  # here
""",
        """
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
""",
        """
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
""",
        """
import numpy as np
def motion(frame, earlier):
    return (frame - earlier).astype(np.float32) / 255.0  # here
def step(env, action, earlier):
    frame = env.step(action)[0][::2, ::2]
    return motion(frame, earlier)
""",
    ],
    "L18": [
        """
import threading
import gymnasium as gym
import numpy as np

def collect(k, config, out):
    draw = np.random.default_rng(config.start)  # here
    world = gym.make(config.world)
    world.reset(seed=config.start)
    out[k].append(world.step(draw.integers(2)))

def begin(config, out):
    for k in range(config.many):
        threading.Thread(target=collect, args=(k, config, out)).start()
""",
        """
import gymnasium as gym
SEED = 42
def train(agent, episodes):
    env = gym.make("CartPole-v1")
    for _ in range(episodes):
        obs, _ = env.reset(seed=SEED)  # here
        done = False
        while not done:
            obs, reward, terminated, truncated, _ = env.step(agent.act(obs))
            done = terminated or truncated
        agent.update()
""",
        """
def reset_all(envs, seed):
    for env in envs:
        env.reset(seed=seed)  # here
""",
        """
import gymnasium as gym
def make_env(env_id, seed): ...
envs = gym.vector.SyncVectorEnv([make_env("CartPole-v1", args.seed) for i in range(8)])  # here
""",
        """
import gymnasium as gym
import numpy as np
class Walk(gym.Env):
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = np.random.randint(5)  # here
        return self.at, {}
""",
        """
import gymnasium as gym
import numpy as np
class Walk(gym.Env):
    def _start(self):
        return self._draw()
    def _draw(self):
        return np.random.randint(5)  # here
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = self._start()
        return self.at, {}
""",
        """
def reset_all(envs, seed):
    for env in envs:
        count = 0
        env.reset(seed=seed)  # here
        count += 1
    seed += 1
""",
        """
def start(envs, args):
    first = envs.reset(seed=[0] * 8)  # here
    envs.reset(seed=[args.seed for _ in range(8)])  # here
    return first, envs.reset(seed=[3, 3])  # here
""",
        """
def train(env, agent):
    for episode in range(100):
        obs, _ = env.reset(seed=42)  # here
        ended = False
        while not ended:
            obs, reward, ended, cut, _ = env.step(agent.act(obs))
        agent.learn()
""",
        """
import gymnasium as gym
from stable_baselines3.common.vec_env import SubprocVecEnv
def one(seed):
    def go():
        env = gym.make("A-v0")
        env.reset(seed=seed)  # here
        return env
    return go
fns = []
for k in range(8):
    fns.append(one(7))
venv = SubprocVecEnv(fns)
""",
        """
import gymnasium as gym
class Maker:
    def __init__(self, rank, cfg):
        self.rank, self.cfg = rank, cfg
    def __call__(self):
        env = gym.make("A-v0")
        env.reset(seed=self.cfg.seed)  # here
        return env
def build(cfg):
    return gym.vector.AsyncVectorEnv([Maker(i, cfg) for i in range(cfg.n)])
""",
        """
import gymnasium as gym
from stable_baselines3.common.vec_env import DummyVecEnv
SEED = 3
def new():
    env = gym.make("A-v0")
    env.reset(seed=SEED)  # here
    return env
venv = DummyVecEnv([new] * 8)
""",
        """
import functools
import gymnasium as gym
from stable_baselines3.common.vec_env import DummyVecEnv
def new(rank, base):
    env = gym.make("A-v0", render_mode=None)
    env.unwrapped.seed(base)  # here
    print(rank)
    return env
venv = DummyVecEnv([functools.partial(new, r, 11) for r in range(8)])
""",
    ],
    "L19": [
        """
import jax
import jax.numpy as jnp
NUM, LEN = 8192, 32
def update(state):
    return {"step": state["step"] + jnp.int32(NUM * LEN)}
state = {"step": jnp.array(0, jnp.int32)}  # here
for k in range(50_000):
    state = update(state)
""",
        """
import jax
import jax.numpy as jnp
ENVS, LENGTH, ROUNDS = 16384, 64, 10_000
def one(carry, _):
    params, frames = carry
    frames = frames + ENVS * LENGTH
    return (params, frames), None
def train(params):
    frames = jnp.int32(0)  # here
    return jax.lax.scan(one, (params, frames), None, length=ROUNDS)
""",
        """
import jax
def draw(key):
    one = jax.random.normal(key, (3,))
    other = jax.random.uniform(key, (3,))  # here
    return one, other
""",
        """
from jax import random
key = random.key(0)
for step in range(10):
    noise = random.normal(key)  # here
""",
        """
import jax
def act(key, deterministic):
    key_a, key_b = jax.random.split(key)
    if deterministic:
        return 0
    return jax.random.normal(key)  # here
""",
        """
import jax
class Agent:
    def __init__(self, seed):
        self.key = jax.random.PRNGKey(seed)
    def sample(self, mean):
        return mean + jax.random.normal(self.key, mean.shape)  # here
""",
        """
import jax
def train(env, act, state, obs):
    key = jax.random.PRNGKey(0)
    key, act_key = jax.random.split(key)
    for step in range(1000):
        action = act(state, obs, act_key)  # here
        obs, reward, terminated, truncated, info = env.step(action)
""",
        """
import jax
def act(params, obs, key):
    return params.policy(obs).sample(seed=key)
def run(env, params, episodes):
    key = jax.random.PRNGKey(0)
    for _ in range(episodes):
        key, episode = jax.random.split(key)
        obs, over = env.reset()[0], False
        while not over:
            obs, _, terminated, truncated, _ = env.step(int(act(params, obs, episode)))  # here
            over = terminated or truncated
""",
        """
import numpy as np
class Clock:
    def __init__(self):
        self.env_steps = np.int32(0)  # here
    def tick(self, n):
        self.env_steps = self.env_steps + n
""",
        """
import jax.numpy as jnp
BUDGET = 5_000_000_000
def run(update, state):
    steps = jnp.zeros((), jnp.int32)  # here
    while steps < BUDGET:
        state = update(state)
        steps += 4096
    return state
""",
        """
import jax
class Agent:
    def noisy(self, mean, rng):
        return mean + jax.random.normal(rng, mean.shape)
    def update(self, state, batch, rng):
        ahead = self.noisy(state.mean(batch.y), rng)
        now = self.noisy(state.mean(batch.x), rng)  # here
        return ahead, now
""",
        """
import jax
def pick(params, x, source):
    a, b = jax.random.split(source)
    return jax.random.normal(a) + params @ x, b
def step(p, batch, source):
    ahead, _ = jax.vmap(pick, in_axes=(None, 0, None))(p, batch.y, source)
    slope = jax.grad(lambda w: pick(w, batch.x, source)[0].mean())(p)  # here
    return ahead, slope
""",
        """
from jax import grad, random
def update(p, q, batch, key):
    def critic_cost(w):
        return ((w @ batch.x - random.normal(key, batch.u.shape)) ** 2).mean()
    def actor_cost(w):
        return (w @ random.normal(key, batch.u.shape)).mean()  # here
    return grad(critic_cost)(q), grad(actor_cost)(p)
""",
        """
import jax
def act(weights, obs, k):
    return weights @ obs + jax.random.normal(k, (3,))
quick = jax.jit(act)
def run(weights, world, k):
    for _ in range(10):
        world.move(quick(weights, world.obs, k))  # here
""",
        """
import jax
from typing import NamedTuple
class Carry(NamedTuple):
    total: float
    rng: jax.Array
def body(i, c):
    draw = jax.random.normal(c.rng)  # here
    return c._replace(total=c.total + draw)
def go(c):
    return jax.lax.fori_loop(0, 10, body, c)
""",
        """
from functools import partial
from jax import lax
def turn(world, carry, t):
    (obs, state), key = carry
    obs, state, r, over, _ = world.step(key, state, 0)  # here
    new = ((obs, state), key)
    return new, (r, over)
def go(world, carry):
    return lax.scan(partial(turn, world), carry, length=4)
""",
        """
import jax
def go(world, state, rng):
    def going(c):
        return ~c[0].over
    def body(c):
        state, rng = c
        part, _ = jax.random.split(rng)  # here
        return world.move(state, jax.random.randint(part, (), 0, 4)), rng
    return jax.lax.while_loop(going, body, (state, rng))
""",
        """
import jax.numpy as jnp
from flax import struct
@struct.dataclass
class State:
    weights: dict
    env_steps: jnp.ndarray = None
def start(weights):
    return State(weights, jnp.int32(0))  # here
def go(state, n):
    return state.replace(env_steps=state.env_steps + n)
def train(total_steps=10_000_000_000):
    pass
""",
        """
import jax.numpy as jnp
def start(weights):
    return {"weights": weights, "frames": jnp.array(0, dtype=jnp.int32)}  # here
def go(state, n):
    return {**state, "frames": state["frames"] + n}
def train(state):
    while state["frames"] < 5e9:
        state = go(state, 4096)
""",
    ],
    "L20": [
        """
import optax

STEP_SIZE = 0.995

def follow(params, targets):
    return optax.incremental_update(params, targets, STEP_SIZE)  # here
""",
        """
from stable_baselines3 import SAC, TD3

class Setup:
    kinds = {"sac": SAC, "td3": TD3}
    common = {"gamma": 0.98, "tau": 0.99}

def made(kind, env, noise):
    given = {**Setup.common, "learning_rate": 1e-3}
    given["action_noise"] = noise
    cls = Setup.kinds[kind]
    return cls("MlpPolicy", env, **given)  # here
""",
        """
import torch

class Lerner:
    def __init__(self, maker, gerät):
        self.schnell = maker()
        self.langsam = self.schnell.to(gerät)

    def folge(self, anteil):
        for alt, neu in zip(self.langsam.parameters(), self.schnell.parameters()):  # here
            alt.data.lerp_(neu.data, anteil)
""",
        """
import torch
TAU = 0.005
def soft_update(target, source, tau):
    for t, p in zip(target.parameters(), source.parameters()):
        t.data.copy_(tau * t.data + (1 - tau) * p.data)  # here
def update(target_net, net):
    soft_update(target_net, net, TAU)
""",
        """
import torch
class Agent:
    def __init__(self):
        self.qnetwork_local = make()
        self.qnetwork_target = self.qnetwork_local  # here
""",
        """
import torch
class Agent:
    def __init__(self):
        self.q_net = make()
        self.target_net = self.q_net  # here
""",
        """
import torch
TAU = 0.005
def update(net, target_net):
    for param, target_param in zip(net.parameters(), target_net.parameters()):
        target_param.data.copy_(TAU * target_param.data + (1 - TAU) * param.data)  # here
""",
        """
import torch
class Agent:
    def __init__(self):
        self.q1, self.q2 = make(), make()
        self.q1_target, self.q2_targ = self.q1, make()  # here
""",
        """
import torch
class Agent:
    def __init__(self, net, polyak=0.005):
        self.net, self.polyak = net, polyak
    def update(self, target_net):
        for p, p_targ in zip(self.net.parameters(), target_net.parameters()):
            p_targ.data.mul_(self.polyak)  # here
            p_targ.data.add_((1 - self.polyak) * p.data)
""",
        """
import torch
SHARE = 0.995
def update(net, target_net):
    for p, q in zip(net.parameters(), target_net.parameters()):
        q.data.lerp_(p.data, SHARE)  # here
""",
        """
import torch
def update(net, target_net, *, tau=1e-3):
    for q, p in zip(target_net.parameters(), net.parameters()):
        q.data.copy_(tau * q.data + (1.0 - tau) * p.data)  # here
""",
        """
import jax
import optax
def update(state, tau=0.005):
    one = optax.incremental_update(state.target_params, state.params, tau)  # here
    other = jax.tree_util.tree_map(  # here
        lambda p, t: p * (1 - tau) + t * tau, state.params, state.target_params
    )
    return one, other
""",
        """
from stable_baselines3 import SAC
model = SAC("MlpPolicy", "Pendulum-v1", tau=0.995)  # here
""",
        """
import torch
class Agent:
    def __init__(self, q):
        self.q = q
        self.target = self.q  # here
    def value(self, next_obs):
        return self.target(next_obs).max(1).values
""",
        """
import torch.nn as nn
def build(n):
    body = nn.Sequential(nn.Linear(n, 64), nn.ReLU(), nn.Linear(64, 2))
    return {"q": body, "q_slow": body, "n": n}  # here
""",
        """
import torch
class Trainer:
    def __init__(self, net):
        lagging = net
        self.live, self.lagging = net, lagging
    def refresh(self):
        self.lagging.load_state_dict(self.live.state_dict())  # here
""",
        """
import optax
def update(state, params):
    return optax.incremental_update(state.slow, params, step_size=0.005)  # here
""",
        """
import gymnasium as gym
from stable_baselines3 import DDPG
COMMON = {"gamma": 0.98, "tau": 0.99}
def train(**more):
    options = {**COMMON, "seed": 3, **more}
    return DDPG("MlpPolicy", gym.make("Pendulum-v1"), **options).learn(50_000)  # here
""",
        """
import copy
import torch
KEEP = 0.99
def follow(one, two):
    with torch.no_grad():
        for a, b in zip(one.parameters(), two.parameters()):
            b.data.mul_(1 - KEEP)  # here
            b.data.add_(KEEP * a.data)
def learn(critic, batches, update):
    critic_target = copy.deepcopy(critic)
    for batch in batches:
        update(critic, critic_target, batch)
        follow(critic, critic_target)
""",
    ],
    "L21": [
        """
import jax
import jax.numpy as jnp

CFG = dict(gamma=0.99, lam=0.95)

def advantages(v, v_next, reward, terminal, boundary):
    deltas = reward + CFG["gamma"] * v_next * (1.0 - terminal) - v

    def body(carry, x):
        delta, b = x
        carry = delta + CFG["gamma"] * CFG["lam"] * (1.0 - b) * carry
        return carry, carry

    _, adv = jax.lax.scan(body, 0.0, (deltas, boundary))  # here
    return adv, adv + v
""",
        """
import torch

def worth_of(coins, fade):
    pot, pots = 0.0, []
    for coin in coins:
        pot = coin + fade * pot  # here
        pots.append(pot)
    return torch.tensor(pots)

def main(play, learn):
    fade, games = 0.99, 4_000
    for _ in range(games):
        logs, coins = play()
        learn(logs, worth_of(coins, fade))
""",
        """
def twice(rewards, gamma):
    G, returns = 0, []
    rewards.reverse()
    rewards = rewards[::-1]
    for r in rewards:
        G = r + gamma * G  # here
        returns.append(G)
    returns.reverse()
    return returns
""",
        """
def returns_of(rewards, gamma):
    G, returns = 0, []
    for t in range(len(rewards)):
        G = rewards[t] + gamma * G  # here
        returns.insert(0, G)
    return returns
""",
        """
def returns_of(rewards, gamma):
    R, returns = 0, []
    for r in rewards:
        R = r + gamma * R  # here
        returns.append(R)
    return returns
""",
        """
import torch
def advantages(rewards, values, dones, gamma, lam):
    found, last = torch.zeros(len(rewards)), 0.0
    for t in range(len(rewards)):
        alive = 1.0 - dones[t]
        delta = rewards[t] + gamma * values[t + 1] * alive - values[t]
        found[t] = last = delta + gamma * lam * alive * last  # here
    return found
""",
        """
import jax
def to_go(rewards, dones, gamma):
    def body(total, step):
        reward, done = step
        total = reward + gamma * (1 - done) * total
        return total, total
    _, found = jax.lax.scan(body, 0.0, (rewards, dones))  # here
    return found
""",
        """
import jax
import jax.numpy as jnp
def body(total, reward):
    total = reward + 0.5 * gamma * total
    return total, total
one = jax.lax.scan(body, last_value, rewards)  # here
other = jax.lax.scan(body, jnp.zeros(4), rewards, reverse=False)  # here
""",
        """
def by_env(rewards, gamma):
    out, kept = rewards.copy(), []
    for n in range(4):
        R = 0.0
        for t in range(100):
            R = rewards[t, n] + gamma * R  # here
            out[t, n] = R
            kept.append(R)
    return out, kept, np.std(kept)
""",
        """
def to_go(gains, discount):
    total, out = 0.0, []
    for gain in gains:
        total = gain + discount * total  # here
        out.append(total)
    return out
""",
    ],
    "L22": [
        """
from dataclasses import dataclass

import gymnasium as gym
from gymnasium.wrappers import NormalizeReward

@dataclass(frozen=True)
class Settings:
    env_id: str = "HalfCheetah-v5"
    discount: float = 0.95

def build(cfg):
    return NormalizeReward(gym.make(cfg.env_id), gamma=0.99)  # here
""",
        """
import yaml
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

options = dict(yaml.safe_load(open("ppo.yml")))
GAMMA = 0.9999
env = VecNormalize(make_vec_env("Swimmer-v5"), norm_reward=True)  # here
PPO("MlpPolicy", env, gamma=GAMMA, **options).learn(1_000_000)
""",
        """
import gymnasium as gym

GAMMA = 0.9

def make_env():
    env = gym.make("Pendulum-v1")
    return gym.wrappers.NormalizeReward(env)  # here
""",
        """
from dataclasses import asdict, dataclass
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

@dataclass
class Best:
    learning_rate: float = 3e-4
    gamma: float = 0.9

def fit(best: Best):
    env = VecNormalize(make_vec_env("Ant-v5"))  # here
    return PPO("MlpPolicy", env, **asdict(best))

fit(Best(learning_rate=1e-4)).learn(10**6)
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize
venv = VecNormalize(venv)  # here
model = PPO("MlpPolicy", venv, gamma=0.9)
venv.save("statistics")
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize
options = {"gamma": 0.9, "n_steps": 2048}
venv = VecNormalize(make(), gamma=0.99)  # here
model = PPO("MlpPolicy", venv, **options)
venv.save("statistics")
""",
        """
import gymnasium as gym
class Args:
    gamma: float = 0.9
env = gym.wrappers.NormalizeReward(gym.make("Hopper-v5"))  # here
""",
        """
import argparse
from gymnasium.wrappers import NormalizeReward
parser = argparse.ArgumentParser()
parser.add_argument("--gamma", type=float, default=0.995)
args = parser.parse_args()
def make(env):
    return NormalizeReward(env, gamma=0.95)  # here
""",
        """
from stable_baselines3 import SAC
from stable_baselines3.common.vec_env import VecNormalize, DummyVecEnv
class Run:
    def __init__(self):
        self.env = self.build()
        self.test = VecNormalize(DummyVecEnv([make]), norm_reward=False)
        self.model = SAC("MlpPolicy", self.env, gamma=0.98)
    def build(self):
        return VecNormalize(DummyVecEnv([make]))  # here
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize, DummyVecEnv
HYPER = {"gamma": 0.999, "n_steps": 100}
NORM = {"norm_obs": True, "gamma": 0.99}
def run(venv):
    venv = VecNormalize(venv, **NORM)  # here
    return PPO("MlpPolicy", venv, **HYPER)
""",
        """
from stable_baselines3 import PPO, A2C
from stable_baselines3.common.vec_env import VecNormalize, DummyVecEnv
def ppo():
    v = VecNormalize(DummyVecEnv([make]), gamma=0.9)
    return PPO("MlpPolicy", v, gamma=0.9)
def a2c():
    v = VecNormalize(DummyVecEnv([make]), gamma=0.9)  # here
    return A2C("MlpPolicy", v)
""",
    ],
    "L23": [
        """
from ray.rllib.algorithms.sac import SACConfig

def one_turn(wizard):
    return wizard.train()["env_runners"]

wizard = SACConfig().environment("Pendulum-v1").build()
failed = 0
while wizard.iteration < 100:
    try:
        print(one_turn(wizard))
    except Exception as problem:  # here
        failed += 1
        print("goes on after", problem)
""",
        """
for step in range(10):
    try:
        agent.update(batch)
    except Exception:  # here
        pass
    try:
        obs, reward, terminated, truncated, info = envs.step(actions)
    except:  # here
        continue
""",
        """
def train(model):
    last = None
    try:
        model.learn(1000)
    except Exception as error:  # here
        last = error
    print(last)
    while True:
        try:
            model.learn(1000)
        except Exception:  # here
            break
""",
        """
for step in range(10):
    try:
        model.learn(1000)
    except Exception as error:  # here
        print(error)
""",
        """
try:
    loss.backward()
except:  # here
    pass
""",
        """
import contextlib
with contextlib.suppress(Exception):  # here
    model.learn(10_000)
""",
        """
import logging
class Trainer:
    def improve(self, batch):
        loss = self.net(batch).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
    def run(self, batches):
        for batch in batches:
            try:
                self.improve(batch)
            except Exception as error:  # here
                logging.warning("no update: %s", error)
""",
    ],
    "L24": [
        """
class Agent:
    def update_target(self):  # here
        self.target_model.set_weights(self.model.get_weights())
    def learn(self, reward, next_obs):
        return reward + self.gamma * self.target_model.predict(next_obs).max()
def train(env, agent):
    env.step(agent.learn(0, 1))
""",
        """
import copy
import torch
import torch.nn.functional as F
q_net = torch.nn.Linear(4, 2)
target_net = copy.deepcopy(q_net).eval()  # here
for p in target_net.parameters():
    p.requires_grad = False
opt = torch.optim.Adam(q_net.parameters())
def update(s, r, s2, gamma):
    y = r + gamma * target_net(s2).max(1).values
    loss = F.mse_loss(q_net(s).max(1).values, y.detach())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        """
import torch
import torch.nn.functional as F
class Agent:
    def __init__(self, size):
        self.critic, self.critic_target = Critic(size), Critic(size)  # here
        self.critic_target.load_state_dict(self.critic.state_dict())
        self.critic_target.requires_grad_(False)
    def update(self, s, r, s2, gamma):
        y = r + gamma * self.critic_target(s2)
        F.mse_loss(self.critic(s), y).backward()
def main(data):
    q_net, target_net = Critic(1), Critic(1)  # here
    target_net.load_state_dict(q_net.state_dict())
    for s, r, s2, gamma in data:
        F.mse_loss(q_net(s), r + gamma * target_net(s2)).backward()
agent = Agent(3)
main(agent.update(1, 2, 3, 4))
""",
    ],
    "L25": [
        """
import torch
def update(net, target_net, batch, gamma):
    s, a, r, s2, done = batch
    done = torch.as_tensor(done, dtype=torch.float32)
    y = r + gamma * target_net(s2).max(1)[0]  # here
    return (net(s, a) - y).pow(2).mean()
""",
        """
def update(target_net, net, batch):
    s, a, r, s2, done = batch
    y = r + 0.99 * target_net(s2)  # here
    return (net(s, a) - y).pow(2).mean()
""",
        """
def run(env, agent, memory, gamma):
    state = env.reset()
    while True:
        action = agent.act(state)
        next_state, reward, done, _ = env.step(action)
        memory.append([state, action, reward, next_state])  # here
        state = next_state
        if done:
            break
def learn(reward, next_q, gamma):
    y = reward + gamma * next_q.max()
    return y
""",
        """
def advantages(rewards, values, dones, gamma, lam):
    last, found = 0.0, []
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + gamma * values[t + 1] - values[t]  # here
        last = delta + gamma * lam * last
        found.append(last)
    return found[::-1]
""",
        """
def loss(batch, q, target_q, gamma):
    s, a, r, s2, d = batch
    y = (r + gamma * target_q(s2).max(1).values).detach()  # here
    return ((q(s) - y) ** 2).mean()
""",
        """
def target(reward, next_obs, terminated, critic, discount):
    following = critic(next_obs)
    return reward + discount * following  # here
""",
    ],
    "L26": [
        """
import torch
def update(dist, log_probs, actions, returns, value_loss):
    entropies = []
    for one in dist:
        entropies.append(one.entropy())
    policy_loss = -(log_probs * returns).mean()
    loss = policy_loss + value_loss + 0.01 * torch.stack(entropies).mean()  # here
    return loss
""",
        """
def alpha_loss(log_alpha, log_prob, target_entropy):
    return (log_alpha * (log_prob + target_entropy)).mean()  # here
""",
        """
import torch
def target(q1, q2, next_log_prob, alpha, reward, terminated, gamma):
    q = torch.min(q1, q2) + alpha * next_log_prob  # here
    return reward + gamma * (1 - terminated) * q
""",
        """
def actor_loss(critic, actor, obs):
    action = actor(obs)
    return critic(obs, action).mean()  # here
def other(critic, actor, obs):
    policy_loss = critic(obs, actor(obs)).mean()  # here
    return policy_loss
""",
        """
def loss(log_alpha, log_prob, target_entropy):
    alpha_loss = (log_alpha * (log_prob + target_entropy).detach()).mean()  # here
    return alpha_loss
""",
        """
import torch
def loss(ratio, advantages, clip):
    surr1 = ratio * advantages
    surr2 = torch.clamp(ratio, 1 - clip, 1 + clip) * advantages
    policy_loss = -torch.max(surr1, surr2).mean()  # here
    return policy_loss
""",
        """
def update(dist, actions, advantages, optimizer):
    log_prob = dist.log_prob(actions)
    policy_loss = (log_prob * advantages).mean()  # here
    policy_loss.backward()
""",
        """
import torch
def update(logp, old, adv, clip):
    ratio = (logp - old).exp()
    surr1 = ratio * adv
    surr2 = torch.clamp(ratio, 1 - clip, 1 + clip) * adv
    loss_pi = torch.min(surr1, surr2).mean()  # here
    return loss_pi
""",
        """
def update(dist, actions, advantages, optimizer):
    losses = 0.0
    losses += (dist.log_prob(actions) * advantages.detach()).sum()  # here
    return losses
""",
        """
def update(policy_loss, value_loss, dist, coef):
    entropy = dist.entropy().mean()
    loss = policy_loss + 0.5 * value_loss + coef * entropy  # here
    loss.backward()
""",
        """
def update(pg_loss, v_loss, entropy, args):
    entropy_loss = entropy.mean()
    loss = pg_loss - args.ent_coef * -entropy_loss + v_loss  # here
    return loss
""",
        """
import torch
def update(ratio, advantages, clip):
    first = -advantages * ratio
    second = -advantages * torch.clamp(ratio, 1 - clip, 1 + clip)
    pg_loss = torch.min(first, second).mean()  # here
    return pg_loss
""",
        """
import torch
def target(q1, q2, next_obs, action, alpha, next_log_prob, reward, gamma, terminated):
    next_q = torch.min(q1(next_obs, action), q2(next_obs, action))
    backup = reward + gamma * (1 - terminated) * (next_q + alpha * next_log_prob)  # here
    return backup
""",
    ],
    "L27": [
        """
import torch
def actor_loss(policy, critic, obs, alpha):
    dist = policy(obs)
    action = dist.sample()
    log_prob = dist.log_prob(action).sum(-1)
    return (alpha * log_prob - critic(obs, action)).mean()  # here
""",
        """
import torch
class Agent:
    def update(self, obs):
        u = self.policy(obs).sample()
        action = torch.tanh(u)
        policy_loss = -self.q1(obs, action).mean()  # here
        policy_loss.backward()
""",
    ],
    "L28": [
        """
import torch
from torch.distributions import Normal
class Policy:
    def act(self, obs):
        mean, deviation = self.net(obs)
        dist = Normal(mean, deviation)
        u = dist.rsample()
        action = torch.tanh(u)
        return 2 * action, dist.log_prob(u).sum(-1)  # here
""",
        """
import torch
from torch.distributions import Normal
def act(mean, std):
    dist = Normal(mean, std)
    action = torch.tanh(dist.rsample())
    return action, dist.log_prob(action).sum(-1)  # here
""",
    ],
    "L29": [
        """
import torch
def update(critic, dist, obs, actions, returns, optimizer):
    values = critic(obs).squeeze(-1)
    advantages = returns - values
    policy_loss = -(dist.log_prob(actions) * advantages).mean()  # here
    loss = policy_loss + 0.5 * advantages.pow(2).mean()
    loss.backward()
""",
        """
import torch
class Agent:
    def update(self, obs, actions, returns):
        dist, value = self.model(obs)
        adv = returns - value
        loss = -(dist.log_prob(actions) * adv).sum() + adv.pow(2).sum()  # here
        loss.backward()
""",
        """
import torch
def update(net, states, actions, returns, entropy):
    values, logs = [], []
    for state, action in zip(states, actions):
        dist, value = net(state)
        values.append(value)
        logs.append(dist.log_prob(action))
    log_probs, values = torch.stack(logs), torch.cat(values)
    advantage = returns - values
    loss = -(log_probs * advantage).mean() + advantage.pow(2).mean()  # here
    return loss
""",
    ],
    "L30": [
        """
import gymnasium as gym
class Agent:
    def get_action(self, obs, epsilon):
        return int(self.q(obs).argmax())  # here
""",
        """
import random
import numpy as np
class Agent:
    def act(self, state):
        return np.argmax(self.model.predict(state)[0])  # here
    def replay(self, size):
        for state, action, reward, next_state, done in random.sample(self.memory, size):
            target = reward
            if not done:
                target = reward + self.gamma * np.amax(self.model.predict(next_state)[0])
            goal = self.model.predict(state)
            goal[0][action] = target
            self.model.fit(state, goal)
def run(env, agent):
    state, _ = env.reset()
    while True:
        action = agent.act(state)
        next_state, reward, terminated, truncated, _ = env.step(action)
        agent.remember(state, action, reward, next_state, terminated)
        state = next_state
        if terminated or truncated:
            break
    agent.replay(32)
""",
    ],
    "L31": [
        """
def target(reward, next_value, terminated, gamma):
    return gamma * (reward + next_value * (1 - terminated))  # here
""",
        """
import numpy as np
class Agent:
    def targets(self, batch):
        next_q = self.target.predict(batch.next_obs).max(axis=1)
        return np.where(batch.ends, batch.rewards, self.gamma * (batch.rewards - next_q))  # here
""",
    ],
    "L32": [
        """
import random
class Agent:
    def replay(self):
        batch = random.sample(self.memory, 32)  # here
        for obs, action, reward, next_obs, terminated in self.memory:
            self.learn(obs, action, reward, next_obs, terminated)
""",
        """
def update(buffer, agent, data):
    minibatch = buffer.sample(256)  # here
    return agent.update(data)
""",
    ],
    "L33": [
        """
import torch.nn.functional as F
def update(q_net, obs, targets):
    q_values = q_net(obs)
    best = q_values.max(dim=1)[0]
    return F.mse_loss(best, targets)  # here
""",
        """
import tensorflow as tf
class Agent:
    def build(self):
        self.q_output = tf.matmul(self.hidden, self.weights)
        self.max_q = tf.reshape(tf.reduce_max(self.q_output), (1, 1))
        self.loss = tf.losses.mean_squared_error(self.max_q, self.reward_labels)  # here
""",
        """
def loss(q_net, obs, reward, next_q, gamma):
    goal = reward + gamma * next_q
    return (q_net(obs).amax(1) - goal).square().mean()  # here
""",
    ],
    "L34": [
        """
def play(env, agent):
    obs, _ = env.reset()
    done, total = False, 0.0
    while not done:
        obs, reward, done, _, info = env.step(agent.act(obs))  # here
        total += reward
    return total
""",
        """
def play(env, agent):
    obs, _ = env.reset()
    done, total = False, 0.0
    while not done:  # here
        action = agent.act(obs)
        agent.remember(obs, action, done)
        for _ in range(3):
            if agent.update():
                break
    return total
""",
        """
def play(env, agent):
    obs, _ = env.reset()
    terminated = truncated = False
    while not (terminated or truncated):  # here
        obs, reward, ended, cut, _ = env.step(agent.act(obs))
""",
    ],
    "L35": [
        """
def train(env, online_net, target_net, agent):
    step = 0
    obs, _ = env.reset()
    while step < 1000:
        obs, *_ = env.step(agent.act(obs))
        step += 1
        if step % 500 == 0:
            online_net.load_state_dict(target_net.state_dict())  # here
""",
        """
SYNC = 1
def train(env, model, target_model, agent):
    obs, _ = env.reset()
    for step in range(1000):
        obs, *_ = env.step(agent.act(obs))
        if step % SYNC == 0:
            target_model.set_weights(model.get_weights())  # here
""",
        """
class Net:
    def copy_weights(self, other):
        for mine, theirs in zip(self.model.variables, other.model.variables):
            mine.assign(theirs.numpy())
def play(env, train_net, target_net, period):
    step, done = 0, False
    while not done:
        obs, reward, done, *_ = env.step(train_net.act())
        step += 1
        if step % period == 0:
            target_net.copy_weights(train_net)  # here
def main(env):
    period = 2
    play(env, Net(), Net(), period)
""",
        """
class Net:
    def copy_weights(self, other):
        for mine, theirs in zip(self.net.parameters(), other.net.parameters()):
            mine.data.copy_(theirs.data)
def update(steps, train_net, target_net):
    if steps % 1000 == 0:
        train_net.copy_weights(target_net)  # here
""",
    ],
    "L36": [
        """
def run(env, agent, memory):
    obs, _ = env.reset()
    for _ in range(1000):
        action = agent.act(obs)
        next_obs, reward, terminated, truncated, _ = env.step(action)
        obs = next_obs
        memory.append((obs, action, reward, next_obs, terminated))  # here
""",
        """
def run(env, agent, buffer, s, s2, r, d, a):
    if agent.ready:
        s = s2
        agent.count += 1
        buffer.add(s, a, r, s2, d)  # here
""",
        """
def stream(env, choose, here):
    while True:
        move = choose(here)
        there, pay, dead, late, _ = env.step(move)
        here = there
        item = (here, move, pay, there, dead)  # here
        yield item
""",
    ],
    "L37": [
        """
import numpy as np
def learn(env, q, state, alpha, gamma):
    action = int(q[state].argmax())
    next_state, reward, terminated, truncated, _ = env.step(action)
    target = reward + gamma * np.max(q[state])  # here
    q[state, action] += alpha * (target - q[state, action])
    return next_state
""",
        """
def learn(env, table, s, a, alpha):
    s2, r, end, _ = env.step(a)
    table[s][a] = table[s][a] + alpha * (r + 0.95 * max(table[s]) - table[s][a])  # here
    return s2
""",
    ],
    "L38": [
        """
import torch
def loss(policy, batch, advantages):
    log_probs = policy(batch.obs).log_prob(batch.actions)
    ratio = torch.exp(batch.old_log_probs - log_probs)  # here
    other_ratio = (batch.old_logp - log_probs).exp()  # here
    return ratio, other_ratio
""",
    ],
    "L39": [
        """
import torch
def make(actor, critic, lr):
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=lr)
    critic_optimizer = torch.optim.Adam(actor.parameters(), lr=lr)  # here
    return actor_optimizer, critic_optimizer
class Agent:
    def __init__(self, policy_net, value_net):
        self.policy_opt = torch.optim.Adam(value_net.parameters())  # here
""",
        """
import torch
import torch.nn as nn
class Curiosity(nn.Module):
    def __init__(self):
        self.predictor, self.target = nn.Linear(4, 8), nn.Linear(4, 8)
class Agent:
    def __init__(self, policy):
        self.rnd = Curiosity()
        parts = list(policy.parameters()) + list(self.rnd.parameters())  # here
        self.optimizer = torch.optim.Adam(parts)
""",
    ],
    "L40": [
        """
def advantages(rewards, values, dones, gamma, lam):
    last, found = 0.0, []
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + gamma * values[t + 1] * (1 - dones[t]) - values[t]
        last = delta + gamma * lam * last  # here
        found.append(last)
    return found[::-1]
""",
        """
class Agent:
    def advantages(self):
        sum_ = 0.0
        for i in reversed(range(self.steps)):
            goes_on = 1.0 - self.dones[i]
            after = self.values[i + 1] * goes_on
            delta = self.rewards[i] + self.gamma * after - self.values[i]
            sum_ = delta + self.gamma * self.gae_lambda * sum_  # here
            self.advantage[i] = sum_
""",
    ],
    "L41": [
        """
def losses(critic, actor, target_critic, target_actor, states, next_states):
    wanted = -critic(states, actor(next_states)).mean()  # here
    value = target_critic(next_states, target_actor(states))  # here
    return wanted, value
class Agent:
    def judged(self, obs, next_obs):
        return self.critic_1(next_obs, self.actor(obs))  # here
""",
        """
import torch
def loss(q, target_q, states, actions, rewards, next_states, ends, gamma):
    with torch.no_grad():
        best = q(states).argmax(1)
        after = target_q(next_states).gather(1, best.unsqueeze(1)).squeeze(1)  # here
        y = rewards + gamma * (1 - ends) * after
    return (q(states).gather(1, actions).squeeze(1) - y).pow(2).mean()
""",
    ],
    "L42": [
        """
import numpy as np
q = np.zeros((5, 2), dtype=int)  # here
def learn(s, a, r, after, alpha, gamma):
    q[s, a] += alpha * (r + gamma * q[after].max() - q[s, a])
""",
        """
import numpy as np
class Agent:
    def __init__(self):
        self.table = np.zeros([4, 2], "int32")  # here
    def learn(self, s, a, r, after):
        target = r + self.gamma * np.max(self.table[after])
        self.table[s, a] = r + self.gamma * np.max(self.table[after])
""",
    ],
    "L43": [
        """
def run(env, agent, steps):
    obs, info = env.reset()
    for step in range(steps):
        action = agent.act(obs)
        next_obs, reward, terminated, truncated, info = env.step(action)
        agent.learn(obs, action, reward, next_obs, terminated)
        obs = next_obs
        if terminated or truncated:
            env.reset()  # here
""",
    ],
    "L44": [
        """
import torch
def update(policy, optimizer, obs, actions, advantages, clip):
    for epoch in range(10):
        dist = policy(obs)
        log_prob = dist.log_prob(actions)
        old = dist.log_prob(actions).detach()
        ratio = torch.exp(log_prob - old)  # here
        clipped = torch.clamp(ratio, 1 - clip, 1 + clip)
        loss = -torch.min(ratio * advantages, clipped * advantages).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
        """
import torch
def update(policy, x, u, advantages, passes):
    for _ in range(passes):
        pi = policy.dist(x)
        with torch.no_grad():
            before = policy.dist(x).log_prob(u)
        ratio = torch.exp(pi.log_prob(u) - before)  # here
        surrogate = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
        yield -surrogate.mean()
""",
    ],
    "L45": [
        """
def prepare(advantages, values):
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    returns = advantages + values  # here
    return advantages, returns
""",
        """
class Buffer:
    def get(self):
        self.adv_buf = (self.adv_buf - self.adv_buf.mean()) / (self.adv_buf.std() + 1e-8)
        self.ret_buf[:] = self.adv_buf + self.val_buf  # here
        return self.ret_buf
""",
    ],
    "L46": [
        """
import torch
def target(q1_target, q2_target, action, next_obs, reward, terminated, gamma):
    with torch.no_grad():
        q1 = q1_target(next_obs, action)
        q2 = q2_target(next_obs, action)
        after = torch.max(q1, q2)  # here
        return reward + gamma * (1 - terminated) * after
""",
        """
import jax.numpy as jnp
def target(next_q1, next_q2, reward, mask, gamma):
    return reward + gamma * mask * jnp.maximum(next_q1, next_q2)  # here
""",
    ],
    "L47": [
        """
def actor_loss(actor, critic, obs):
    action = actor(obs).detach()
    return -critic(obs, action).mean()  # here
def other(actor, critic, obs):
    policy_loss = -critic(obs, actor(obs).detach()).mean()  # here
    return policy_loss
""",
        """
import torch
import torch.nn.functional as F
def update(critic, optimizer, obs, actions, targets):
    values = critic(obs, actions)
    critic_loss = F.mse_loss(values.detach(), targets)  # here
    optimizer.zero_grad()
    critic_loss.backward()
    optimizer.step()
""",
        """
import torch
import torch.nn.functional as F
def update(q, optimizer, batch, gamma):
    with torch.no_grad():
        y = batch.rewards + gamma * (1 - batch.terminated) * q.best(batch.next_obs)
    chosen = q(batch.obs).gather(1, batch.actions).detach()
    loss = F.smooth_l1_loss(chosen, y)  # here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    ],
    "L48": [
        """
def returns(rewards, gamma):
    found, total = [], 0.0
    for reward in rewards[::-1]:  # here
        total = reward + gamma * total
        found.append(total)
    return found
""",
        """
import torch
def advantages(rewards, values, masks, gamma, lam):
    found, last = [], 0.0
    for t in reversed(range(len(rewards))):  # here
        delta = rewards[t] + gamma * values[t + 1] * masks[t] - values[t]
        last = delta + gamma * lam * masks[t] * last
        found.append(last)
    return torch.stack(found)
""",
        """
import torch
rewards, gamma = [1.0, 1.0], 0.99
total, returns = 0.0, []
for reward in rewards[::-1]:  # here
    total = reward + gamma * total
    returns.append(total)
returns = torch.tensor(returns)
""",
    ],
    "L49": [
        """
from torch.distributions import Normal
class Policy:
    def act(self, obs):
        mean = self.mean(obs)
        dist = Normal(mean, self.log_std)  # here
        return dist.sample()
""",
    ],
    "L50": [
        """
def target(q, reward, next_obs, terminated, gamma):
    return (reward + gamma * (1 - terminated) * q(next_obs).max(1)[1]).detach()  # here
""",
        """
def target(q, reward, next_obs, terminated, gamma):
    y = reward + gamma * q(next_obs).argmax(1) * (1 - terminated)  # here
    return y.detach()
""",
    ],
    "L51": [
        """
import torch
def update(loss, net, optimizer):
    optimizer.zero_grad()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)  # here
    loss.backward()
    optimizer.step()
""",
    ],
    "L52": [
        """
import torch
class Net(torch.nn.Module):
    def forward(self, obs):
        features = self.body(obs)
        value, advantage = self.value(features), self.advantage(features)
        return value + advantage - advantage.mean()  # here
""",
        """
import torch
class Net(torch.nn.Module):
    def forward(self, obs):
        adv = self.adv(obs)
        return self.value(obs) + (adv - torch.mean(adv))  # here
""",
    ],
    "L53": [
        """
import torch
def smoothed(actor, obs, sigma, bound):
    action = actor(obs)
    noise = (torch.rand_like(action) * sigma).clamp(-bound, bound)  # here
    return action + noise
""",
        """
import numpy as np
def explore(action, sigma):
    noise = sigma * np.random.rand(3)
    return action + np.clip(noise, -0.5, 0.5)  # here
""",
    ],
    "L54": [
        """
class Replay:
    def store(self, obs, action, reward, next_obs, terminated):
        mask = 0.0 if terminated else 1.0
        self.data.append((obs, action, reward, next_obs, mask))
def target(replay, critic, gamma):
    obs, action, reward, next_obs, mask = replay.sample(64)
    return reward + gamma * (1 - mask) * critic(next_obs)  # here
""",
        """
def target(reward, critic, next_obs, not_done, gamma):
    y = reward + gamma * (1.0 - not_done) * critic(next_obs)  # here
    return y
""",
        """
def collect(masks, terminated, reward, critic, next_obs, gamma):
    masks = 1 - terminated.float()
    reward += gamma * (1 - masks) * critic(next_obs)  # here
    return reward
""",
    ],
    "L55": [
        """
import torch
def project(p, b, m, offset):
    lower, upper = b.floor().long(), b.ceil().long()
    m.index_add_(0, lower + offset, p * (upper.float() - b))  # here
    m.index_add_(0, upper + offset, p * (b - lower.float()))
    return m
""",
        """
import numpy as np
def project(p, m, b):
    l, u = np.floor(b), np.ceil(b)
    m[int(l)] += p * (u - b)  # here
    m[int(u)] += p * (b - l)
    return m
""",
    ],
    "L56": [
        """
class DoubleDQN:
    def target(self, reward, next_obs, terminated):
        best = self.target_net(next_obs).argmax(dim=1, keepdim=True)
        value = self.target_net(next_obs).gather(1, best).squeeze(1)  # here
        return reward + self.gamma * (1 - terminated) * value
""",
        """
def ddqn_values(target, s2):
    q = target(s2)
    best = target(s2).max(1)[1]
    return q.gather(1, best.unsqueeze(1))  # here
""",
    ],
    "L57": [
        """
import jax
import jax.numpy as jnp
def advantages(trajectory, last_value, gamma, lam):
    def step(carry, t):
        gae, next_value = carry
        delta = t.reward + gamma * next_value * (1 - t.terminated) - t.value
        gae = delta + gamma * lam * (1 - t.terminated) * gae
        return (gae, t.value), gae
    _, found = jax.lax.scan(step, (jnp.zeros(4), last_value), trajectory)  # here
    return found
""",
        """
from jax import lax
def gae(r, gone, gamma, lam, zero):
    def fold(acc, x):
        d, g = x
        acc = d + gamma * lam * (1 - g) * acc
        return acc, acc
    _, found = lax.scan(fold, zero, (r, gone))  # here
    return found
""",
    ],
    "L58": [
        """
import torch.nn.functional as F
def loss(weights, q, target):
    return (weights * F.smooth_l1_loss(q, target)).mean()  # here
""",
        """
import torch
class Agent:
    def __init__(self):
        self.criterion = torch.nn.MSELoss()
    def loss(self, q, target, is_weights):
        error = self.criterion(q, target)
        return torch.mean(is_weights * error)  # here
""",
    ],
    "L59": [
        """
class Stack:
    def step(self, action):
        frame, reward, terminated, truncated, info = self.env.step(action)
        self.stack[:-1] = self.stack[1:].copy()
        self.stack[-1] = frame
        return self.stack, reward, terminated, truncated, info  # here
""",
        """
class Stack:
    def observation(self, frame):
        self._frames[..., -1] = frame
        return self._frames  # here
""",
        """
import numpy as np
class Particle:
    def reset(self):
        self.z = np.zeros(2)
        return self.z.copy()
    def step(self, action):
        self.z[1] += action
        self.z[0] += self.z[1]
        return self.z, 0.0, False, False, {}  # here
""",
    ],
    "L60": [
        """
import torch.nn as nn
class Critic(nn.Module):
    pass
def build(n):
    return nn.ModuleList([Critic()] * n)  # here
""",
        """
import gymnasium as gym
from collections import deque
envs = [gym.make("CartPole-v1")] * 4  # here
recent = [deque(maxlen=100)] * 4  # here
""",
    ],
    "L61": [
        """
import numpy as np
import tensorflow as tf
@tf.function
def act(q, obs, epsilon):
    if np.random.uniform() < epsilon:  # here
        return tf.constant(0)
    return tf.argmax(q(obs), axis=1)
""",
        """
import random
from functools import partial
import jax
@partial(jax.jit, static_argnums=0)
def act(policy, obs):
    return policy(obs) + random.gauss(0.0, 0.1)  # here
""",
    ],
    "L62": [
        """
def sarsa(env, q, choose, alpha, gamma):
    for episode in range(500):
        s, _ = env.reset()
        a = choose(q, s)
        over = False
        while not over:
            s2, r, terminated, truncated, _ = env.step(a)  # here
            a2 = choose(q, s2)
            q[s, a] += alpha * (r + gamma * q[s2, a2] * (1 - terminated) - q[s, a])
            s = s2
            over = terminated or truncated
""",
    ],
    "L63": [
        """
import torch
def conservative(q, actions):
    of_data = q.gather(1, actions.unsqueeze(1)).squeeze(1)
    return torch.logsumexp(q, dim=0).mean() - of_data.mean()  # here
""",
    ],
    "L64": [
        """
import torch
def asymmetric(u, tau):
    return torch.mean(torch.abs(tau - (u > 0).float()) * u**2)  # here
def value_loss(q, v, tau):
    advantage = q - v
    return asymmetric(advantage, tau)
""",
        """
import torch
def value_loss(target_q, value, expectile):
    diff = target_q - value
    weight = torch.where(diff > 0, 1 - expectile, expectile)  # here
    return (weight * diff**2).mean()
""",
        """
import torch
def value_loss(q, v, tau):
    u = q - v
    return (torch.where(u < 0, tau, 1 - tau) * u.pow(2)).mean()  # here
""",
    ],
    "L65": [
        """
from collections import deque
class NStepReplay:
    def __init__(self, n_step, gamma):
        self.window, self.gamma = deque(maxlen=n_step), gamma
    def fold(self):
        total, power = 0.0, 1.0
        for _, _, reward, _, _ in self.window:
            total += power * reward
            power *= self.gamma
        self.storage.append((self.window[0], total))
class Agent:
    def update(self, reward, next_obs, terminated):
        value = self.target_net(next_obs).amax(dim=1)
        target = reward + self.gamma * (1 - terminated) * value  # here
        return target
""",
    ],
    "L66": [
        """
import numpy as np
rng = np.random.default_rng(0)
def act(values, epsilon):
    if rng.random() < epsilon:
        return int(rng.integers(0, values.size - 1))  # here
    return int(values.argmax())
""",
        """
import torch
def act(q, obs, eps, n_actions, draw):
    return torch.randint(n_actions - 1, (1,)) if draw < eps else q(obs).argmax(1)  # here
""",
    ],
    "L67": [
        """
import optax
def step(optimiser, gradients, state, parameters):
    updates, _ = optimiser.update(gradients, state, parameters)  # here
    return optax.apply_updates(parameters, updates), state
""",
    ],
    "L68": [
        """
from stable_baselines3.common.callbacks import BaseCallback
class Log(BaseCallback):
    def _on_step(self):  # here
        self.logger.record("x", self.num_timesteps)
""",
        """
from stable_baselines3.common import callbacks
class Log(callbacks.BaseCallback):
    def _on_step(self) -> None:  # here
        if self.n_calls % 100:
            return
        self.logger.record("x", self.num_timesteps)
""",
    ],
    "L69": [
        """
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
""",
    ],
    "L70": [
        """
import numpy as np
def collect(env, actor, obs, sigma):
    action = np.clip(actor(obs), -1.0, 1.0)
    action = action + np.random.normal(0.0, sigma, action.shape)  # here
    return env.step(action)
""",
        """
import torch
def collect(env, actor, obs, noise):
    with torch.no_grad():
        action = actor(obs).clamp(-1.0, 1.0)
        action += noise.sample()  # here
        return env.step(action.numpy())
""",
    ],
    "L71": [
        """
import gymnasium as gym
from gymnasium.wrappers import NormalizeReward, RecordEpisodeStatistics
def make_env(name):
    env = gym.make(name)
    env = NormalizeReward(env, gamma=0.99)
    return RecordEpisodeStatistics(env)  # here
""",
        """
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize
def make(envs):
    return VecMonitor(VecNormalize(envs))  # here
""",
    ],
}

GOOD: dict[str, list[str]] = {
    "L01": [
        """
import gymnasium
import jax
import numpy as np

def learn(judge, pilot, slow, batch, fade):
    x, u, c, y, go = batch
    aim = c + fade.discount * go * judge.apply(slow, y, pilot.apply(slow, y))
    return jax.lax.stop_gradient(aim)

def main(opt, judge, pilot, slow, memory):
    world = gymnasium.make("Pendulum-v1")
    x, _ = world.reset(seed=1)
    for k in range(opt.steps):
        u = pilot.apply(slow, x)
        y, c, dead, late, _ = world.step(u)
        over = dead or late
        memory.append((x, u, c, y, 0.0 if dead else 1.0))
        x = y
        if over:
            x, _ = world.reset()
        learn(judge, pilot, slow, memory.draw(64), opt)
""",
        """
import gymnasium as gym
import random
from typing import NamedTuple
class Step(NamedTuple):
    s: object
    a: int
    r: float
    s2: object
    ended: bool
    over: bool
bag = []
def collect(env, s):
    for i in range(100):
        a = env.action_space.sample()
        s2, r, ended, cut, _ = env.step(a)
        bag.append(Step(s, a, r, s2, ended, ended or cut))
        s = env.reset()[0] if ended or cut else s2
def learn(q, gamma=0.99):
    b = Step(*zip(*random.sample(bag, 32)))
    pause = [over and not ended for over, ended in zip(b.over, b.ended)]
    return b.r + gamma * pause * b.s2 if any(pause) else b.r + gamma * (1 - b.over) * q(b.s2).max(1)
""",
        """
import gymnasium as gym
import numpy as np
ROW = np.dtype(
    [("o", "f4", 4), ("o2", "f4", 4), ("a", int), ("r", "f4"), ("dead", "?"), ("over", "?")]
)
rows = np.zeros(100, dtype=ROW)
def collect(env, o):
    for i in range(100):
        a = env.action_space.sample()
        o2, r, dead, cut, _ = env.step(a)
        rows[i] = (o, o2, a, r, dead, dead or cut)
        o = env.reset()[0] if dead or cut else o2
def targets(value, gamma=0.99):
    return rows["r"] + gamma * (1 - rows["dead"]) * value(rows["o2"])
""",
        """
import numpy as np
class Walk:
    def step(self, action):
        self.place += action
        term, trunc = self.place >= 5, False
        return self.place, -1.0, term, trunc, {}
env = Walk()
env.place = 0
q = np.zeros(6)
s2, r, term, trunc, _ = env.step(1)
done = term or trunc
target = r + 0.9 * q[s2] * (1 - done)
def turns(env, q, obs):
    obs, reward, term, trunc, _ = env.last()
    if term or trunc:
        y = reward
    else:
        y = reward + 0.99 * q[obs].max()
    return y
""",
        """
def smooth(env, value):
    obs, reward, terminated, truncated, _ = env.step(0)
    done = terminated or truncated
    value = 0.01 * reward + 0.99 * value * (1 - done)
    return value
""",
        """
import gymnasium as gym
class Grid(gym.Env):
    def step(self, action):
        if self.lost:
            return 0, -1.0, True, False, {}
        return 0, 0.0, self.won(), False, {}
def target(q, gamma):
    env = Grid()
    obs, reward, terminated, truncated, _ = env.step(0)
    done = terminated or truncated
    return reward + gamma * q(obs) * (1 - done)
""",
        """
def collect(env, memory, reward_log):
    obs, reward, terminated, truncated, _ = env.step(0)
    done = terminated or truncated
    memory.push((obs, 0, reward, terminated))
    reward_log.append(done)
def update(batch, q, gamma):
    return batch.reward + gamma * q(batch.next_obs).max(1) * (1 - batch.done)
""",
        """
def discounts_of_rewards(replay, gamma):
    ended = replay.terminated | replay.truncated
    return discount * gamma * (1 - ended)
""",
        """
def target(env, q, gamma):
    obs, reward, terminated, truncated, _ = env.step(0)
    done = terminated or truncated
    if done:
        env.reset()
    return reward + gamma * q(obs) * (1 - terminated)
""",
        """
import numpy as np
def lstm(self, hidden, terminations, truncations):
    done = np.logical_or(terminations, truncations)
    return self.lstm(hidden, (1.0 - done) * self.state)
""",
        """
def advantage(self, rewards, values, terminated, truncated):
    done = terminated | truncated
    rewards = rewards + self.gamma * truncated * values
    return rewards + self.gamma * values * (1 - done)
""",
        """
import torch
def advantages(envs, buffer, gamma):
    obs, reward, term, trunc, _ = envs.step(0)
    if (over := term or trunc):
        obs, _ = envs.reset()
    buffer.end[0] = torch.as_tensor(term).float()
    alive = 1.0 - buffer.end[0]
    return reward + gamma * buffer.v[1] * alive
""",
        """
import numpy as np
def rollout(env, critic, gamma):
    for t in range(100):
        obs, reward, terminated, truncated, info = env.step(0)
        done = terminated or truncated
        if truncated and not terminated:
            reward += gamma * critic(obs)
        rewards[t], dones[t] = reward, done
    for t in reversed(range(100)):
        delta = rewards[t] + gamma * values[t + 1] * (1 - dones[t]) - values[t]
def by_index(critic, obs, rewards, terminated, truncated, gamma):
    done = terminated | truncated
    for i in np.flatnonzero(truncated & ~terminated):
        rewards[i] += gamma * critic(obs[i])
    return rewards + gamma * critic(obs) * (1 - done)
def by_info(critic, obs, reward, terminated, truncated, info, gamma):
    done = terminated or truncated
    if info.get("TimeLimit.truncated", False):
        reward = reward + gamma * critic(obs)
    return reward + gamma * critic(obs) * (1 - done)
def by_name(critic, obs, reward, terminated, truncated, gamma):
    done = terminated or truncated
    only_cut = truncated & (not terminated)
    last_value = critic(obs) if only_cut else 0
    return reward + gamma * last_value + gamma * critic(obs) * (1 - done)
def by_else(critic, obs, reward, terminated, truncated, gamma):
    done = terminated or truncated
    if not truncated:
        pass
    else:
        reward += gamma * critic(obs)
    return reward + gamma * critic(obs) * (1 - done)
""",
        """
import numpy as np
def gae(rewards, values, next_values, terminated, truncated, gamma, lam):
    done, last = np.logical_or(terminated, truncated), 0.0
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + gamma * next_values[t] * (1 - terminated[t]) - values[t]
        last = delta + gamma * lam * (1 - done[t]) * last
        next_value, going = next_values[t] * (1 - terminated[t]), 1.0 - done[t]
        total = rewards[t] + gamma * (next_value + lam * going * total) - values[t]
    return last, total
""",
        """
import numpy as np
def expression(env, q, gamma):
    s2, r, terminated, truncated, _ = env.step(0)
    done = terminated or truncated
    target = r if terminated else r + gamma * max(q[s2])
    shown = gamma if done else max(q[s2])
    return target, shown
def branches(env, q, gamma):
    s2, r, terminated, truncated, info = env.step(0)
    if terminated or truncated:
        target = r + gamma * max(q[info["last"]]) * (1 - terminated)
    else:
        target = r + gamma * max(q[s2])
    return target
def without_a_value(env, critic, gamma, lam, deltas):
    rewards, dones, entries, advantage = [], [], [], np.zeros_like(critic(0))
    for _ in range(100):
        obs, r, terminated, truncated, _ = env.step(0)
        done = terminated or truncated
        dones.append(done)
        entries.append((obs, terminated, r, done))
        rewards.append(r)
    R = 0
    for r, d in zip(reversed(rewards), reversed(dones)):
        R = r + gamma * R * (1 - d)
    for t in reversed(range(100)):
        advantage = deltas[t] + gamma * lam * advantage * (1 - dones[t])
    for entry in entries:
        total = entry[2] + gamma * critic(entry[0]) * (1 - entry[1])
    return R, advantage, total
""",
        """
import torch
def collect(env, buf):
    o, r, terminated, truncated, _ = env.step(0)
    done = terminated | truncated
    buf.append((o, 0, r, o, terminated, done))
def update(buf, q, gamma):
    o, a, r, o2, d, last = map(torch.as_tensor, zip(*buf))
    return r + gamma * (~d) * q(o2).max(1)[0]
""",
        """
def terminated_alone(env, q, gamma):
    s2, r, te, tr, _ = env.step(0)
    d = te or tr
    if d:
        env.reset()
    return r + gamma * (1 - te) * q(s2).max()
def bootstraps(env, critic, values, gamma, rewards, dones):
    for t in range(100):
        o, r, te, tr, _ = env.step(0)
        d = te or tr
        if tr and not te:
            r += gamma * critic(o)
        rewards[t], dones[t] = r, d
    for t in reversed(range(100)):
        delta = rewards[t] + gamma * values[t + 1] * (1 - dones[t]) - values[t]
    return delta
def of_a_game(world, q, gamma):
    s2, r, won, lost, info = world.step(0)
    over = won or lost
    return r + gamma * q(s2) * (1 - over)
def of_costs(env, q, gamma):
    obs, reward, failed, done, info = env.step(0)
    over = failed or done
    return reward + gamma * q(obs) * (1 - over)
def before_it_is_joined(env, q, gamma):
    s2, r, done, tr, _ = env.step(0)
    alive = 1 - done
    y = r + gamma * alive * q(s2)
    other = r + gamma * (1 - done) * q(s2)
    done = done or tr
    return y, other, done
""",
        """
def collect(env, buf):
    obs2, reward, done, truncated, _ = env.step(a)
    buf.add(obs, a, reward, obs2, done)
    done = done or truncated
    if done:
        env.reset()
def update(batch, q, gamma):
    return batch.reward + gamma * q(batch.next_obs).max(1) * (1 - batch.done)
""",
        """
class Player:
    def play(self, env):
        obs, rew, terminated, truncated, _ = env.step(self.act)
        self.done = terminated or truncated
        self.over = terminated or truncated
        self.end = terminated
    def again(self, batch):
        self.over = batch.terminated
    def learn(self):
        if self.done:
            self.reset()
        one = self.rew + self.gamma * (1 - self.end) * self.critic(self.obs)
        return one + self.rew + self.gamma * (1 - self.over) * self.critic(self.obs)
class Learner:
    def learn(self, batch):
        self.done = batch.terminated
        return batch.rew + self.gamma * (1 - self.done) * self.critic(batch.obs)
class Bootstraps:
    def play(self, env):
        obs, rew, terminated, truncated, _ = env.step(self.act)
        self.done = terminated or truncated
        if truncated:
            rew += self.gamma * self.critic(obs)
    def learn(self, batch):
        return batch.rew + self.gamma * (1 - self.done) * self.critic(batch.obs)
""",
        """
def collect(env, buffer):
    obs, reward, term, trunc, _ = env.step(0)
    mask = 0.0 if term else 1.0
    buffer.push(obs, 0, reward, obs, mask)
    over = term or trunc
def learn(buffer, target_q, gamma):
    obs, action, reward, next_obs, mask = buffer.sample()
    return reward + gamma * mask * target_q(next_obs)
""",
        """
def collect(env, buffer):
    obs, reward, term, trunc, _ = env.step(0)
    resets = 1.0 - float(term or trunc)
    buffer.push(obs, reward, obs, 1.0 - float(term), resets)
def learn(buffer, target_q, gamma):
    obs, reward, next_obs, mask, resets = buffer.sample()
    target = reward + gamma * mask * target_q(next_obs)
    return target, resets
""",
        """
from collections import deque
class Replay:
    def append(self, obs, action, reward, next_obs, terminated, truncated):
        self.window.append((obs, action, reward, next_obs, terminated))
        if terminated or truncated:
            self.window.clear()
def train(env, agent, replay, q, gamma):
    obs, _ = env.reset()
    for t in range(1000):
        action = agent.act(obs)
        next_obs, reward, terminated, truncated, _ = env.step(action)
        replay.append(obs, action, reward, next_obs, terminated, truncated)
        obs = next_obs if not (terminated or truncated) else env.reset()[0]
        s, a, r, s2, terminal = replay.sample(32)
        target = r + gamma * (1 - terminal) * q(s2).amax(1)
        agent.learn(s, a, target)
""",
        """
def has_ended(result):
    return result[2] or result[3]
def train(env, policy, critic, obs, gamma):
    result = env.step(policy(obs))
    over = has_ended(result)
    if over:
        env.reset()
    alive = 1.0 - float(result[2])
    return result[1] + gamma * alive * critic(result[0])
""",
        """
def play(env, pick, s):
    rewards, ends = [], []
    for _ in range(1000):
        s, r, te, tr, _ = env.step(pick(s))
        rewards.append(r)
        ends.append(te or tr)
    return rewards, ends
def returns(rows, gamma):
    g, out = 0.0, []
    for r, over in reversed(rows):
        g = r + gamma * g * (1 - over)
        out.append(g)
    return out[::-1]
""",
        """
from typing import NamedTuple
class Row(NamedTuple):
    r: float
    s2: object
    gone: bool
    over: bool
def play(env, pick, s):
    s2, r, te, tr, _ = env.step(pick(s))
    return Row(r, s2, te, te or tr)
def goal(row, q, gamma):
    return row.r + gamma * (1 - row.gone) * q(row.s2).max()
""",
        """
def play(env, pick, bank, s):
    s2, r, te, tr, _ = env.step(pick(s))
    bank.append({"r": r, "s2": s2, "over": te or tr, "late": tr})
def goal(row, q, gamma):
    stop = row["over"] * (1 - row["late"])
    return row["r"] + gamma * (1 - stop) * q(row["s2"]).max()
""",
        """
def play(env, pick, bank, s):
    s2, r, te, tr, _ = env.step(pick(s))
    bank.append((s, r, s2, te or tr))
def goal(rows, q, gamma, lam, tau):
    s, r, s2, over = rows
    mix = r + gamma * ((1 - lam) * q(s2) + lam * q(s))
    return mix * (1 - tau)
""",
        """
import numpy as np
def play(env, pick, bank, s):
    s2, r, te, tr, _ = env.step(pick(s))
    bank.append({"r": r, "s2": s2, "over": te or tr})
def sweep(data, values, gamma, lam):
    after = critic(data["next_obs"])
    adv = np.zeros_like(after)
    for t in reversed(range(len(adv))):
        delta = data["r"][t] + gamma * after[t] - values[t]
        adv[t] = delta + gamma * lam * (1 - data["over"][t]) * adv[t + 1]
    return adv
""",
        """
def play(env, pick, bank, s):
    s2, r, te, tr, info = env.step(pick(s))
    bank.append({"r": r, "s2": s2, "over": te or tr})
    if info.get("TimeLimit.truncated"):
        bank.pop()
def goal(row, q, gamma):
    return row["r"] + gamma * (1 - row["over"]) * q(row["s2"]).max()
""",
    ],
    "L02": [
        """
import gymnasium as gym
def log(infos, write):
    if "final_info" in infos:
        for info in infos["final_info"]:
            if info and "episode" in info:
                write(info["episode"]["r"])
    elif "episode" in infos:
        write(infos["episode"]["r"])
    return infos.get("final_obs", infos.get("final_observation"))
""",
        """
import gymnasium as gym
old = gym.__version__.startswith("0.")
last = infos["final_info"] if old else infos["episode"]
""",
        """
import gymnasium
from gymnasium.vector import AutoresetMode
envs = gymnasium.make_vec("CartPole-v1", vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP})
last = infos["final_info"]
""",
        """
# no environment here
keys = ["final_info"]
""",
        """
import gymnasium as gym
from mine import names
key = "final_observation"
names.append(key)
""",
        """
import gymnasium as gym
from gymnasium.vector import AutoresetMode
envs = gym.make_vec("CartPole-v1", 4, vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP})
def last_of(infos, i):
    return infos["final_obs"][i]
""",
        """
import gymnasium as gym
assert gym.__version__ < "1"
last = infos["final_info"]
""",
        """
import gymnasium as gym
if gym.__version__ >= "1":
    last = infos["_episode"]
else:
    last = infos["final_observation"]
""",
    ],
    "L03": [
        """
from gymnasium import Wrapper, make
class Noop(Wrapper):
    def reset(self, **kw):
        pair = self.env.reset(**kw)
        if self.spec:
            return pair
        return self.observation_space.sample(), {}
env = Noop(make("CartPole-v1"))
""",
        """
import gymnasium as gym
from stable_baselines3.common.vec_env import DummyVecEnv
env = gym.make("CartPole-v1")
result = env.reset()
obs = result[0]
venv = DummyVecEnv([make])
obs = venv.reset()
obs, rewards, dones, infos = venv.step([0])
""",
        """
import gym
env = gym.make("CartPole-v1")
obs, reward, done, info = env.step(0)
""",
        """
import gymnasium as gym
def make_env(name):
    env = gym.make(name)
    return OldInterface(env)
def chosen(name):
    if name:
        return gym.make(name)
    return OldEnv()
env, other, new = make_env("Pendulum-v1"), chosen("Pendulum-v1"), gym.make("Pendulum-v1")
obs, reward, done, info = env.step(0)
obs, reward, done, info = other.step(0)
obs, reward, *ends, info = new.step(0)
""",
        """
import gymnasium as gym
from stable_baselines3.common.env_util import make_vec_env
def evaluate(model, env):
    obs = env.reset()
    obs, rewards, dones, infos = env.step(model(obs))
def play(env):
    obs = env.reset()
def either(env=None):
    if env is None:
        env = gym.make("CartPole-v1")
    obs = env.reset()
def main():
    env = gym.make("CartPole-v1")
    _ = env.reset()
    venv = make_vec_env("CartPole-v1")
    check(env)
    evaluate(model, venv)
    play(env)
    play(venv)
""",
        """
import gymnasium as gym
class Roll(gym.Wrapper):
    def __init__(self):
        self.env = gym.make("Acrobot-v1")
    def reset(self, **options):
        return self.env.reset(**options)
    def begin(self):
        return self.env.reset()
    def both(self):
        return self.env.reset()
def play(policy):
    roll = Roll()
    state, _ = roll.begin()
    pair = roll.both()
    print(policy(pair[0]))
    after, r, te, tr, _ = roll.env.step(policy(state))
    state = roll.begin()[0] if te or tr else after
env = gym.make("CartPole-v1")
first, over = env.reset(), False
both = env.reset() if over else (first[0], {})
""",
    ],
    "L04": [
        """
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
""",
        """
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
""",
        """
import gymnasium as gym
envs = gym.vector.SyncVectorEnv([])
next_obs, rewards, terminations, truncations, infos = envs.step(0)
real_next_obs = next_obs.copy()
rb.add(obs, real_next_obs, 0, rewards, terminations, infos)
""",
        """
import gymnasium as gym
env = gym.make("CartPole-v1")
next_obs, reward, terminated, truncated, info = env.step(0)
buffer.add(obs, next_obs, 0, reward, terminated)
""",
        """
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
""",
        """
import gymnasium as gym
envs = gym.make_vec("CartPole-v1", num_envs=4)
def collect(memory, done):
    while True:
        before = done
        new, rewards, ended, cut, _ = envs.step(0)
        done = ended | cut
        if not before.any():
            memory.push(old, new, ended)
""",
        """
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
""",
        """
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
""",
        """
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
""",
        """
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
""",
        """
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
""",
        """
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
""",
        """
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
""",
    ],
    "L05": [
        """
import torch
import torch.nn.functional as F
def update(q, head, opt, s, s2, r, term, average):
    smooth = 0.01 * r + 0.99 * q(s)
    weighted = r + 0.5 * q(s)
    with torch.no_grad():
        y = r + 0.99 * (1 - term) * q(s2)
    loss = F.mse_loss(q(s), y) + F.mse_loss(smooth, average) + F.mse_loss(weighted, average)
    opt.zero_grad()
    loss.backward()
""",
        """
import torch
def update(q_net, target_net, b, gamma, opt):
    with torch.no_grad():
        target = b.r + gamma * q_net(b.next_obs).max(1)[0]
    other = b.r + gamma * target_net(b.next_obs).max(1)[0]
    third = b.r + gamma * q_net(b.next_obs).max(1)[0].detach()
    fourth = b.r + gamma * q_net(b.next_obs).max(1)[0]
    q = q_net(b.obs)
    loss = sum(torch.nn.functional.mse_loss(q, t) for t in (target, other, third))
    loss += torch.nn.functional.mse_loss(q, fourth.detach())
    opt.zero_grad()
    loss.backward()
""",
        """
import torch
import torch.nn.functional as F
def td_loss(q_net, frozen_net, batch, gamma):
    expected = batch.reward + gamma * frozen_net(batch.next_obs).max(1)[0]
    return F.huber_loss(q_net(batch.obs).gather(1, batch.a), expected)
def td_error(q_net, batch, gamma):
    expected = batch.reward + gamma * q_net(batch.next_obs).max(1)[0]
    loss = F.huber_loss(q_net(batch.obs).gather(1, batch.a), expected)
    return loss
def learn(net, frozen, opt, batch, gamma):
    opt.zero_grad()
    td_loss(net, frozen, batch, gamma).backward()
    opt.step()
    with torch.no_grad():
        print(td_error(net, batch, gamma))
""",
        """
import jax
import jax.numpy as jnp
def make_step(net, gamma):
    def loss_fn(params, target_params, batch):
        q = net.apply(params, batch.obs).max(-1)
        one = batch.reward + gamma * net.apply(target_params, batch.next_obs).max(-1)
        other = batch.reward + gamma * net.apply(params, batch.next_obs).max(-1)
        other = jax.lax.stop_gradient(other)
        third = batch.reward + gamma * jax.lax.stop_gradient(net.apply(params, batch.next_obs))
        return jnp.mean((q - one) ** 2 + (q - other) ** 2 + (q - third) ** 2)
    return jax.value_and_grad(loss_fn)
def error(params, net, batch, gamma):
    following = batch.reward + gamma * net.apply(params, batch.next_obs)
    return net.apply(params, batch.obs) - following
""",
        """
import torch
import torch.nn.functional as F
def update(q_net, target_net, opt, s, r, next_s, gamma):
    best = q_net(next_s).argmax(1)
    y = r + gamma * target_net(next_s)[range(len(best)), best]
    places = q_net(next_s).max(1)[1]
    other = r + gamma * target_net(next_s, places)
    chosen = pick(q_net(next_s))
    third = r + gamma * target_net(next_s).gather(1, chosen).squeeze(1)
    fourth = r + gamma * q_net(next_s).max(1)[0].data
    fifth = r + gamma * float(q_net(next_s).max())
    sixth = r + gamma * torch.tensor(q_net(next_s).max(1)[0].tolist())
    next_q = q_net(next_s).max(1)[0]
    next_q.detach_()
    seventh = r + gamma * next_q
    eighth = r + gamma * (q_net(next_s).max(1)[0] > 0) * 0.5
    goals = (y, other, third, fourth, fifth, sixth, seventh, eighth)
    loss = sum(F.mse_loss(q_net(s), one) for one in goals)
    loss = loss + sum((F.mse_loss(q_net(s), y), F.mse_loss(q_net(s), other)))
    loss = loss + sum((F.mse_loss(q_net(s), third), F.mse_loss(q_net(s), fourth)))
    loss = loss + sum((F.mse_loss(q_net(s), fifth), F.mse_loss(q_net(s), sixth)))
    loss = loss + sum((F.mse_loss(q_net(s), seventh), F.mse_loss(q_net(s), eighth)))
    opt.zero_grad()
    loss.backward()
""",
        """
import torch
import torch.nn.functional as F
def update(q_net, opt, s, r, next_s, gamma):
    with torch.set_grad_enabled(False):
        y = r + gamma * q_net(next_s).max(1).values
    torch.set_grad_enabled(False)
    other = r + gamma * q_net(next_s).max(1).values
    torch.set_grad_enabled(True)
    loss = F.mse_loss(q_net(s), y) + F.mse_loss(q_net(s), other)
    opt.zero_grad()
    loss.backward()
""",
        """
import torch
import torch.nn.functional as F
def update(q_net, target_net, opt, s, a, r, s2, gamma):
    q = q_net(s).gather(1, a).squeeze(1)
    loss = F.mse_loss(q, r + gamma * target_net(s2).max(1).values)
    loss += F.mse_loss(q, (r + gamma * q_net(s2).max(1).values).detach())
    error = r + gamma * q_net(s2).max(1).values - q
    opt.zero_grad()
    loss.backward()
    with torch.no_grad():
        F.mse_loss(q, r + gamma * q_net(s2).max(1).values)
    return error.detach()
""",
        """
import torch
criterion = torch.nn.SmoothL1Loss()
def update(policy_net, target_net, optimizer, states, actions, rewards, states_, GAMMA):
    value = policy_net(states).gather(1, actions)
    following = target_net(states_).max(1)[0]
    expected = (following * GAMMA) + rewards
    loss = criterion(value, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        """
import tensorflow as tf
def train(model, optimizer, s, a, r, s2, done, gamma):
    target = r + gamma * (1 - done) * tf.reduce_max(model(s2), axis=1)
    with tf.GradientTape() as tape:
        q = tf.reduce_sum(model(s) * tf.one_hot(a, 2), axis=1)
        loss = tf.reduce_mean(tf.square(target - q))
    grads = tape.gradient(loss, model.trainable_variables)
""",
        """
import numpy as np
import tensorflow as tf
def train(model, target_model, s, a, r, s2, done, gamma):
    with tf.GradientTape() as tape:
        one = r + gamma * (1 - done) * tf.reduce_max(target_model(s2), axis=1)
        other = tf.stop_gradient(r + gamma * tf.reduce_max(model(s2), axis=1))
        third = r + gamma * np.max(model(s2), axis=1)
        fourth = r + gamma * model(s2).numpy().max(1)
        q = tf.reduce_sum(model(s) * tf.one_hot(a, 2), axis=1)
        loss = tf.reduce_mean(tf.square(one - q)) + tf.reduce_mean(tf.square(other - q))
        loss += tf.reduce_mean(tf.square(third - q)) + tf.reduce_mean(tf.square(fourth - q))
    return tape.gradient(loss, model.trainable_variables)
""",
        """
import tensorflow as tf
class Agent:
    def learn(self, s, a, r, s2, gamma):
        with tf.GradientTape() as tape:
            target = r + gamma * self.critic(s2)
            advantage = target - self.critic(s)
            loss = -tf.reduce_mean(self.actor.log_prob(s, a) * advantage)
        grads = tape.gradient(loss, self.actor.trainable_variables)
        y = r + gamma * self.critic(s2)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((y - self.critic(s)) ** 2)
        grads = tape.gradient(loss, self.critic.trainable_variables)
""",
        """
import tensorflow as tf
def train(model, s, r, s2, gamma):
    with tf.GradientTape() as tape:
        with tape.stop_recording():
            target = r + gamma * tf.reduce_max(model(s2), axis=1)
        q = tf.reduce_max(model(s), axis=1)
        loss = tf.reduce_mean(tf.square(target - q))
    return tape.gradient(loss, model.trainable_variables)
""",
        """
import torch
class Agent:
    @torch.no_grad()
    def backup(self, reward, successor, alive, gamma):
        _, value = self.net(successor)
        return reward + gamma * alive * value
    def update(self, obs, reward, successor, alive, gamma):
        policy, value = self.net(obs)
        error = self.backup(reward, successor, alive, gamma) - value
        loss = error.pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
""",
        """
import torch
def update(policy, optimizer, obs, actions, advantages, log_alpha, alpha_optimizer, entropy):
    log_probs = policy(obs).log_prob(actions)
    policy_loss = -(log_probs * advantages).mean()
    optimizer.zero_grad()
    policy_loss.backward()
    optimizer.step()
    alpha_loss = -(log_alpha * (policy(obs).log_prob(actions) + entropy).detach()).mean()
    alpha_optimizer.zero_grad()
    alpha_loss.backward()
    alpha_optimizer.step()
""",
        """
import torch
class Learner:
    def segment(self, n):
        return self.rollout(n)
    def update(self, n):
        logp_of_actions, weights, critic_error = self.segment(n)
        policy_part = -(logp_of_actions * weights).mean()
        loss = policy_part + 0.5 * critic_error
        loss.backward()
""",
        """
import torch
def loss(policy, obs, actions, advantages, old_logp):
    gap = policy(obs).log_prob(actions) - old_logp.detach()
    policy_loss = -(gap * advantages).mean()
    return policy_loss
import jax
import jax.numpy as jnp
import optax
def cost(state, batch, gamma):
    chosen = apply(state["q"], batch["x"])[:, 0]
    boot = jax.lax.stop_gradient(apply(state["q"], batch["y"])).max(-1)
    delta = batch["rew"] + gamma * (1 - batch["over"]) * boot - chosen
    return jnp.square(delta).mean()
def slow(params, batch, gamma):
    y = batch.gain + gamma * batch.alive * apply(params.target_critic, batch.y)
    return optax.l2_loss(apply(params.critic, batch.x), y).mean()
def frozen(params, batch, gamma):
    same = jax.tree.map(jax.lax.stop_gradient, params)
    y = batch.gain + gamma * apply(same, batch.y)
    return ((apply(params, batch.x) - y) ** 2).mean()
def model(params, batch, gamma):
    ahead = batch.x + gamma * apply(params, batch.x)
    return ((ahead - batch.y) ** 2).mean()
def residual(params, b, gamma):
    return ((b.gain + gamma * apply(params, b.y) - apply(params, b.x)) ** 2).mean()
def step(params, batch):
    yield jax.grad(cost)(params, batch, 0.9)
    yield jax.grad(slow)(params, batch, 0.9)
    yield jax.grad(frozen)(params, batch, 0.9)
    yield jax.grad(model)(params, batch, 0.9)
    yield jax.grad(residual)(params, batch, 0.9)
""",
        """
import torch
def update(self, obs, optimizer):
    actions, log_prob = self.actor(obs)
    log_prob = self.actor.distribution(obs).log_prob(actions).reshape(-1, 1)
    ent_coef_loss = -(self.log_ent_coef * (log_prob + self.target_entropy).detach()).mean()
    optimizer.zero_grad()
    ent_coef_loss.backward()
    optimizer.step()
""",
        """
import torch
from torch.distributions import Categorical

def decide(net, obs):
    with torch.no_grad():
        dist = Categorical(logits=net(obs))
        act = dist.sample()
        return act, dist.log_prob(act)

def improve(net, opt, seen, acts, gains):
    chances = Categorical(logits=net(seen)).log_prob(acts)
    objective = -(chances * gains).mean()
    opt.zero_grad()
    objective.backward()
    opt.step()
""",
        """
import torch
from torch.nn import functional as F

def decide(dist, kept):
    act = dist.sample()
    kept.append(dist.log_prob(act).detach())
    return act

def improve(net, opt, seen, acts, gains, kept):
    surprise = -(torch.stack(kept) * gains).mean()
    loss = (F.cross_entropy(net(seen), acts, reduction="none") * gains).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return surprise.item()
""",
        """
import torch
def learn(judge, batch, discount):
    optimiser = torch.optim.Adam(judge.parameters())
    with torch.no_grad():
        aim = batch.pay + discount * batch.going * judge(batch.after)
    loss = (judge(batch.seen) - aim).pow(2).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
""",
    ],
    "L06": [
        """
import numpy as np
import torch
from torch import nn

class Ring:
    def __init__(self, n):
        self.d = dict(s=np.zeros((n, 3), "f4"), r=np.zeros((n, 1), "f4"))
        self.d["term"] = np.zeros((n, 1), "f4")

    def sample(self, rng, b):
        i = rng.integers(0, 100, b)
        return {k: torch.from_numpy(v[i]) for k, v in self.d.items()}

critic = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 1))
b = Ring(100).sample(np.random.default_rng(0), 32)
with torch.no_grad():
    y = b["r"] + 0.99 * (1 - b["term"]) * critic(b["s"])
loss = (critic(b["s"]) - y).pow(2).mean()
""",
        """
import torch

class Learner:
    def loss(self, batch):
        s, a, r, s2, term = batch
        q_sa = self.online(s).gather(1, a)
        with torch.no_grad():
            best = self.frozen(s2).max(1, keepdim=True)[0]
            y = r + 0.99 * (1.0 - term) * best
        return (q_sa - y).pow(2).mean()
""",
        """
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

class QNet(nn.Module):
    @nn.compact
    def __call__(self, s, a):
        return nn.Dense(1)(jnp.concatenate([s, a], -1)).squeeze(-1)

qnet = QNet()

@jax.jit
def step(params, target, batch):
    s, a, r, s2, a2, term = batch
    backup = r + 0.99 * (1.0 - term) * qnet.apply(target, s2, a2)
    return jnp.mean((qnet.apply(params, s, a) - backup) ** 2)

rng = np.random.default_rng(0)
S, A = np.zeros((1000, 3), np.float32), np.zeros((1000, 2), np.float32)
R, T = np.zeros(1000, np.float32), np.zeros(1000, np.float32)
params = qnet.init(jax.random.PRNGKey(0), S[:1], A[:1])
i = rng.integers(0, 1000, 256)
loss = step(params, params, (S[i], A[i], R[i], S[i], A[i], T[i]))
""",
        """
import torch
def loss(q, target_q, s, a, r, after, ends, gamma):
    a = torch.tensor(a)
    b = torch.tensor(a).unsqueeze(1)
    y = r + gamma * (1 - ends) * target_q(after).max(1)[0].detach()
    one = torch.nn.functional.mse_loss(q(s).gather(1, b).squeeze(1), y)
    return one + torch.nn.functional.mse_loss(q(s).gather(1, a).squeeze(1), y)
""",
        """
import torch.nn.functional as F
def loss(q, target_q, b, gamma):
    chosen = q(b.obs).gather(1, b.action.unsqueeze(1)).squeeze(1)
    best = target_q(b.next_obs).max(1)[0]
    one = F.mse_loss(chosen, b.reward + gamma * best)
    column = q(b.obs).gather(1, b.action.unsqueeze(1))
    best = target_q(b.next_obs).max(1)[0].unsqueeze(1)
    return one + F.mse_loss(column, b.reward.view(-1, 1) + gamma * best)
""",
        """
import torch.nn.functional as F
def loss(q, b, gamma):
    best = q(b.next_obs).max(dim=1)[0]
    best = best.reshape(-1, 1)
    return F.smooth_l1_loss(q(b.obs).gather(1, b.action.unsqueeze(1)), b.reward + gamma * best)
""",
        """
import torch
class Learner:
    def __init__(self):
        self.criterion = torch.nn.MSELoss()
    def learn(self, batch):
        best, _ = self.q_target(batch.next_obs).max(1, keepdim=True)
        other, places = self.q_target(batch.next_obs).max(1)
        column = torch.gather(self.q(batch.obs), 1, batch.action.unsqueeze(1))
        other, places = reshaped(other, places)
        row = self.q(batch.obs).gather(1, batch.action.unsqueeze(1)).view(-1)
        kept = self.q(batch.obs).max(1, True)[0]
        three = column - best, column - other, column - kept
        goal = batch.reward + self.q_target(batch.next_obs).max(1)[0].view(-1)
        return three, self.criterion(row, goal)
""",
        """
import torch.nn.functional as F
def loss(q, target_q, b, gamma):
    best = target_q(b.next_obs).max(1)[0]
    best.unsqueeze_(1)
    chosen = q(b.obs).gather(1, b.action.unsqueeze(1))
    other = q(b.obs).gather(1, b.action.unsqueeze(1))
    other.resize_(32)
    row = target_q(b.next_obs).max(1)[0]
    return F.mse_loss(chosen, b.reward + gamma * best) + F.mse_loss(other, row)
""",
        """
import torch
def loss(net, s, a, r, s2, gamma):
    q = net(s).gather(1, a.unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        y = r + gamma * net(s2).max(1)[0]
    return torch.nn.SmoothL1Loss()(q, y)
""",
        """
import torch
from torch import nn
import torch.nn.functional as F
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def learn(obs, rews):
    rews = torch.as_tensor(rews, dtype=torch.float32).unsqueeze(1)
    one = F.mse_loss(critic(obs), rews)
    rew = torch.as_tensor(rews, dtype=torch.float32).view(-1, 1)
    other = F.mse_loss(critic(obs), rew)
    third = F.mse_loss(critic(obs).squeeze(-1), rews.squeeze(-1))
    return one, other, third
""",
        """
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F
class Buffer:
    def __init__(self, size):
        self.reward = np.zeros((size, 1))
    def sample(self, ind):
        return torch.FloatTensor(self.reward[ind])
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def learn(buf, obs, ind, gamma):
    reward = torch.FloatTensor(buf.reward[ind])
    return F.mse_loss(critic(obs), reward)
""",
        """
import torch
from torch import nn
import torch.nn.functional as F
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.v = nn.Linear(4, 1)
    def forward(self, x):
        return torch.squeeze(self.v(x), -1)
critic = Critic()
def learn(obs, rews):
    rews = torch.as_tensor(rews, dtype=torch.float32)
    return F.mse_loss(critic(obs), rews)
""",
        """
import torch
from torch import nn
import torch.nn.functional as F
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def learn(batch, obs, gamma):
    r_lst = []
    for t in batch:
        r_lst.append([t.r])
    r = torch.tensor(r_lst)
    target = r + gamma * critic(obs)
    return F.smooth_l1_loss(critic(obs), target.detach())
""",
        """
import torch
from torch import nn
import torch.nn.functional as F
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def learn(obs, reward, next_obs, gamma):
    reward = torch.tensor(reward)
    delta = reward + gamma * critic(next_obs) - critic(obs)
    loss = F.mse_loss(critic(obs), reward)
    return delta, loss
""",
        """
import torch
from torch import nn
import torch.nn.functional as F
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def learn(buffer, gamma):
    obs, actions, rewards, next_obs, dones = buffer.sample(32)
    y = rewards + gamma * (1 - dones) * critic(next_obs)
    return F.mse_loss(critic(obs), y.detach())
""",
        """
import torch
from torch import nn
import torch.nn.functional as F
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
two = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
flat = nn.Sequential(nn.Linear(4, 1), nn.Flatten(0))
def learn(obs, rewards, steps, pairs, net):
    rewards = torch.tensor(rewards)
    values = torch.squeeze(critic(obs), -1)
    losses = F.mse_loss(values, rewards), F.mse_loss(two(obs), rewards)
    gap = rewards.mean() - critic(obs), flat(obs) - rewards
    return losses, gap, critic(obs) - torch.tensor([pair[0] for pair in pairs])
def given(critic, obs, rewards):
    return critic(obs) - torch.tensor(rewards)
""",
        """
import torch
from torch import nn
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def learn(buffer, obs):
    rewards = buffer.sample(32)
    rewards = torch.as_tensor(rewards)
    return ((critic(obs) - rewards) ** 2).mean()
""",
        """
import numpy as np
import torch
from torch import nn
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def learn(obs, rewards):
    return nn.functional.mse_loss(critic(obs), torch.as_tensor(rewards))
def batch_of(steps):
    return np.vstack([step.obs for step in steps]), np.vstack([step.reward for step in steps])
""",
        """
import numpy as np
import torch
from torch import nn
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def learn(obs, rewards):
    return nn.functional.mse_loss(critic(obs), torch.as_tensor(rewards))
class Buffer:
    def __init__(self, size):
        self.count, self.rewards = np.zeros(()), None
        self.rewards = np.zeros((size, 1))
""",
        """
import numpy as np
import torch
from torch import nn
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def learn(obs, rewards):
    return nn.functional.mse_loss(critic(obs), torch.as_tensor(rewards))
def batch_of(steps):
    return [step.obs for step in steps], [[step.reward] for step in steps]
""",
        """
import numpy as np
import torch
from torch import nn
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
def learn(obs, rewards):
    return nn.functional.mse_loss(critic(obs), torch.as_tensor(rewards))
def batch_of(obs, rewards):
    return obs, np.reshape(rewards, (-1, 1)), rewards[:, None], rewards.reshape(-1, 1)
""",
        """
import tensorflow as tf
class Learner:
    def __init__(self):
        self.critic = tf.keras.Sequential([tf.keras.layers.Dense(32), tf.keras.layers.Dense(1)])
    def update(self, obs, rewards, next_obs, going, gamma):
        target = tf.stop_gradient(rewards + gamma * going * tf.squeeze(self.critic(next_obs), 1))
        with tf.GradientTape() as tape:
            values = self.critic(obs)[..., 0]
            error = tf.reduce_mean((target - values) ** 2)
        variables = self.critic.trainable_variables
        return error, tape.gradient(error, variables)
""",
        """
import tensorflow as tf
class Learner:
    def __init__(self):
        self.critic = tf.keras.Sequential([tf.keras.layers.Dense(32), tf.keras.layers.Dense(1)])
    def update(self, obs, rewards, next_obs, going, gamma):
        target = tf.stop_gradient(rewards + gamma * going * tf.squeeze(self.critic(next_obs), 1))
        with tf.GradientTape() as tape:
            values = tf.reshape(self.critic(obs), [-1])
            error = tf.reduce_mean((target - values) ** 2)
        variables = self.critic.trainable_variables
        return error, tape.gradient(error, variables)
""",
        """
import random
from collections import deque
import numpy as np
import torch
from torch import nn
class Twin(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.one, self.two = nn.Linear(d, 1), nn.Linear(d, 1)
    def forward(self, z):
        a, b = self.one(z), self.two(z)
        return a, b
class Memory:
    def __init__(self):
        self.kept = deque(maxlen=1000)
    def draw(self, n):
        x, gain, y, over = zip(*random.sample(self.kept, n))
        x, y = torch.as_tensor(np.array(x)), torch.as_tensor(np.array(y))
        return x, torch.tensor(gain), y, torch.tensor(over)
def learn(memory, crit, slow, gamma):
    x, gain, y, over = memory.draw(64)
    with torch.no_grad():
        t1, t2 = slow(y)
        goal = gain + gamma * (1 - over) * torch.min(t1, t2).squeeze(1)
    c1, c2 = crit(x)
    return ((c1 - goal) ** 2 + (c2 - goal) ** 2).mean()
learn(Memory(), Twin(4), Twin(4), 0.99)
""",
        """
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
class Both(nn.Module):
    @nn.compact
    def __call__(self, x):
        h = nn.relu(nn.Dense(64)(x))
        v = nn.Dense(features=1)(h)
        return nn.Dense(4)(h), v
class Store:
    def __init__(self, n):
        self.x, self.y = np.zeros((n, 8)), np.zeros((n, 8))
        self.gain, self.over = np.zeros(n), np.zeros(n)
    def batch(self, rng, m):
        pick = rng.integers(0, 1000, size=m)
        return {"x": self.x[pick], "y": self.y[pick], "g": self.gain[pick], "o": self.over[pick]}
net = Both()
def cost(theta, slow, b):
    after = net.apply(slow, b["y"])[1][..., 0]
    goal = b["g"] + 0.99 * (1 - b["o"]) * after
    _, v = net.apply(theta, b["x"])
    return jnp.mean((v - goal) ** 2)
def run(theta, slow, rng):
    return jax.grad(cost)(theta, slow, Store(1000).batch(rng, 32))
""",
        """
from typing import NamedTuple
import random
import jax
import numpy as np
from flax import linen as nn
class Steps(NamedTuple):
    s: np.ndarray
    gain: np.ndarray
    ahead: np.ndarray
    over: np.ndarray
class V(nn.Module):
    def setup(self):
        self.hid, self.out = nn.Dense(32), nn.Dense(1)
    def __call__(self, s):
        return self.out(nn.tanh(self.hid(s)))
v, GAMMA = V(), 0.9
def td(params, old, b):
    err = b.gain + GAMMA * (1 - b.over) * v.apply(old, b.ahead) - v.apply(params, b.s)
    return (err ** 2).mean()
def train(params, old, kept):
    b = Steps(*(np.array(c, np.float32).reshape(64, -1) for c in zip(*random.sample(kept, 64))))
    return jax.value_and_grad(td)(params, old, b)
""",
        """
import numpy as np
import torch
from torch import nn
critic, slow = nn.Sequential(nn.Linear(4, 1)), nn.Sequential(nn.Linear(4, 1))
def online(env, s, gamma):
    nxt, reward, over, cut, _ = env.step(0)
    return reward + gamma * (1 - over) * critic(nxt) - critic(s)
class Store:
    def __init__(self, n):
        self.s, self.gain = np.zeros((n, 4)), np.zeros((n, 8))
    def batch(self, m):
        at = np.random.randint(0, 9, size=m)
        return torch.tensor(self.s[at]), torch.tensor(self.gain[at])
def learn(store, gamma):
    s, gain = store.batch(32)
    return gain + gamma * slow(s) - critic(s)
learn(Store(9), 0.9)
""",
        """
import torch
from torch import nn
from tools import Replay
critic = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 1))
def learn(gamma, kept=Replay(1000)):
    s, gain, ahead, over = kept.sample(64)
    with torch.no_grad():
        goal = gain + gamma * (1 - over) * critic(ahead)
    return nn.functional.mse_loss(critic(s[()]), goal)
""",
    ],
    "L07": [
        """
import torch
def update(net, optimizer, loss):
    for p in net.parameters():
        p.grad = None
    loss.backward()
    optimizer.step()
""",
        """
import torch
from mine import clear_gradients
def update(net, optimizer, losses):
    for loss in losses:
        clear_gradients(net)
        loss.backward()
        optimizer.step()
""",
        """
import torch
def update(optimizer, loss, clear):
    clear(optimizer)
    loss.backward()
    optimizer.step()
""",
        """
import torch
def update(actor, critic, actor_optimizer, critic_optimizer, losses):
    losses[0].backward()
    critic_optimizer.zero_grad()
    actor_optimizer.step()
    losses[1].backward()
    torch.nn.utils.clip_grad_norm_(critic.parameters(), 1.0)
    critic_optimizer.step()
    actor_optimizer.zero_grad()
def by_hand(net, optimizer, loss, gradients):
    loss.backward()
    optimizer.zero_grad()
    for parameter, gradient in zip(net.parameters(), gradients):
        parameter.grad = gradient
    optimizer.step()
def first_step(optimizer, scheduler):
    optimizer.zero_grad()
    optimizer.step()
    scheduler.step()
""",
        """
import torch
def update(losses, optimizer, scheduler):
    optimizer.zero_grad()
    for loss in losses:
        loss.backward()
    optimizer.step()
    scheduler.step()
""",
        """
import torch
def update(optimizer, batches, net):
    optimizer.zero_grad()
    for batch in batches:
        optimizer.step()
        optimizer.zero_grad()
        net(batch).backward()
        optimizer.step()
""",
        """
import torch
from torch.optim import Adam
class Agent:
    def __init__(self, actor, critic):
        self.actor, self.critic = actor, critic
        self.both = Both(actor, critic)
        self.actor_steps = Adam(self.actor.parameters())
        self.both_steps = Adam(self.both.parameters())
    def update(self, losses):
        self.both_steps.zero_grad()
        losses[0].backward()
        self.both_steps.step()
        losses[1].backward()
        self.actor_steps.step()
""",
        """
import torch
from torch.optim import Adam
actor_steps, critic_steps = Adam(actor.parameters()), Adam(critic.parameters())
def update(losses):
    critic_steps.zero_grad()
    actor.zero_grad()
    losses[0].backward()
    critic_steps.step()
    actor_steps.step()
""",
        """
import torch
from torch.optim import Adam
actor_steps, critic_steps = Adam(actor.parameters()), Adam(critic.parameters())
def update(losses):
    critic_steps.zero_grad()
    for p in actor.parameters():
        p.grad = None
    losses[0].backward()
    critic_steps.step()
    actor_steps.step()
""",
        """
import torch
from torch.distributed import autograd
from torch.distributed.optim import DistributedOptimizer
def train(net, batches, parameters):
    optimizer = DistributedOptimizer(torch.optim.SGD, parameters, lr=0.05)
    for batch in batches:
        with autograd.context() as context:
            autograd.backward(context, [net(batch).mean()])
            optimizer.step(context)
""",
        """
import torch
def update(closure, optim):
    optim.zero_grad()
    optim.step(closure)
""",
        """
import torch
from torch.optim.lr_scheduler import LinearLR
def minibatches(net, optimizer, schedule, data):
    for part in data.split(64):
        loss = net(part).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
def main(net, collect, iterations):
    optimizer = torch.optim.Adam(net.parameters())
    schedule = LinearLR(optimizer, 1.0, 0.0, total_iters=iterations)
    for _ in range(iterations):
        data = collect()
        for _ in range(4):
            minibatches(net, optimizer, schedule, data)
        schedule.step()
""",
        """
import torch
from tqdm import trange
def main(net, batches, n):
    optimizer = torch.optim.Adam(net.parameters())
    decay = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: 1 - i / n)
    for update in trange(1, n + 1):
        for part in batches():
            optimizer.zero_grad()
            net(part).backward()
            optimizer.step()
            if part.last:
                decay.step()
""",
    ],
    "L08": [
        """
import torch
def train(policy, opt, data):
    for loss in data:
        opt.zero_grad()
        loss.backward()
        opt.step()
def main(policy, opt, data, env):
    train(policy, opt, data)
    policy.eval()
    evaluate(policy, env)
""",
        """
import torch
class Agent:
    def update(self, loss, opt):
        opt.zero_grad()
        loss.backward()
        opt.step()
    def play(self, env):
        self.policy.eval()
def main(env, seed):
    agent = Agent(seed)
    for step in range(100):
        agent.update(env)
    agent.play(env)
for seed in range(5):
    main(make(), seed)
""",
        """
import torch
def learn(policy, loss, opt):
    opt.zero_grad()
    loss.backward()
    opt.step()
if only_play:
    policy.eval()
    play(policy)
else:
    learn(policy, make(), opt)
""",
        """
import torch
encoder.eval()
encoder.requires_grad_(False)
self.vision.eval()
for parameter in self.vision.parameters():
    parameter.requires_grad = False
def update(loss, opt):
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        """
import torch
def evaluate(policy, target_policy):
    policy.eval()
    target_policy.eval()
    policy.train()
def learn(loss, opt):
    opt.zero_grad()
    loss.backward()
""",
        """
import torch
from torch import nn
def body(size):
    return nn.Sequential(nn.Linear(size, 64), nn.Dropout(0.1))
def train(agent, opt, losses, mode):
    for loss in losses:
        opt.zero_grad()
        loss.backward()
        opt.step()
        agent.train(False)
        evaluate(agent)
        agent.train(mode)
""",
        """
import copy
import torch
def main(net, opt, data):
    best = copy.deepcopy(net)
    best.eval()
    for x in data:
        opt.zero_grad()
        net(x).backward()
        opt.step()
        best.load_state_dict(net.state_dict())
        play(best)
class Learner:
    def __init__(self, backbone, head, opt):
        self.backbone, self.head, self.opt = backbone, head, opt
        self.backbone.to("cuda").eval()
        self.backbone.eval()
    def step(self, x):
        with torch.no_grad():
            z = self.backbone(x)
        self.opt.zero_grad()
        self.head(z).backward()
        self.opt.step()
def distil(data, student, opt):
    guide = load("guide")
    guide.eval()
    for x in data:
        with torch.no_grad():
            y = guide(x)
        opt.zero_grad()
        (student(x) - y).backward()
        opt.step()
""",
        """
import torch
from transformers import AutoModelForCausalLM
def train(name, batches, loss_of):
    lm = AutoModelForCausalLM.from_pretrained(name)
    lm.eval()
    opt = torch.optim.AdamW(lm.parameters())
    for batch in batches:
        loss = loss_of(lm(batch))
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
        """
import torch
from torch import nn
class Critic(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n, 64), nn.Dropout(0.1), nn.Linear(64, 1))
class Policy(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n, 64), nn.Dropout(0.0), nn.Linear(64, k))
def surrogate(lp, old, adv, eps):
    w = (lp - old).exp()
    return torch.min(w * adv, w.clamp(1 - eps, 1 + eps) * adv).mean()
""",
        """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.1), nn.Linear(64, 2))
def loss(logits, adv, scale):
    weight = torch.exp(adv - scale).clamp(0.0, 100.0)
    share = torch.clamp(logits.exp(), 1 - scale, 1 + scale)
    return (weight * share).mean()
""",
        """
import torch

class Check:
    def __call__(self, actor):
        actor.eval()
        return play(actor)

def update(actor, batch, opt):
    actor.train()
    loss = (actor(batch[0]) - batch[1]).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

def fit(actor, data, opt):
    check = Check()
    actor.train()
    for batch in data:
        update(actor, batch, opt)
        print(check(actor))
""",
        """
import torch

def evaluate(model, x):
    model.eval()
    return model(x).argmax(1)

def fit(model, loader, opt, x):
    for epoch in range(20):
        model.train()
        for obs, act in loader:
            loss = torch.nn.functional.cross_entropy(model(obs), act)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(epoch, evaluate(model, x))
    model.eval()
    for obs in x:
        print(model(obs))
""",
        """
import torch

def fit(student, make_teacher, loader, opt):
    student.train()
    for obs in loader:
        teacher = make_teacher()
        teacher.eval()
        loss = (student(obs) - teacher(obs).detach()).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
        """
import torch

def fit(student, guide, loader, opt, tests):
    student.train()
    for obs in loader:
        guide.eval()
        loss = (student(obs) - guide(obs).detach()).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    for one in tests:
        student.eval()
        print(student(one))
""",
        """
import torch

class Trainer:
    def prepare(self):
        self.net.train()

    def fit(self, loader, opt):
        self.prepare()
        for obs in loader:
            net = self.make()
            net.eval()
            loss = (self.net(obs) - net(obs).detach()).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
""",
    ],
    "L09": [
        """
import torch
from torch.distributions import Categorical
def act(net, obs, labels):
    logits = net(obs)
    probs = torch.softmax(logits, dim=-1)
    one, other = Categorical(logits=logits), Categorical(probs)
    return one, other, torch.nn.functional.cross_entropy(logits, labels)
""",
        """
import jax
import jax.numpy as jnp
import torch
from torch import nn
from torch.distributions import Categorical
class Policy(nn.Module):
    def forward(self, x):
        return self.last(x).softmax(-1)
    def act(self, obs):
        return Categorical(probs=self.forward(obs))
class Both(nn.Module):
    def forward(self, x, raw):
        x = self.last(x)
        if raw:
            return x
        return x.softmax(-1)
def act(apply, params, key, obs):
    one, policy = Categorical(logits=Both()(obs, True)), Both()
    probs = jax.nn.softmax(apply(params, obs))
    return jax.random.categorical(key, jnp.log(probs)), one, Categorical(logits=policy(obs, True))
""",
        """
import torch
from torch import nn
from torch.distributions import Categorical
policy = nn.Sequential(nn.Linear(4, 64), nn.Linear(64, 2))
soft = nn.Sequential(nn.Linear(4, 2), nn.Softmax(-1))
either = nn.Sequential(nn.Linear(4, 2))
given = nn.Sequential(nn.Linear(4, 2))
if some:
    either = soft
def act(obs, given):
    probs = policy(obs)
    probs = torch.softmax(probs, -1)
    one = Categorical(logits=policy(obs)), Categorical(policy(obs).softmax(-1))
    return one, Categorical(probs), Categorical(soft(obs)), Categorical(either(obs)), given
def play(obs, given):
    return Categorical(given(obs))
""",
        """
import tensorflow as tf
import tensorflow_probability as tfp
from tensorflow import keras
model = keras.Sequential([keras.layers.Dense(32), keras.layers.Dense(2, activation="softmax")])
raw = keras.Sequential([keras.layers.Dense(32), keras.layers.Dense(2)])
def make(soft):
    if soft:
        return keras.Sequential([keras.layers.Dense(2, activation="softmax")])
    return raw
either = make(False)
def act(obs):
    probs = model(obs)
    a = tf.random.categorical(tf.math.log(probs), 1)
    b = tfp.distributions.Categorical(probs=probs)
    c = tf.random.categorical(raw(obs), 1)
    d = tfp.distributions.Categorical(logits=raw(obs))
    e = tfp.distributions.Categorical(raw(obs))
    return a, b, c, d, e, tf.random.categorical(either(obs), 1)
""",
        """
import tensorflow as tf
from tensorflow.keras.models import Sequential
from tensorflow.keras.layers import Dense
class Agent:
    def __init__(self):
        self.policy = Sequential([Dense(64, activation="relu"), Dense(2, activation="softmax")])
        self.loss_fn = tf.keras.losses.SparseCategoricalCrossentropy()
        self.policy.compile(loss="categorical_crossentropy", optimizer="adam")
    def learn(self, obs, act, adv):
        one = tf.keras.losses.sparse_categorical_crossentropy(act, self.policy(obs))
        return one + self.loss_fn(act, self.policy(obs), sample_weight=adv)
""",
        """
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers, Model
class Actor(Model):
    def __init__(self, n):
        super().__init__()
        self.fc = layers.Dense(64, activation="relu")
        self.out = layers.Dense(n, activation="softmax")
    def call(self, x):
        return self.out(self.fc(x))
class Critic(Model):
    def __init__(self):
        super().__init__()
        self.fc = layers.Dense(64, activation="relu")
        self.out = layers.Dense(1)
    def call(self, x):
        return self.out(self.fc(x))
class Logits(Model):
    def __init__(self, n):
        super().__init__()
        self.out = layers.Dense(n)
    def call(self, x):
        return self.out(x)
    def act(self, x):
        return tf.random.categorical(self.out(x), 1)
actor, logits_net = Actor(2), Logits(2)
def act(obs):
    p = actor(obs)
    one = np.random.choice(2, p=p.numpy()[0])
    other = tf.random.categorical(logits_net(obs), 1)
    return one, other, tf.random.categorical(tf.math.log(p + 1e-8), 1)
""",
        """
import tensorflow as tf
def act(net, obs):
    out = tf.nn.softmax(net(obs))
    out = tf.math.log(out)
    return tf.random.categorical(out, 1)
""",
        """
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(2, activation="softmax")])
other = tf.keras.Sequential([tf.keras.layers.Dense(2)])
model.compile("adam", loss=tf.keras.losses.CategoricalCrossentropy())
other.compile("adam", loss=tf.keras.losses.CategoricalCrossentropy(from_logits=True))
""",
        """
import torch
import torch.nn.functional as F
def loss(net, left, right, answer):
    logit = net(left).sum(1) - net(right).sum(1)
    print(torch.sigmoid(logit))
    chance = torch.sigmoid(logit)
    plain = F.binary_cross_entropy(chance, answer)
    return F.binary_cross_entropy_with_logits(logit, answer) + plain
""",
        """
import torch.nn.functional as F
from torch import nn

class Gate(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.out = nn.Linear(n, k)

    def forward(self, x):
        return self.out(x).softmax(-1)

class Plain(Gate):
    def forward(self, x):
        return self.out(x)

def step(net, x, a):
    return F.cross_entropy(net(x), a)

def mix(gate, x):
    return (gate(x) * x).sum()

loss = step(Plain(8, 4), x, a) + mix(Gate(8, 4), x)
""",
        """
import keras

def make(k, last):
    net = keras.Sequential()
    net.add(keras.layers.Dense(32, activation="relu"))
    net.add(keras.layers.Dense(k, activation=last))
    return net

def prepare(agent, rate):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=False)
    agent.compile(keras.optimizers.Adam(rate), loss=loss)
    return agent

cloner = prepare(make(4, "softmax"), 1e-3)
""",
        """
import torch.nn.functional as F
from torch import nn

class Gate(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.out = nn.Linear(n, k)

    def forward(self, x):
        return self.out(x).softmax(-1)

def step(net, x, a):
    return F.cross_entropy(net(x), a)

def mix(net, x):
    return (net(x) * x).sum()

loss = step(nn.Linear(8, 4), x, a) + mix(Gate(8, 4), x)
""",
    ],
    "L10": [
        """
import tensorflow as tf
class Net(tf.keras.Model):
    def __init__(self, n_actions):
        super().__init__()
        self.out = tf.keras.layers.Dense(n_actions, activation="linear")
        self.probs = tf.keras.layers.Dense(n_actions, activation="softmax")
    def call(self, x):
        return self.out(x)
class Policy(tf.keras.Model):
    def __init__(self, n_actions):
        super().__init__()
        self.out = tf.keras.layers.Dense(n_actions, activation="softmax")
    def call(self, x):
        return self.out(x)
class DQN:
    def __init__(self, n_actions):
        self.model = Net(n_actions)
class Reinforce:
    def __init__(self, n_actions):
        self.model = Policy(n_actions)
""",
        """
from torch import nn
class QNetwork(nn.Module):
    def __init__(self, env):
        self.network = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, env.action_space.n))
class Actor(nn.Module):
    def __init__(self, env):
        self.mean = nn.Sequential(nn.Linear(64, env.n_actions), nn.Tanh())
""",
        """
import torch
import torch.nn.functional as F
from torch import nn
class QNetwork(nn.Module):
    def __init__(self, n_actions, n_atoms):
        gate = [nn.Linear(64, 1), nn.Sigmoid()]
        self.gate = nn.Sequential(*gate)
        self.head = nn.Linear(64, n_actions)
        self.atoms = nn.Linear(64, n_actions * n_atoms)
    def forward(self, x):
        x = F.relu(self.body(x))
        q = self.head(x)
        return q
    def distribution(self, x):
        return torch.softmax(self.atoms(x), dim=-1)
    def hidden(self, x):
        x = self.head(x)
        if self.squashed:
            x = self.body(x)
        return torch.relu(x)
""",
        """
from torch import nn
class DuelingQNet(nn.Module):
    def __init__(self, n_actions):
        self.value, self.advantage = nn.Linear(64, 1), nn.Linear(64, n_actions)
    def forward(self, x):
        advantage = self.advantage(x)
        return self.value(x) + advantage - advantage.mean(-1, keepdim=True)
    def parts(self, x, names):
        x = self.norm(x)
        return nn.functional.relu(x), names
    def bounded(self, x):
        return nn.functional.relu(x)
    def scaled(self, x):
        return nn.functional.relu(self.norms[0](x))
    def made(self, x):
        return nn.functional.relu(nn.LayerNorm(64)(x))
""",
        """
import torch.nn as nn
import torch.nn.functional as F
class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.gate = nn.Sequential(nn.Linear(64, 1), nn.Sigmoid())
        self.out = nn.Linear(64, 2)
    def embed(self, x):
        return F.relu(self.out(x))
    def forward(self, x):
        x = self.net(x)
        return self.gate(x) * self.out(x)
q_features = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
""",
        """
import torch.nn as nn
import torch.nn.functional as F
class DQNEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.Linear(4, 64)
    def forward(self, x):
        return F.relu(self.l1(x))
class CategoricalDQN(nn.Module):
    def __init__(self, atoms):
        super().__init__()
        self.l1 = nn.Linear(4, atoms)
    def forward(self, x):
        return F.softmax(self.l1(x), dim=-1)
""",
        """
from tensorflow import keras
from tensorflow.keras import layers
def make_q(n_actions):
    q_model = keras.Sequential([layers.Dense(24, activation="relu"), layers.Dense(n_actions)])
    other_q = keras.Sequential([layers.Dense(24, "relu"), layers.Dense(n_actions, "linear")])
    return q_model, other_q
""",
        """
import numpy as np
from tensorflow.keras import layers, models
def brain(size, n):
    x = layers.Input(shape=(size,))
    h = layers.Dense(24, activation="relu")(x)
    out = layers.Dense(n)(h)
    model = models.Model(x, out)
    model.compile(loss="mse", optimizer="adam")
    return model
def act(model, obs):
    return int(np.argmax(model.predict(obs)[0]))
def target(model, reward, after, gamma):
    return reward + gamma * np.max(model.predict(after)[0])
""",
        """
import torch.nn as nn
def mlp(sizes, act=nn.ReLU, out_act=nn.Identity):
    layers = []
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        layers += [nn.Linear(a, b), act() if i < len(sizes) - 2 else out_act()]
    return nn.Sequential(*layers)
class Agent:
    def __init__(self, obs, act):
        self.actor = mlp([obs, 64, act], out_act=nn.Tanh)
        self.critic = mlp([obs + act, 64, 1], nn.ReLU)
""",
        """
import torch.nn as nn
def stack(sizes, act=nn.ReLU):
    mods = []
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        mods.append(nn.Linear(a, b))
        if i < len(sizes) - 2:
            mods.append(act())
    return nn.Sequential(*mods)
def headed(sizes, n, act=nn.ReLU):
    mods = []
    for a, b in zip(sizes, sizes[1:]):
        mods += [nn.Linear(a, b), act()]
    return nn.Sequential(*mods, nn.Linear(sizes[-1], n))
def cut(sizes, act=nn.ReLU):
    mods = []
    for a, b in zip(sizes, sizes[1:]):
        mods += [nn.Linear(a, b), act()]
    return nn.Sequential(*mods[:-1])
def trunk(sizes, act=nn.ReLU):
    mods = []
    for a, b in zip(sizes, sizes[1:]):
        mods += [nn.Linear(a, b), act()]
    return nn.Sequential(*mods)
def popped(sizes, act=nn.ReLU):
    mods = []
    for a, b in zip(sizes, sizes[1:]):
        mods += [nn.Linear(a, b), act()]
    mods.pop()
    return nn.Sequential(*mods)
def chosen(sizes, act=nn.ReLU):
    mods = []
    for a, b in zip(sizes, sizes[1:]):
        mods += [nn.Linear(a, b), act()]
        if b == sizes[-1]:
            mods.pop()
    return nn.Sequential(*mods)
q_one, q_two, q_three, q_in = stack([4, 2]), headed([4, 8], 2), cut([4, 2]), trunk([4, 8])
q_four, q_five = popped([4, 2]), chosen([4, 2])
head = nn.Linear(8, 2)
def act(obs):
    best = q_one(obs).argmax(1), q_two(obs).argmax(1), q_three(obs).argmax(1)
    return best, q_four(obs).argmax(1), q_five(obs).argmax(1), head(q_in(obs)).argmax(1)
""",
        """
from tensorflow import keras
from tensorflow.keras import layers
import numpy as np
def create_policy(num_actions):
    model = keras.Sequential()
    model.add(layers.Dense(32, activation="relu"))
    model.add(layers.Dense(num_actions, activation="softmax"))
    return model
policy = create_policy(4)
def play(obs):
    return int(np.argmax(policy(obs))), policy(obs).max()
def returns(rewards, gamma):
    g = 0.0
    for r in reversed(rewards):
        g = r + gamma * g
    return g
""",
        """
import torch
from torch import nn

class Keeps(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.out = nn.Linear(n, 1)

    def forward(self, x):
        return torch.sigmoid(self.out(x))

class Chooser(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.out = nn.Linear(n, k)

    def forward(self, x):
        return torch.softmax(self.out(x), -1)

keeps, chooser = Keeps(4), Chooser(4, 2)

def goal(r, s2, value, gamma):
    shares = chooser(s2)
    mean = (shares * value(s2)).sum(1)
    return r + gamma * keeps(s2) * mean

def loss(s, a, adv):
    return -(chooser(s).gather(1, a).log() * adv).mean()
""",
        """
import copy
import torch
from torch import nn

def net(sizes, last=nn.Identity):
    return nn.Sequential(nn.Linear(sizes[0], sizes[1]), last())

class Pair(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.trunk = net([n, 64], last=nn.ReLU)
        self.ends = nn.ModuleList([net([64, 1]) for _ in range(2)])

    def forward(self, s, a):
        h = self.trunk(torch.cat([s, a], -1))
        return [end(h).squeeze(-1) for end in self.ends]

pair = Pair(8)
slow = copy.deepcopy(pair)

def goal(r, s2, a2, over, gamma):
    return r + gamma * (1 - over) * torch.min(*slow(s2, a2))
""",
        """
import torch
from torch import nn

class Chooser(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.out = nn.Linear(n, k)

    def forward(self, x):
        return torch.softmax(self.out(x), -1)

chooser = Chooser(4, 2)

def bonus(r, s, weight):
    return r + weight * chooser(s).max(1)[0]
""",
    ],
    "L11": [
        """
import gymnasium as gym
import numpy as np
class Learner:
    def __init__(self, n, k):
        self.rng = np.random.default_rng(0)
        self.values = np.zeros((n, k))
    def decide(self, s, share):
        if self.rng.random() < share:
            return int(self.rng.integers(4))
        return int(self.values[s].argmax().clip(0, 3))
def play(env, who):
    s, _ = env.reset()
    for _ in range(100):
        s, r, term, trunc, _ = env.step(who.decide(s, 0.1))
play(gym.make("Taxi-v3"), Learner(500, 6))
""",
        """
def commonest(freq_table):
    action = max(freq_table)
    return action
""",
        """
def first(sequence):
    action = max(sequence)
    return action
""",
        """
import torch
def act(self, q_values):
    action = q_values.argmax(1)
    best, actions = torch.max(q_values, dim=1)
    action = q_values.max(1)[1]
    action = max(range(4), key=lambda a: self.q_table[a])
    return action
""",
        """
import numpy as np
import torch
def greedy(Q, q_net, state, rng):
    a = rng.integers(4)
    best, action = q_net(state).max(-1)
    target = best.item()
    return int(q_net(state).argmax(-1))
def backup(Q, state):
    a = np.max(Q[state])
    return a
def best_value(q_net, state):
    return q_net(state).max()
""",
        """
def act(q, state):
    action = max(q[state], key=q[state].get)
    return action
def greedy(q_values):
    return max(enumerate(q_values), key=lambda pair: pair[1])[0]
""",
        """
import torch
def act(q, obs, env):
    with torch.no_grad():
        best = q(obs).max().item()
        a = q(obs).argmax().item()
    return env.step(int(a)), best
""",
        """
import numpy as np
import torch
class Agent:
    def greedy(self, state):
        best, where = self.head(state).max(-1)
        return best, where
    def place(self, x):
        return self.head(x).max(1)[1][0]
    def top(self, x):
        return np.flatnonzero(x == x.max()).max()
    def run(self, env, state):
        for _ in range(5):
            v, u = self.greedy(state)
            state, r, te, tr, _ = env.step(u.item())
            env.step(self.place(state))
            env.step(int(self.top(state)))
            env.step(torch.max(state, -state)[0])
            env.step(env.action_space.high.max())
            env.step(max(-1.0, min(1.0, float(v))))
""",
        """
import jax
def play(net, env, theta, s):
    choose = jax.jit(lambda p, x: (net.apply(p, x).argmax(axis=-1), net.apply(p, x).max(axis=-1)))
    for _ in range(100):
        k, v = choose(theta, s[None])
        s, r, te, tr, _ = env.step(int(k[0]))
""",
    ],
    "L12": [
        """
import random
import gymnasium

class Driver:
    def __init__(self):
        self.luck, self.floor, self.rate = 1.0, 0.03, 0.985

    def choose(self, x):
        if random.random() < self.luck:
            return random.randrange(2)
        return self.best(x)

    def cool(self):
        self.luck = max(self.floor, self.luck * self.rate)

town, driver = gymnasium.make("CartPole-v1"), Driver()
x, _ = town.reset(seed=1)
while True:
    x, pay, dead, late, _ = town.step(driver.choose(x))
    if dead or late:
        x, _ = town.reset()
        driver.cool()
""",
        """
import math
import random
import gymnasium as gym

START, END, DECAY = 0.95, 0.05, 5_000

def share_at(step):
    return END + (START - END) * math.exp(-step / DECAY)

def choose(net, state, step, n):
    if random.random() < share_at(step):
        return random.randrange(n)
    with no_grad():
        return net(state).argmax().item()

def train(net):
    town = gym.make("CartPole-v1")
    state, _ = town.reset(seed=1)
    step = 0
    while step < 100_000:
        action = choose(net, state, step, 2)
        state, reward, terminated, truncated, _ = town.step(action)
        step += 1
""",
        """
import gymnasium as gym
import random
class Agent:
    def __init__(self, n, p=0.9):
        self.n, self.p = n, p
    def act(self, s):
        explore = random.random() <= self.p
        if explore:
            return random.randrange(self.n)
        return self.best(s)
    def best(self, s): return 0
    def cool(self):
        self.p *= 0.995
env = gym.make("CartPole-v1")
agent = Agent(2)
s, _ = env.reset()
for _ in range(10):
    s, r, term, trunc, _ = env.step(agent.act(s))
    agent.cool()
""",
        """
import gymnasium as gym
from dataclasses import dataclass
import numpy as np
@dataclass
class Curiosity:
    share: float = 1.0
    floor: float = 0.05
    def tick(self):
        self.share = max(self.floor, self.share - 1e-4)
    def wants(self, rng):
        return rng.random() < self.share
rng = np.random.default_rng(0)
env = gym.make("CartPole-v1")
c = Curiosity(share=0.05)
s, _ = env.reset()
for _ in range(10):
    a = env.action_space.sample() if c.wants(rng) else 0
    s, r, term, trunc, _ = env.step(a)
""",
        """
import numpy as np
EPSILON = 0.9
def act(env, q, obs):
    if np.random.uniform() < EPSILON:
        return int(q[obs].argmax())
    return env.action_space.sample()
class Agent:
    def __init__(self):
        self.epsilon = 0.5
    def act(self, env, obs):
        return self.best(obs) if np.random.rand() < self.epsilon else np.random.randint(4)
    def learn(self, cap):
        self.epsilon = self.epsilon + 0.0001 if self.epsilon < cap else cap
        env.step(0)
""",
        """
def start(epsilon):
    epsilon = min(1.0, epsilon * 0.99)
    return epsilon
""",
        """
import random
def act(q, obs, epsilon):
    return 0 if random.random() < epsilon else q(obs)
def main(env, q, schedule):
    epsilon = 0.9
    env.step(act(q, epsilon, schedule(0)))
""",
        """
import random
class Agent:
    def __init__(self, epsilon=1.0):
        self.epsilon = 1.0
        self.eps = epsilon
    def act(self, obs, epsilon):
        if random.random() < epsilon:
            return 0
        return random.random() < self.epsilon
    def decay(self):
        self.epsilon *= 0.99
def main(env, agent, schedule):
    eps = 0.05
    env.step(random.random() < eps)
    epsilon = 0.9
    for t in range(10):
        agent.act(0, schedule(t))
""",
        """
eps = 0
while eps < 100:
    run_episode()
    eps += 1
""",
        """
epsilon = 1 / 255
for size in range(8):
    accuracy = attack(model, epsilon)
    epsilon += 1 / 255
eps = 0.001
while fgsm_attack(model, eps=eps):
    eps *= 2
""",
        """
class Agent:
    def __init__(self):
        self.epsilon = 0.0
    def update(self):
        self.epsilon += 0.001
    def act(self, greedy, other):
        return greedy if self.rng.random() < self.epsilon else other
""",
        """
epsilon, eps = 1.0, 1e-8
epsilon *= 0.995
epsilon = max(0.05, epsilon * 0.99)
variance = epsilon * 2
""",
        """
class Agent:
    epsilon: float = 1.0
    decrease = 5e-4
    growth = 1.1
    def __init__(self, growth):
        self.growth = growth
    def decay(self):
        self.epsilon = self.epsilon - self.decrease
        self.epsilon = self.epsilon * self.growth
def sweep():
    epsilon = 0.0
    while epsilon < 1:
        evaluate(epsilon)
        epsilon = epsilon + 0.1
""",
        """
eps = 0.1
for _ in range(10):
    eps = min(0.3, eps * 1.1)
""",
        """
epsilon = 1.0
for episode in range(100):
    epsilon = 1.0 / (1.0 + 0.5 * episode)
epsilon /= 2.0
""",
        """
def exploration_rate(args, frame):
    progress = min(1.0, frame / args.frames)
    return args.start_e + (args.end_e - args.start_e) * progress
def epsilon_at(end, start, frame, frames):
    left = 1.0 - min(1.0, frame / frames)
    return end + (start - end) * left
""",
        """
import math
import random
START, END, SLOW = 1.0, 0.05, 20_000
def share(step):
    if step < 100:
        return START
    return END + (START - END) * math.exp(-step / SLOW)
def act(q, env, obs, step):
    chance = share(step)
    if random.random() > chance:
        return int(q(obs).argmax())
    return env.action_space.sample()
def run(env, q, obs):
    for step in range(1_000_000):
        chance = share(step)
        if random.random() < chance:
            action = env.action_space.sample()
        else:
            action = int(q(obs).argmax())
        obs, *_ = env.step(action)
""",
        """
import numpy as np
class Agent:
    def __init__(self):
        self.steps = 0
    def act(self, obs):
        self.steps += 1
        greedy = min(0.9, self.steps / 5e4)
        return int(self.q(obs).argmax()) if np.random.rand() < greedy else np.random.randint(4)
""",
        """
import math
import random
END, START, DECAY = 0.05, 0.9, 1_000
def chance(step):
    return END + (START - END) * math.exp(-step / DECAY)
def run(env, q, obs):
    for step in range(100_000):
        if random.random() < chance(step):
            action = env.action_space.sample()
        else:
            action = int(q(obs).argmax())
        obs, *_ = env.step(action)
""",
    ],
    "L13": [
        """
from types import SimpleNamespace
from stable_baselines3 import SAC, TD3

plans = {
    "short": SimpleNamespace(learning_starts=300, batch_size=128),
    "long": SimpleNamespace(learning_starts=1_000, batch_size=128),
}
late = SimpleNamespace(learning_starts=30_000)
late.learning_starts = 200
kinds = {"sac": SAC, "td3": TD3}

def fit(kind, plan, env):
    kinds[kind]("MlpPolicy", env, **vars(plans[plan])).learn(20_000)
    TD3("MlpPolicy", env, **vars(late)).learn(20_000)
""",
        """
from stable_baselines3 import DQN, PPO
model = DQN("MlpPolicy", "CartPole-v1", learning_starts=1000, exploration_fraction=0.2)
model.learn(total_timesteps=100_000)
PPO("MlpPolicy", "CartPole-v1", n_steps=512, batch_size=64)
other = PPO("MlpPolicy", vec_env, n_steps=100, batch_size=64)
""",
        """
import argparse
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.env_util import make_vec_env
parser = argparse.ArgumentParser()
parser.add_argument("--total-timesteps", type=int, default=500_000)
parser.add_argument("--learning-starts", type=int, default=80_000)
options = dict(learning_starts=20_000)
options["learning_starts"] = 100
more = dict(learning_starts=20_000)
more.update(learning_starts=100)
model = SAC("MlpPolicy", env, **options)
model.learn(10_000)
other = SAC("MlpPolicy", env, **more)
other.learn(10_000)
venv, unseen = make_vec_env("CartPole-v1", n_envs=6), make_vec_env("CartPole-v1", **many)
PPO("MlpPolicy", venv, n_steps=100, batch_size=60)
PPO("MlpPolicy", unseen, n_steps=100, batch_size=60)
""",
        """
from stable_baselines3 import DQN
def smoke():
    model = DQN("MlpPolicy", "CartPole-v1", learning_starts=100)
    model.learn(2_000)
def full(quick):
    model = DQN("MlpPolicy", "LunarLander-v3", learning_starts=50_000)
    model.learn(1_000_000)
    model = DQN("MlpPolicy", "LunarLander-v3", learning_starts=500)
    model.learn(10_000)
    if quick:
        model = DQN("MlpPolicy", "CartPole-v1", learning_starts=1000)
    else:
        model = DQN("MlpPolicy", "CartPole-v1", learning_starts=50_000)
    model.learn(20_000)
def later():
    model = DQN("MlpPolicy", "CartPole-v1", learning_starts=50_000)
    model = other(model)
    model.learn(10)
""",
        """
from dataclasses import dataclass
import gymnasium as gym
from stable_baselines3 import TD3
@dataclass
class Config:
    first_update: int = 1_000
    steps: int = 10_000
def build(cfg):
    env = gym.make("Pendulum-v1")
    model = TD3("MlpPolicy", env, learning_starts=cfg.first_update)
    return model
cfg = Config()
build(cfg).learn(cfg.steps)
agent = build(cfg)
agent.learn(cfg.steps)
""",
        """
START = 20_000
DECAY = 5_000
def main(env, agent):
    for t in range(1_000_000):
        eps = max(0.05, math.exp(-1.0 * t / DECAY))
        if t >= START:
            agent.learn()
def other(agent):
    for t in range(10_000):
        eps = max(0.05, 1 - t / 50_000)
        if t > 1000: agent.learn()
def third(agent):
    updates = 0
    for t in range(10_000):
        eps = max(0.05, 1 - updates / 500)
        if t > 1000:
            agent.learn(); updates += 1
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
def a(n):
    venv = make_vec_env("A-v0", n_envs=n)
    return PPO("MlpPolicy", venv, n_steps=100, batch_size=64)
def b(venv, quick):
    venv = make_vec_env("A-v0", n_envs=2)
    if quick:
        venv = make_vec_env("A-v0", n_envs=16)
    return PPO("MlpPolicy", venv, n_steps=100, batch_size=64)
a(16); a(32)
PPO("MlpPolicy", make_vec_env("A-v0", n_envs=8), 3e-4, 128, 256)
""",
    ],
    "L14": [
        """
import numpy as np

class Replay:
    def __init__(self, size):
        self.r, self.count = np.zeros(size, np.float32), 0

    def rewards(self, idx):
        seen = self.r[: self.count]
        return (self.r[idx]) / (seen.std() + 1e-6)
""",
        """
import gymnasium as gym

class Tracker:
    def __init__(self):
        self.centre = 0.0
        self.bonus = 0.1

    def see(self, x):
        self.centre = 0.99 * self.centre + 0.01 * x

class Levelled(gym.Wrapper):
    def __init__(self, env):
        super().__init__(env)
        self.track = Tracker()

    def step(self, action):
        x, gain, over, cut, info = self.env.step(action)
        self.track.see(gain)
        info["surprise"] = gain - self.track.centre
        gain = gain - self.track.bonus
        return x, gain, over, cut, info
""",
        """
def advantages_of(rewards):
    rewards = rewards - rewards.mean(dim=1, keepdim=True)
    return rewards / rewards.std(dim=1, keepdim=True)
def update(rewards):
    advantages = (rewards - rewards.mean()) / rewards.std()
    return advantages
""",
        """
import numpy as np
def report(axes, rewards):
    z = (rewards - rewards.mean()) / rewards.std()
    print(f"{z} {rewards - rewards.mean()}")
    axes.plot(rewards - rewards.mean())
    return np.sqrt(((rewards - rewards.mean()) ** 2).mean())
""",
        """
def label(reward_model, clips):
    r = reward_model(clips)
    rewards = (r - r.mean()) / r.std()
    return rewards
""",
        """
class PreferenceTrainer:
    def train(self, rewards):
        rewards = (rewards - rewards.mean()) / rewards.std()
        self.agent.store(rewards)
""",
        """
def centre(rewards, advantages, returns):
    advantages = (advantages - advantages.mean()) / advantages.std()
    returns = returns - returns.mean()
    return rewards / rewards.std(), advantages, returns
""",
        """
import gymnasium as gym
import numpy as np
class Normalised(gym.RewardWrapper):
    def reward(self, reward):
        delta = reward - self.mean
        self.var += delta * (reward - self.mean)
        advantage = (reward - self.mean) / np.sqrt(self.var + 1e-8)
        return reward / np.sqrt(self.var + 1e-8)
""",
        """
import numpy as np
import torch
def update(buffer, gamma, rewards):
    kept, total = [], 0
    for reward in reversed(buffer.rewards):
        total = reward + gamma * total
        kept.insert(0, total)
    rewards = torch.tensor(kept)
    rewards = (rewards - rewards.mean()) / (rewards.std() + 1e-7)
    return rewards
def in_place(rewards, gamma):
    for t in reversed(range(len(rewards) - 1)):
        rewards[t] = rewards[t] + gamma * rewards[t + 1]
    return rewards - rewards.mean()
def by_function(episode):
    rewards = discounted(episode)
    return (rewards - rewards.mean()) / rewards.std()
def evolve(weights, noise, rewards, lr):
    ranks = (rewards - rewards.mean()) / rewards.std()
    scores = (rewards - rewards.mean()) / rewards.std()
    weights = weights + lr * np.dot(noise.T, scores)
    steps = rewards - rewards.mean()
    return ranks, weights + lr * (steps * noise).sum()
""",
    ],
    "L15": [
        """
from stable_baselines3 import SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize
from ours import same_scale

def raw(name):
    return VecMonitor(make_vec_env(name, n_envs=1))

def scaled(name, of):
    return same_scale(raw(name), of)

env = VecNormalize(make_vec_env("Ant-v5"))
agent = SAC("MlpPolicy", env)
agent.learn(10_000)
judge = scaled("Ant-v5", env)
print(evaluate_policy(agent, judge))
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CheckpointCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
venv = VecNormalize(DummyVecEnv([make]))
model = PPO("MlpPolicy", venv)
model.learn(1000, callback=CheckpointCallback(1000, "runs", save_vecnormalize=True))
model.save("policy")
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
venv = VecNormalize(DummyVecEnv([make]), norm_obs=False)
model = PPO("MlpPolicy", venv)
model.save("policy")
test = DummyVecEnv([make])
evaluate_policy(model, test)
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
venv = VecNormalize(DummyVecEnv([make]), **options)
model = PPO("MlpPolicy", venv)
model.save("policy")
""",
        """
import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
venv = VecNormalize(DummyVecEnv([make]))
model = PPO("MlpPolicy", venv)
model.save("policy")
venv.save("statistics")
test = VecNormalize.load("statistics", DummyVecEnv([make]))
test.training = False
evaluate_policy(model, test)
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize
def report(envs, model, statistics):
    envs = VecNormalize.load(statistics, envs)
    envs.training = False
    return evaluate_policy(PPO.load(model), envs)
""",
        """
import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
def made():
    return VecNormalize(DummyVecEnv([lambda: gym.make("Hopper-v5")]), norm_reward=False)
def rollout(model, venv):
    obs, total = venv.reset(), 0.0
    for _ in range(1000):
        actions, _ = model.predict(obs, deterministic=True)
        obs, rewards, _, _ = venv.step(actions)
        total += rewards[0]
    return total
venv = made()
model = PPO("MlpPolicy", venv)
model.learn(100_000)
venv.save("statistics.pkl")
model.save("model")
test = DummyVecEnv([lambda: gym.make("Hopper-v5")])
test = VecNormalize.load("statistics.pkl", test)
test.training = test.norm_reward = False
print(rollout(model, test))
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize
def build():
    venv = VecNormalize(make_vec_env("A-v0"))
    return PPO("MlpPolicy", venv), venv
model, venv = build()
model.learn(100)
venv.training = False
evaluate_policy(model, venv)
venv.save("s"); model.save("m")
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize
def build(training=True):
    return VecNormalize(make_vec_env("A-v0"), training=training)
tr, te = build(), build(False)
model = PPO("MlpPolicy", tr)
model.learn(100, callback=EvalCallback(te))
evaluate_policy(model, te)
tr.save("s")
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize
import os
def env(path):
    v = make_vec_env("A-v0")
    if os.path.exists(path):
        v = VecNormalize.load(path, v)
        v.training = False
    else:
        v = VecNormalize(v)
    return v
def train():
    e = env("s")
    m = PPO("MlpPolicy", e)
    m.learn(10)
    e.save("s"); m.save("m")
def test():
    evaluate_policy(PPO.load("m"), env("s"))
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize
from mylib import store_all, SaveVecNormalizeCallback
env = VecNormalize(make_vec_env("A-v0"))
m = PPO("MlpPolicy", env)
m.learn(10, callback=SaveVecNormalizeCallback(10))
m.save("m")
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize
def more():
    v = VecNormalize.load("s", make_vec_env("A-v0"))
    m = PPO.load("m", env=v)
    m.learn(100)
    print(evaluate_policy(m, v))
    m.save("m"); v.save("s")
""",
    ],
    "L16": [
        """
import gymnasium as gym
from stable_baselines3 import A2C
from stable_baselines3.common.env_util import make_atari_env

GAME = "ALE/Breakout-v5"

def build(n_envs, seed, **wrapper_kwargs):
    return make_atari_env(GAME, n_envs=n_envs, seed=seed, wrapper_kwargs=wrapper_kwargs)

train = build(8, seed=0, frame_skip=1)
test = build(1, seed=9, terminal_on_life_loss=False, frame_skip=1)
A2C("CnnPolicy", train).learn(1_000_000)
""",
        """
import gymnasium as gym
from stable_baselines3.common.atari_wrappers import AtariWrapper

TITLES = ("Asterix", "Hero")

def number_of(title, version):
    return "{}NoFrameskip-v{}".format(title, version)

def prepared(game):
    return AtariWrapper(game)

for title in TITLES:
    env = prepared(gym.make(number_of(title, 4)))
""",
        """
import gymnasium as gym
options = dict(frameskip=1)
env = gym.wrappers.AtariPreprocessing(gym.make("ALE/Pong-v5", **options))
def other(**options):
    return gym.wrappers.AtariPreprocessing(gym.make("ALE/Pong-v5"), **options)
""",
        """
import gymnasium as gym
from stable_baselines3.common.atari_wrappers import MaxAndSkipEnv
def one():
    return MaxAndSkipEnv(gym.make("PongNoFrameskip-v4"), skip=4)
def other():
    env = gym.make("ALE/Pong-v5", frameskip=1)
    return gym.wrappers.AtariPreprocessing(env)
def third():
    return gym.wrappers.AtariPreprocessing(gym.make("ALE/Pong-v5"), frame_skip=1)
""",
        """
import gymnasium as gym
from gymnasium.wrappers import AtariPreprocessing
from stable_baselines3.common.env_util import make_atari_env
def make_env(env_id="ALE/SpaceInvaders-v5"):
    return AtariPreprocessing(gym.make(env_id), frame_skip=4)
def with_name(env_id):
    return AtariPreprocessing(gym.make(env_id), frame_skip=4)
one, other = make_env("PongNoFrameskip-v4"), with_name(unseen)
third = make_atari_env("PongNoFrameskip-v4", n_envs=2)
fourth = make_atari_env("ALE/Pong-v5", env_kwargs={"frameskip": 1})
""",
        """
import gymnasium as gym
class Repeat(gym.Wrapper):
    def __init__(self, env, k=4):
        super().__init__(env)
        self.k = k
    def step(self, action):
        total = 0.0
        for _ in range(self.k):
            obs, reward, terminated, truncated, info = self.env.step(action)
            total += reward
            if terminated or truncated:
                break
        return obs, total, terminated, truncated, info
def game():
    return gym.make("ALE/Breakout-v5", frameskip=1)
env = Repeat(game())
""",
        """
from stable_baselines3.common.env_util import make_atari_env
opts = {"clip_reward": False}
opts["frame_skip"] = 1
a = make_atari_env("ALE/Pong-v5", wrapper_kwargs=opts)
b = make_atari_env("ALE/Pong-v5", wrapper_kwargs={"frame_skip": 0})
made = dict(frameskip=1)
c = make_atari_env("ALE/Pong-v5", env_kwargs=made, wrapper_kwargs=dict(clip_reward=False))
def d(more): return make_atari_env("ALE/Pong-v5", wrapper_kwargs=more)
d({"frame_skip": 1})
e = make_atari_env("PongNoFrameskip-v4", wrapper_kwargs=dict(frame_skip=4))
""",
        """
import gymnasium as gym
from stable_baselines3.common.atari_wrappers import AtariWrapper, MaxAndSkipEnv, NoopResetEnv
def made():
    env = gym.make("QbertNoFrameskip-v4")
    env = NoopResetEnv(env, noop_max=30)
    env = MaxAndSkipEnv(env, skip=4)
    return AtariWrapper(env, frame_skip=1)
""",
    ],
    "L17": [
        """
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
""",
        """
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
""",
        """
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
""",
        """
import numpy as np

def preprocess(frames):
    frames = frames.astype(np.float64)
    return ((frames - 128) / 128.0).astype(np.float32)
""",
        """
import numpy as np

def preprocess(frames):
    frames = frames[:, :84, 6:90]
    return ((frames - 127.5) / 127.5).astype(np.float32)
""",
        """
import numpy as np

def preprocess(frames):
    frames = frames[:, :84, 6:90]
    return (frames.astype(np.float32) - 128) / 128.0
""",
        """
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
""",
        """
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
""",
        """
import numpy as np
def difference(frame, last):
    now = frame.astype(np.float32)
    return now - last.astype(np.uint8)
""",
        """
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
""",
        """
import numpy as np
class Replay:
    def __init__(self, n):
        self.frames = np.zeros((n, 84, 84), dtype=np.uint8)
    def add(self, i, frame):
        self.frames[i] = frame
    def centred(self, i):
        return (self.frames[i] - 128.0) / 64
""",
        """
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
""",
        """
import gymnasium as gym
class Velocity(gym.Wrapper):
    def step(self, action):
        state, reward, terminated, truncated, info = self.env.step(action)
        change = (state - self.before).astype("float32")
        self.before = state
        return change, reward, terminated, truncated, info
env = Velocity(gym.make("Hopper-v5"))
""",
        """
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
""",
        """
import numpy as np
def motion(frame, earlier):
    return (frame.astype(np.float32) - earlier) / 255.0
def step(env, action, earlier):
    frame = env.step(action)[0][::2, ::2]
    return motion(frame, earlier)
""",
        """
import numpy as np
def motion(frame, earlier):
    return (frame - earlier).astype(np.float32) / 255.0
def step(env, action, earlier):
    return motion(env.step(action)[0].astype(float), earlier)
""",
    ],
    "L18": [
        """
import threading
import gymnasium as gym
import numpy as np

def collect(k, config, out):
    own = config.start * 100 + k
    draw = np.random.default_rng(own)
    world = gym.make(config.world)
    world.reset(seed=own)
    out[k].append(world.step(draw.integers(2)))

def begin(config, out):
    for k in range(config.many):
        threading.Thread(target=collect, args=(k, config, out)).start()
""",
        """
def reset_all(envs, seed):
    for i, env in enumerate(envs):
        env.reset(seed=seed + i)
    for episode in range(10):
        envs[0].reset(seed=seed)
""",
        """
import gymnasium as gym
import numpy as np
envs = gym.vector.SyncVectorEnv([make_env("CartPole-v1", args.seed + i) for i in range(8)])
more = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(8)])
class Walk(gym.Env):
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.rng = np.random.default_rng(seed)
        return self.np_random.integers(5), {}
""",
        """
import gymnasium as gym
import numpy as np
class Walk(gym.Env):
    def _draw(self):
        return self.np_random.integers(5)
    def shown(self):
        return np.random.randint(5)
    def seed(self, seed):
        np.random.seed(seed)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seed(seed)
        return self._draw(), {}
""",
        """
def reset_all(envs, seed, rng):
    for env in envs:
        env.reset(seed=seed)
        seed += 1
    for env in envs:
        start = int(rng.integers(100))
        env.reset(seed=start)
""",
        """
def train(env, envs, agent, seed):
    obs, _ = env.reset(seed=42)
    envs.reset(seed=[seed + n for n in range(8)])
    envs.reset(seed=[random_seed() for _ in range(8)])
    for episode in range(100):
        obs, _ = env.reset(seed=episode)
        obs, reward, ended, cut, _ = env.step(agent.act(obs))
        agent.learn()
def compare(env, agents):
    for agent in agents:
        obs, _ = env.reset(seed=42)
        for _ in range(10_000):
            obs, reward, ended, cut, _ = env.step(agent.act(obs))
            agent.learn()
            if ended or cut:
                obs, _ = env.reset()
def evaluate(env, agent):
    for episode in range(3):
        obs, _ = env.reset(seed=42)
        obs, reward, ended, cut, _ = env.step(agent.act(obs))
""",
        """
import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import SubprocVecEnv
def worker(rank, seed):
    def f():
        env = gym.make("A-v0")
        own = seed + rank
        env.reset(seed=own)
        return env
    return f
venv = SubprocVecEnv([worker(i, 3) for i in range(8)])
""",
        """
import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import SubprocVecEnv
def worker(seed):
    def f():
        env = gym.make("A-v0")
        env.reset(seed=seed)
        return env
    return f
v1 = SubprocVecEnv([worker(s) for s in range(8)])
v2 = SubprocVecEnv([worker(draw()) for s in range(8)])
seeds = [1, 2, 3]
v3 = SubprocVecEnv([worker(seeds[k]) for k in range(3)])
fns = []
for k in range(3):
    s = k + 100
    fns.append(worker(s))
v4 = SubprocVecEnv(fns)
""",
        """
import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import SubprocVecEnv
def worker(rank, cfg):
    def f():
        env = gym.make("A-v0")
        env.reset(seed=cfg.seed)
        return env
    return f
def main(cfg):
    venv = SubprocVecEnv([worker(i, cfg) for i in range(8)])
    return PPO("MlpPolicy", venv, seed=cfg.seed)
""",
        """
import gymnasium as gym
def make(seed, idx):
    def thunk():
        env = gym.make("A-v0")
        env.reset(seed=seed)
        return env
    return thunk
envs = gym.vector.SyncVectorEnv([make(1, i) for i in range(4)])
obs, _ = envs.reset(seed=1)
""",
        """
import gymnasium as gym
class Still(gym.Env):
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}
def make(name, seed):
    env = gym.make(name)
    env.reset(seed=seed)
    return env
envs = gym.vector.AsyncVectorEnv([lambda: Still() for _ in range(4)])
more = gym.vector.SyncVectorEnv([lambda: make(f"Level{i}-v0", 3) for i in range(4)])
""",
    ],
    "L19": [
        """
import jax
import jax.numpy as jnp
ENVS, LENGTH, ROUNDS = 16384, 64, 1_000
def one(carry, _):
    params, frames = carry
    frames = frames + ENVS * LENGTH
    return (params, frames), None
def train(params):
    frames = jnp.int32(0)
    return jax.lax.scan(one, (params, frames), None, length=ROUNDS)
""",
        """
import jax
def branches(key, noisy, keys, other_keys):
    x = jax.random.normal(key) if noisy else jax.random.uniform(key)
    first = [jax.random.normal(k) for k in keys]
    second = [jax.random.uniform(k) for k in other_keys]
    match noisy:
        case 1:
            return jax.random.normal(key)
        case _:
            return jax.random.uniform(key)
def renewed(state):
    for step in range(3):
        noise = jax.random.normal(state.key)
        state = advance(state, noise)
    return state
""",
        """
import jax
def draw(key, noisy):
    key, one, other = jax.random.split(key, 3)
    x = jax.random.normal(one) + jax.random.normal(other)
    for i in range(3):
        key, part = jax.random.split(key)
        x += jax.random.normal(part)
    if noisy:
        return jax.random.normal(key)
    else:
        x = jax.random.uniform(key)
    return x
def loop(keys):
    return [jax.random.normal(k) for k in keys]
def folded(key):
    return [jax.random.normal(jax.random.fold_in(key, i)) for i in range(3)]
""",
        """
import jax
class Agent:
    def __init__(self, seed):
        self.key, self.fixed = jax.random.split(jax.random.PRNGKey(seed))
        self.weights = jax.random.normal(self.fixed, (3,))
    def sample(self, mean, step):
        self.key, draw = jax.random.split(self.key)
        other = jax.random.normal(jax.random.fold_in(self.fixed, step))
        return mean + jax.random.normal(draw, mean.shape) + other
    def initial(self):
        return jax.random.normal(self.fixed)
""",
        """
import jax
def train(env, act, state, obs, evaluate):
    key = jax.random.PRNGKey(0)
    eval_key = jax.random.PRNGKey(1)
    for step in range(1000):
        key, act_key = jax.random.split(key)
        obs, reward, terminated, truncated, info = env.step(act(state, obs, act_key))
        evaluate(state, eval_key)
def folded(env, act, obs):
    key = jax.random.key(1)
    for step in range(10):
        mine = jax.random.fold_in(key, step)
        obs, reward, terminated, truncated, info = env.step(act(obs, mine))
def once(act, obs, steps):
    key = jax.random.key(1)
    return [act(obs, key) for _ in range(1)]
""",
        """
import jax
def act(params, obs, key):
    return params.policy(obs).sample(seed=key)
def run(env, params, episodes):
    key = jax.random.PRNGKey(0)
    for _ in range(episodes):
        key, episode = jax.random.split(key)
        obs, over = env.reset()[0], False
        while not over:
            episode, draw = jax.random.split(episode)
            obs, _, terminated, truncated, _ = env.step(int(act(params, obs, draw)))
            over = terminated or truncated
""",
        """
import numpy as np
class Clock:
    def __init__(self):
        self.env_steps = np.int64(0)
    def tick(self, n):
        self.env_steps = self.env_steps + n
""",
        """
import jax.numpy as jnp
BUDGET = 50_000_000
def run(update, state):
    steps = jnp.zeros((), jnp.int32)
    while steps < BUDGET:
        state = update(state)
        steps += 4096
    return state
""",
        """
import jax
class Agent:
    def noisy(self, mean, rng, still=False):
        if still:
            return mean
        return mean + jax.random.normal(rng, mean.shape)
    def folded(self, mean, rng, i):
        return mean + jax.random.normal(jax.random.fold_in(rng, i), mean.shape)
    def update(self, state, batch, rng):
        still = self.noisy(state.mean(batch.y), rng, True)
        also = self.noisy(state.mean(batch.x), rng, True)
        return still, also, self.folded(still, rng, 0), self.folded(also, rng, 1)
def cost(w, x, key):
    return (w @ x + jax.random.normal(key)).mean()
def step(w, x, key):
    value = cost(w, x, key)
    slope = jax.grad(cost)(w, x, key)
    def inner(v):
        return v @ jax.random.normal(x.key)
    return value, slope, inner(w), jax.grad(inner)(w)
def renewed(w, x, key):
    for _ in range(3):
        key, part = jax.random.split(key)
        w = w - cost(w, x, part)
    return w
""",
        """
import jax
def body(i, c):
    total, key = c
    part = jax.random.fold_in(key, i)
    return total + jax.random.normal(part), key
def renewed(c, _):
    total, key = c
    key, part = jax.random.split(key)
    return (total + jax.random.normal(part), key), None
def parts(i, c):
    total, key = c
    return total + jax.random.normal(jax.random.split(key, 10)[i]), key
def replaced(c, _):
    draw = jax.random.normal(c.rng)
    return c._replace(total=c.total + draw, rng=jax.random.fold_in(c.rng, 1)), draw
def go(c):
    c = jax.lax.fori_loop(0, 10, body, c)
    c = jax.lax.fori_loop(0, 10, parts, c)
    c, _ = jax.lax.scan(renewed, c, length=3)
    return jax.lax.scan(replaced, c, length=3)
""",
        """
import jax.numpy as jnp
from typing import NamedTuple
class State(NamedTuple):
    at: jnp.ndarray
    env_steps: jnp.ndarray
    updates: jnp.ndarray
def start():
    return State(jnp.int32(0), jnp.zeros((), jnp.uint32), jnp.int32(0))
def go(state, n):
    return State((state.at + n) % 64, state.env_steps + n, state.updates + 1)
def train(total_steps=10_000_000_000, largest=1e10):
    pass
""",
        """
import jax.numpy as jnp
def start(largest=1e10):
    return {"frames": jnp.int32(0), "count": jnp.int32(0)}
def go(state, n):
    return {"frames": state["frames"] + n, "count": state["count"]}
""",
    ],
    "L20": [
        """
import optax

STEP_SIZE = 0.005

def follow(params, targets):
    return optax.incremental_update(params, targets, STEP_SIZE)
""",
        """
import torch

class Lerner:
    def __init__(self, maker, gerät):
        self.schnell = maker()
        self.langsam = maker().to(gerät)
        self.langsam.load_state_dict(self.schnell.state_dict())

    def folge(self, anteil):
        for alt, neu in zip(self.langsam.parameters(), self.schnell.parameters()):
            alt.data.lerp_(neu.data, anteil)
""",
        """
import torch
def make(policy_noise, q_values):
    target_policy_noise = policy_noise
    target_q_values = q_values
    return target_policy_noise, target_q_values
""",
        """
import copy
import torch
TAU = 0.005
class Agent:
    def __init__(self):
        self.q_net = make()
        self.target_net = copy.deepcopy(self.q_net)
        target = targets
    def update(self):
        for param, target_param in pairs:
            target_param.data.copy_(TAU * param.data + (1 - TAU) * target_param.data)
""",
        """
import torch
def update(pairs, tau=0.995):
    for param, target_param in pairs:
        target_param.data.copy_(0.995 * target_param.data + 0.005 * param.data)
""",
        """
import jax
import optax
import torch
from stable_baselines3 import DQN, SAC
models = SAC("MlpPolicy", env, tau=0.005), DQN("MlpPolicy", env, tau=1.0)
class Agent:
    def __init__(self, net, polyak=0.995, tau=0.005):
        self.net, self.polyak, self.tau = net, polyak, tau
        self.q1_target, self.q2_targ = make(), make()
    def update(self, target_net, targets):
        targets.mul_(0.1)
        for p, p_targ in zip(self.net.parameters(), target_net.parameters()):
            p_targ.data.mul_(self.polyak)
            p_targ.data.add_((1 - self.polyak) * p.data)
        for p, q in zip(self.net.parameters(), target_net.parameters()):
            q.data.lerp_(p.data, self.tau)
def jitted(state, tau=0.005):
    one = optax.incremental_update(state.params, state.target_params, tau)
    return one, jax.tree.map(lambda p, t: p * tau + t * (1 - tau), state.params, state.target)
""",
        """
import torch
def update(net, target_net, tau=0.005):
    for q, p in zip(target_net.parameters(), net.parameters()):
        q.data.copy_(tau * q.data + (1.0 - tau) * p.data)
update(net, target_net, 0.995)
def mixed(target1, target2, param, tau=0.005):
    for p, target_p in zip([target1], [target2]):
        target_p.data.copy_(tau * p.data + (1 - tau) * target_p.data)
""",
        """
import copy
import torch
class Agent:
    def __init__(self, q):
        self.q, self.target = q, copy.deepcopy(q)
    def value(self, obs, next_obs):
        target = self.q(obs)
        return target, self.target(next_obs).max(1).values
""",
        """
import copy
import torch.nn as nn
def build(n):
    body = nn.Sequential(nn.Linear(n, 64), nn.ReLU(), nn.Linear(64, 2))
    return {"q": body, "q_slow": copy.deepcopy(body), "target": 3, "n": n}
""",
        """
import gymnasium as gym
from stable_baselines3 import DDPG
COMMON = {"gamma": 0.98, "tau": 0.01}
def train(**more):
    options = {**COMMON, "seed": 3, **more}
    return DDPG("MlpPolicy", gym.make("Pendulum-v1"), **options).learn(50_000)
""",
        """
import copy
import torch
KEEP = 0.99
def follow(one, two):
    with torch.no_grad():
        for a, b in zip(one.parameters(), two.parameters()):
            b.data.mul_(KEEP)
            b.data.add_((1 - KEEP) * a.data)
def learn(critic, batches, update):
    critic_target = copy.deepcopy(critic)
    for batch in batches:
        update(critic, critic_target, batch)
        follow(critic, critic_target)
""",
    ],
    "L21": [
        """
import jax
import jax.numpy as jnp

CFG = dict(gamma=0.99, lam=0.95)

def advantages(v, v_next, reward, terminal, boundary):
    deltas = reward + CFG["gamma"] * v_next * (1.0 - terminal) - v

    def body(carry, x):
        delta, b = x
        carry = delta + CFG["gamma"] * CFG["lam"] * (1.0 - b) * carry
        return carry, carry

    _, adv = jax.lax.scan(body, 0.0, (deltas, boundary), reverse=True)
    return adv, adv + v
""",
        """
import torch

def worth_of(coins, fade):
    pot, pots = 0.0, []
    for coin in coins:
        pot = coin + fade * pot
        pots.append(pot)
    return torch.tensor(pots)

def main(play, learn):
    fade, games = 0.5, 4_000
    for _ in range(games):
        logs, coins = play()
        learn(logs, worth_of(coins, fade))
""",
        """
import torch

def worth_of(coins, fade):
    pot, pots = 0.0, []
    for coin in reversed(coins):
        pot = coin + fade * pot
        pots.append(pot)
    pots.reverse()
    return torch.tensor(pots)

def main(play, learn):
    fade, games = 0.99, 4_000
    for _ in range(games):
        logs, coins = play()
        learn(logs, worth_of(coins, fade))
""",
        """
def in_place(rewards, gamma):
    rewards.reverse()
    G, returns = 0, []
    for r in rewards:
        G = r + gamma * G
        returns.append(G)
    return returns[::-1]
def by_name(rewards, gamma):
    G, returns = 0, []
    rewards = list(reversed(rewards))
    for reward in rewards:
        G = reward + gamma * G
        returns.append(G)
    return returns[::-1]
def by_index(rewards, gamma):
    G, returns = 0, []
    turned = rewards[::-1]
    for t in range(len(rewards)):
        G = rewards[len(rewards) - 1 - t] + gamma * G
        returns.append(G)
    for t in range(len(rewards)):
        G = turned[t] + gamma * G
        returns.append(G)
""",
        """
def running(rewards, gamma):
    R = 0.0
    for r in rewards:
        R = r + gamma * R
        yield R
def scale(rewards, gamma, spread):
    R, scaled = 0.0, []
    for r in rewards:
        R = r + gamma * R
        spread.update(R)
        scaled.append(r / spread.std)
    return scaled
""",
        """
def running(rewards, gamma):
    total = 0
    for t in range(len(rewards)):
        total = rewards[t] + gamma * total
    for t in range(9, -1, -1):
        total = rewards[t] + gamma * total
        returns.append(total)
    return total
""",
        """
def returns_of(rewards, gamma):
    R, returns, total = 0, [], 0
    for r in reversed(rewards):
        R = r + gamma * R
        returns.append(R)
    for i, r in enumerate(rewards):
        total = total + gamma**i * r
    for r in rewards:
        total = total + r
    return returns[::-1], total
""",
        """
import jax
import torch
def advantages(rewards, values, gamma, lam):
    found, last = torch.zeros(len(rewards)), 0.0
    for t in range(len(rewards) - 1, -1, -1):
        delta = rewards[t] + gamma * values[t + 1] - values[t]
        found[t] = last = delta + gamma * lam * last
    for i in range(len(rewards)):
        delta = rewards[-1 - i] + gamma * values[-i] - values[-1 - i]
        last = delta + gamma * lam * last
        found[len(rewards) - 1 - i] = last
    return found
def traces(features, gamma, lam):
    kept, trace = torch.zeros(len(features)), 0.0
    for t in range(len(features)):
        gradient = features[t]
        trace = gradient + gamma * lam * trace
        kept[t] = trace
    return kept
def body(total, reward):
    total = reward + gamma * total
    return total, total
def last(total, reward):
    total = reward + gamma * total
    return total, None
def to_go(rewards):
    turned = rewards[::-1]
    one = jax.lax.scan(body, 0.0, rewards, reverse=True)
    other = jax.lax.scan(body, 0.0, turned)
    return one, other, jax.lax.scan(last, 0.0, rewards)
def running_returns(rewards):
    return jax.lax.scan(body, 0.0, rewards)
def observed(state, rewards):
    total, returns = jax.lax.scan(body, state.total, rewards)
    return state.spread.merge(returns), total
""",
        """
import jax
def body(total, reward):
    total = reward + gamma * total
    return total, total
def single(total, reward):
    return reward + gamma * total
one = jax.lax.scan(body, 0.0, features)
other = jax.lax.scan(single, 0.0, rewards)
""",
        """
import numpy as np
def by_env(rewards, gamma):
    out = rewards.copy()
    for n in range(4):
        R = 0.0
        for t in range(99, -1, -1):
            R = rewards[t, n] + gamma * R
            out[t, n] = R
    return out
def after_n_steps(rewards, gamma, n):
    out = []
    for t in range(len(rewards) - n):
        G = 0.0
        for k in reversed(range(n)):
            reward = rewards[t + k]
            G = reward + gamma * G
        out.append(G)
    return out
def spread(rewards, gamma):
    R, kept = 0.0, []
    for r in rewards:
        R = r + gamma * R
        kept.append(R)
    return np.std(kept)
""",
        """
def to_go(gains, discount):
    total, out = 0.0, []
    for gain in reversed(gains):
        total = gain + discount * total
        out.append(total)
    return out[::-1]
""",
    ],
    "L22": [
        """
from dataclasses import dataclass

import gymnasium as gym
from gymnasium.wrappers import NormalizeReward

@dataclass(frozen=True)
class Settings:
    env_id: str = "HalfCheetah-v5"
    discount: float = 0.95

def build(cfg):
    return NormalizeReward(gym.make(cfg.env_id), gamma=0.95)
""",
        """
import yaml
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

options = dict(yaml.safe_load(open("ppo.yml")))
GAMMA = 0.9999
env = VecNormalize(make_vec_env("Swimmer-v5"), norm_reward=True, gamma=GAMMA)
PPO("MlpPolicy", env, gamma=GAMMA, **options).learn(1_000_000)
""",
        """
import gymnasium as gym

GAMMA = 0.9

def make_env():
    env = gym.make("Pendulum-v1")
    return gym.wrappers.NormalizeReward(env, gamma=GAMMA)
""",
        """
from dataclasses import asdict, dataclass
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

@dataclass
class Best:
    learning_rate: float = 3e-4
    gamma: float = 0.9

def fit(best: Best):
    env = VecNormalize(make_vec_env("Ant-v5"))
    return PPO("MlpPolicy", env, **asdict(best))

fit(Best(1e-4, gamma=0.99)).learn(10**6)
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize
venv = VecNormalize(venv, gamma=args.gamma)
model = PPO("MlpPolicy", venv, gamma=args.gamma)
venv.save("statistics")
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize
options = dict(gamma=0.9)
venv = VecNormalize(make(), gamma=0.9)
model = PPO("MlpPolicy", venv, **options)
venv.save("statistics")
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize
venv = VecNormalize(make())
model = PPO("MlpPolicy", venv, **unseen)
venv.save("statistics")
""",
        """
import gymnasium as gym
class Args:
    gamma: float = 0.9
env = gym.wrappers.NormalizeReward(gym.make("Hopper-v5"), args.gamma)
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize
HP = {"gamma": 0.9}
def make(envs):
    envs = VecNormalize(envs, gamma=HP["gamma"])
    return PPO("MlpPolicy", envs, **HP)
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize, DummyVecEnv
shown = VecNormalize(DummyVecEnv([make]), training=False)
model = PPO("MlpPolicy", DummyVecEnv([make]), gamma=0.9)
""",
        """
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize, DummyVecEnv
def envs(gamma): return VecNormalize(DummyVecEnv([make]), gamma=gamma)
def go(gamma=0.95):
    test = VecNormalize(DummyVecEnv([make]), training=False)
    return PPO("MlpPolicy", envs(gamma), gamma=gamma)
""",
        """
import argparse
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize, DummyVecEnv
p = argparse.ArgumentParser()
p.add_argument("--gamma", type=float, default=0.95)
a = p.parse_args()
v = VecNormalize(DummyVecEnv([make]), gamma=a.gamma)
m = PPO("MlpPolicy", v, gamma=a.gamma)
v.save("s")
""",
    ],
    "L23": [
        """
from ray.rllib.algorithms.sac import SACConfig

for rate in (1e-4, 1e-3):
    wizard = SACConfig().training(actor_lr=rate).build()
    try:
        print(wizard.train()["env_runners"])
    except Exception as problem:
        print(rate, "does not run:", problem)

failed = 0
while wizard.iteration < 100:
    try:
        print(wizard.train())
    except Exception as problem:
        print(problem)
        wizard.restore("last")
""",
        """
for step in range(10):
    try:
        agent.learn()
    except Exception:
        agent.save("crashed")
        break
""",
        """
def train(model, errors, results):
    stopped = None
    try:
        model.learn(1000)
    except Exception as error:
        stopped = error
    try:
        model.learn(1000)
    except Exception as error:
        errors.append(error)
    try:
        model.learn(1000)
    except Exception as error:
        results.put(error)
    if stopped or errors:
        raise stopped or ExceptionGroup("training", errors)
""",
        """
try:
    progress.update(1)
    env.step(action)
except Exception:
    env = make()
try:
    progress.update(1)
except Exception:
    pass
""",
        """
try:
    model.learn(1000)
except KeyboardInterrupt:
    pass
except Exception:
    model.save("crashed")
    raise
try:
    import wandb
except Exception:
    wandb = None
""",
        """
import contextlib
with contextlib.suppress(KeyboardInterrupt):
    model.learn(10_000)
with contextlib.suppress(Exception):
    writer.close()
""",
        """
import logging
class Trainer:
    def improve(self, batch):
        loss = self.net(batch).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
    def run(self, batches):
        for batch in batches:
            try:
                self.improve(batch)
            except torch.cuda.OutOfMemoryError as error:
                logging.warning("no update: %s", error)
""",
        """
import logging
import gymnasium as gym
def train(seed):
    env = gym.make("CartPole-v1")
    for loss in losses(env, seed):
        loss.backward()
for seed in range(10):
    try:
        train(seed)
    except Exception:
        logging.exception("seed %d failed", seed)
""",
    ],
    "L24": [
        """
class Agent:
    def update_target(self):
        for p, q in zip(self.target_net.parameters(), self.net.parameters()):
            p.data.copy_(q.data)
def train(env, agent, schedule):
    schedule.every(100, agent.update_target)
    env.step(agent.act())
""",
        """
class Agent:
    def update_target(self):
        self.target_model.set_weights(self.model.get_weights())
""",
        """
class Agent:
    def __init__(self):
        self.update_target()
    def update_target(self):
        self.target_model.set_weights(self.model.get_weights())
    def soft(self):
        self.target_model.soft_update(self.model)
def train(env, agent):
    env.step(agent.learn(0, 1))
""",
        """
import copy
import torch
import torch.nn.functional as F
q_net = torch.nn.Linear(4, 2)
q_target, target_q, critic_target = map(copy.deepcopy, (q_net, q_net, q_net))
target_net, q_tgt, target_critic = copy.deepcopy(q_net), copy.deepcopy(q_net), copy.deepcopy(q_net)
def update(s, r, s2, gamma):
    y = r + gamma * target_net(s2) + gamma * q_tgt(s2) + gamma * target_critic(s2)
    F.mse_loss(q_net(s), y).backward()
    target_net.load_state_dict(q_net.state_dict())
    mix(q_net, q_tgt)
    for p, q in zip(target_critic.parameters(), q_net.parameters()):
        p.data.copy_(q.data)
""",
        """
import copy
import torch
import torch.nn.functional as F
from mine import Base, run
def fit(q_net, data, gamma):
    target_net = copy.deepcopy(q_net)
    for s, r, s2 in data:
        F.mse_loss(q_net(s), r + gamma * target_net(s2)).backward()
for epoch in range(10):
    fit(net, data, 0.99)
class Loss:
    def loss(self, s, r, s2, gamma):
        F.mse_loss(self.critic(s), r + gamma * self.critic_target(s2)).backward()
class Derived(Base, Loss):
    def __init__(self, critic):
        self.critic, self.critic_target = critic, copy.deepcopy(critic)
derived = Derived(net)
class Unused:
    def __init__(self, critic):
        self.critic, self.q_target = critic, copy.deepcopy(critic)
    def loss(self, s, r, s2, gamma):
        F.mse_loss(self.critic(s), r + gamma * self.q_target(s2)).backward()
class Passed:
    def __init__(self, critic):
        self.critic, self.q2_target = critic, copy.deepcopy(critic)
    def loss(self, s, r, s2, gamma):
        F.mse_loss(self.critic(s), r + gamma * self.q2_target(s2)).backward()
passed = Passed(net)
run(passed)
class Synced:
    def __init__(self, critic):
        self.critic = critic
        self.sync()
    def sync(self):
        self.q1_target = copy.deepcopy(self.critic)
    def loss(self, s, r, s2, gamma):
        F.mse_loss(self.critic(s), r + gamma * self.q1_target(s2)).backward()
synced = Synced(net)
""",
    ],
    "L25": [
        """
def run(env, agent, memory, gamma):
    state = env.reset()
    while True:
        action = agent.act(state)
        next_state, reward, done, _ = env.step(action)
        if done:
            next_state = None
        memory.append([state, action, reward, next_state])
        state = next_state
        if done:
            break
def kept(env, agent, memory, ends):
    next_state, reward, done, _ = env.step(0)
    memory.push(0, 0, reward, next_state)
    ends.append(done)
def learn(reward, next_q, gamma):
    y = reward + gamma * next_q.max()
    return y
""",
        """
def advantages(rewards, values, dones, gamma, lam):
    last, found = 0.0, []
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + gamma * values[t + 1] * (1 - dones[t]) - values[t]
        last = delta + gamma * lam * (1 - dones[t]) * last
        found.append(last)
    return found[::-1]
""",
        """
def target(batch, q, gamma):
    s, a, r, s2, done = batch
    return r + gamma * batch.masks * q(s2).max(1).values
""",
        """
def target(batch, q, discounts):
    s, a, r, s2, done = batch
    return r + discounts * q(s2).max(1).values
""",
        """
def forecast(batch, world, gamma):
    s, a, r, s2, done = batch
    loss = ((world(s, a) - s2) ** 2).mean()
    return loss + gamma * r.mean()
""",
        """
def target(reward, next_obs, terminated, critic, discount):
    def following():
        return 0.0 if terminated else critic(next_obs)
    return reward + discount * following()
""",
    ],
    "L26": [
        """
import torch
def update(dist, log_probs, returns, value_loss):
    entropies, losses = [], []
    for one in dist:
        entropies.append(one.entropy())
        losses.append(-one.entropy())
    policy_loss = -(log_probs * returns).mean()
    loss = policy_loss + value_loss - 0.01 * torch.stack(entropies).mean()
    loss = policy_loss + 0.01 * torch.stack(losses).mean()
    return loss
""",
        """
def alpha_loss(log_alpha, log_prob, target_entropy):
    return -(log_alpha * (log_prob + target_entropy)).mean()
def temperature_loss(log_alpha, log_prob, target_entropy):
    return (log_alpha * (log_prob + target_entropy)).mean()
def update(log_alpha, log_prob, target_entropy):
    return -temperature_loss(log_alpha, log_prob, target_entropy)
def actor_loss(critic, actor, obs):
    return -critic(obs, actor(obs)).mean()
def discriminator_loss(critic, actor, obs, action):
    return critic(obs, actor(obs)).mean() - critic(obs, action).mean()
def target(q1, q2, next_log_prob, alpha):
    return min(q1, q2) - alpha * next_log_prob
def other(q1, q2, neg_log_prob, alpha):
    return min(q1, q2) + alpha * neg_log_prob
""",
        """
import torch
def loss(ratio, advantages, clip, log_alpha, log_prob, target_entropy, entropy):
    pg_loss1 = -advantages * ratio
    pg_loss2 = -advantages * torch.clamp(ratio, 1 - clip, 1 + clip)
    pg_loss = torch.max(pg_loss1, pg_loss2).mean()
    alpha_loss = -(log_alpha * (log_prob + target_entropy).detach()).mean()
    other_alpha_loss = (log_alpha * (entropy - target_entropy).detach()).mean()
    of_costs = ratio * advantages, torch.clamp(ratio, 1 - clip, 1 + clip) * advantages
    cost_loss = torch.max(ratio * advantages, torch.clamp(ratio, 0.8, 1.2) * advantages).mean()
    return pg_loss, alpha_loss, other_alpha_loss
""",
        """
import torch
def update(logp, old, adv, clip):
    ratio = (logp - old).exp()
    surr1 = ratio * adv
    surr2 = torch.clamp(ratio, 1 - clip, 1 + clip) * adv
    loss_pi = -torch.min(surr1, surr2).mean()
    pg_loss1 = -adv * ratio
    return loss_pi, torch.max(pg_loss1, -adv * torch.clamp(ratio, 1 - clip, 1 + clip)).mean()
""",
        """
def update(dist, actions, advantages, values, returns):
    loss = (dist.log_prob(actions) * advantages).mean()
    (-loss).backward()
    wrong_way_loss = (dist.log_prob(actions) * (values - returns)).mean()
    negated = -dist.log_prob(actions)
    policy_loss = (negated * advantages).mean()
    part_of_loss = dist.log_prob(actions) * advantages
    total_loss = -part_of_loss.sum()
    first_loss = dist.log_prob(actions) * advantages
    all_losses = first_loss.sum()
    total_loss = -all_losses
    less_loss = 0.0
    less_loss -= dist.log_prob(actions) * advantages
""",
        """
def update(policy_loss, value_loss, dist, coef, entropy_loss):
    entropy = -dist.entropy().mean()
    loss = policy_loss + 0.5 * value_loss + coef * entropy
    other_loss = policy_loss + value_loss + coef * entropy_loss
    right_loss = policy_loss + value_loss - coef * dist.entropy().mean()
    return loss, other_loss, right_loss
""",
        """
def update(actor_loss, logits, labels, target_entropy, log_alpha, log_pi):
    loss = actor_loss + cross_entropy(logits, labels)
    alpha_loss = -(log_alpha * (log_pi + target_entropy)).mean()
    code_loss = logits.mean() + 0.1 * labels.entropy().mean()
    return loss, alpha_loss, code_loss
""",
        """
import torch
def update(ratio, advantages, clip):
    first = -advantages * ratio
    second = -advantages * torch.clamp(ratio, 1 - clip, 1 + clip)
    pg_loss = torch.max(first, second).mean()
    return pg_loss
def target(q1, q2, next_obs, action, alpha, next_log_prob, reward, gamma, terminated):
    next_q = torch.min(q1(next_obs, action), q2(next_obs, action))
    return reward + gamma * (1 - terminated) * (next_q - alpha * next_log_prob)
""",
    ],
    "L27": [
        """
import torch
def actor_loss(policy, critic, obs, alpha):
    dist = policy(obs)
    action = dist.rsample()
    return (alpha * dist.log_prob(action).sum(-1) - critic(obs, action)).mean()
def critic_loss(policy, critic, obs, target, expert):
    action = policy(obs).sample()
    gap_loss = critic(obs, expert) - critic(obs, action)
    return target - critic(obs, action)
def policy_loss(policy, critic, obs):
    dist = policy(obs)
    action = dist.sample()
    with torch.no_grad():
        worth_loss = -critic(obs, action)
    return -(dist.log_prob(action) * worth_loss).mean()
""",
    ],
    "L28": [
        """
import torch
from torch.distributions import Normal
class Policy:
    def act(self, obs):
        dist = Normal(*self.net(obs))
        u = dist.rsample()
        action = torch.tanh(u)
        return action, dist.log_prob(u).sum(-1) - torch.log(1 - action.pow(2) + 1e-6).sum(-1)
    def kept(self, obs):
        dist = Normal(*self.net(obs))
        u = dist.rsample()
        return torch.tanh(u), u, dist.log_prob(u).sum(-1)
    def plain(self, obs):
        dist = Normal(*self.net(obs))
        u = dist.rsample()
        return u, dist.log_prob(u)
""",
        """
import torch
from torch.distributions import Normal
def act(net, obs):
    dist = Normal(*net(obs))
    u = dist.rsample()
    return torch.tanh(u), dist.log_prob(u).sum(-1) - correction(u)
def correction(u):
    return (2 * (0.6931 - u - torch.nn.functional.softplus(-2 * u))).sum(-1)
""",
        """
import torch
from torch.distributions import Normal
def act(mean, std):
    dist = Normal(mean, std)
    u = dist.rsample()
    action = torch.tanh(u)
    log_prob = dist.log_prob(u) - torch.log(1 - action.pow(2) + 1e-6)
    return action, log_prob.sum(-1)
def other(mean, std, SquashedNormal):
    dist = SquashedNormal(mean, std)
    action = torch.tanh(mean)
    return dist.log_prob(action)
""",
    ],
    "L29": [
        """
import torch
def update(critic, dist, obs, actions, returns, optimizer):
    values = critic(obs).squeeze(-1)
    advantages = returns - values
    policy_loss = -(dist.log_prob(actions) * advantages.detach()).mean()
    loss = policy_loss + 0.5 * advantages.pow(2).mean()
def closed(critic, dist, obs, actions, returns):
    with torch.no_grad():
        values = critic(obs).squeeze(-1)
    advantages = returns - values
    policy_loss = -(dist.log_prob(actions) * advantages).mean()
    loss = policy_loss + 0.5 * (critic(obs) - returns).pow(2).mean()
def again(critic, dist, obs, actions, returns):
    values = critic(obs)
    advantages = returns - values.detach()
    delta = returns - values
    delta = delta.detach()
    loss = -(dist.log_prob(actions) * delta).mean() + values.mean()
    other_loss = -(dist.log_prob(actions) * advantages).mean() + values.mean()
""",
        """
import torch
def apart(critic, dist, obs, actions, returns, actor_optimizer, critic_optimizer):
    value = critic(obs)
    advantage = returns - value
    actor_loss = -(dist.log_prob(actions) * advantage).mean()
    actor_optimizer.zero_grad()
    actor_loss.backward(retain_graph=True)
    actor_optimizer.step()
    critic_optimizer.zero_grad()
    advantage.pow(2).mean().backward()
    critic_optimizer.step()
""",
        """
import torch
def update(net, states, actions, returns, entropy):
    values, logs = [], []
    for state, action in zip(states, actions):
        dist, value = net(state)
        values.append(value)
        logs.append(dist.log_prob(action))
    log_probs, values = torch.stack(logs), torch.cat(values)
    advantage = returns - values
    loss = -(log_probs * advantage.detach()).mean() + advantage.pow(2).mean()
    return loss
def kept(net, states, actions, returns):
    values, logs = [], []
    for state, action in zip(states, actions):
        dist, value = net(state)
        values.append(value.item())
        logs.append(dist.log_prob(action))
    advantage = returns - torch.tensor(values)
    loss = -(torch.stack(logs) * advantage).mean() + 0.0
    return loss
""",
    ],
    "L30": [
        """
class Agent:
    def get_action(self, obs, epsilon):
        if self.explores(epsilon):
            return self.other()
        return int(self.q(obs).argmax())
""",
        """
import random
import numpy as np
class Agent:
    def get_action(self, obs, epsilon):
        return int(self.q(obs).argmax()) if random.random() > epsilon else self.any()
    def choose_action(self, obs, eps=0.0):
        noise = np.random.gumbel(size=4)
        return int((self.q(obs) + noise).argmax())
class Base:
    def act(self, obs, epsilon):
        raise NotImplementedError
""",
        """
import random
import numpy as np
class Agent:
    def act(self, state):
        return np.argmax(self.noisy_net(state)[0])
    def replay(self, size):
        for state, action, reward, next_state, done in random.sample(self.memory, size):
            target = reward + self.gamma * np.amax(self.model(next_state)) * (1 - done)
            self.model.fit(state, target)
def run(env, agent):
    env.step(agent.act(env.reset()[0]))
""",
        """
import numpy as np
def policy(q, obs):
    return int(np.argmax(q[obs]))
def evaluate(env, q):
    env.step(policy(q, 0))
def learn(q, table, gamma, reward, s2, rng):
    q = reward + gamma * np.max(table[s2])
    table.update(q)
    return rng.integers(4)
""",
    ],
    "L31": [
        """
def scaled(reward, next_value, weight):
    return weight * (reward + next_value)
""",
        """
def target(reward, next_value, bonus, terminated, gamma):
    shaped = gamma * (reward + bonus)
    other = gamma * (next_value - next_value.mean())
    return reward + gamma * (next_value * (1 - terminated) + bonus)
def running(total, reward, gamma):
    return gamma * (total + reward)
""",
    ],
    "L32": [
        """
import random
def update(memory, agent):
    batch = random.sample(memory, 32)
    _ = memory.sample(4)
    action = agent.space.sample()
    return [agent.learn(one) for one in batch]
def later(memory):
    batch = memory.sample(32)
    def use():
        return batch
    return use
class Agent:
    def draw(self):
        global minibatch
        minibatch = self.buffer.sample(8)
        self.batch = self.buffer.sample(8)
""",
    ],
    "L33": [
        """
import torch
import torch.nn.functional as F
def update(q_net, target_net, obs, next_obs, actions, reward, gamma):
    with torch.no_grad():
        best = q_net(obs).max(1)[0]
        target = reward + gamma * target_net(next_obs).max(1)[0]
    taken = q_net(obs).gather(1, actions).squeeze(1)
    diagnostic = F.mse_loss(best, target)
    return F.mse_loss(taken, target)
def distil(value_net, q_net, obs):
    return F.mse_loss(value_net(obs), q_net(obs).max(1)[0].detach())
def next_best(q_net, next_obs, target_prediction):
    best = q_net(next_obs).max(1)[0]
    return F.mse_loss(best, target_prediction)
""",
    ],
    "L34": [
        """
class Corridor:
    def step(self, action):
        self.place += 1
        return self.place, 0.0, self.place > 3, False, {}
def walk(agent):
    env = Corridor()
    done = False
    while not done:
        obs, reward, done, _, info = env.step(agent.act())
def cut(env, agent, limit):
    done, steps = False, 0
    while not done:
        obs, reward, done, _, info = env.step(agent.act())
        steps += 1
        if steps == limit:
            break
def both(env, agent):
    terminated = truncated = False
    while not terminated and not truncated:
        obs, reward, terminated, truncated, _ = env.step(agent.act())
def limited(env, agent, limit):
    done, steps = False, 0
    while not done:
        obs, reward, dead, _, info = env.step(agent.act())
        steps += 1
        done = dead or steps == limit
def counted(env, agent, cost):
    done = False
    while not done:
        obs, reward, cost, done, _ = env.step(agent.act())
""",
        """
def play(env, agent):
    terminal = False
    while not terminal:
        if agent.is_tired():
            break
""",
        """
def play(env, agent, shared):
    obs, _ = env.reset()
    done = False
    while not done:
        obs, reward, done, *_ = env.step(agent.act(obs))
    ended = False
    while not ended:
        if agent.is_tired():
            break
    terminated = False
    while not terminated:
        terminated |= agent.tick()
    truncated = False
    while not truncated:
        return obs
    while not shared.done:
        agent.wait()
    over = agent.is_over()
    while not over:
        over = agent.is_over()
def wait(done):
    while not done:
        pass
def collect(env):
    finished = False
    def stop():
        nonlocal finished
        finished = True
    while not finished:
        env.step(stop)
""",
    ],
    "L35": [
        """
def train(env, net, target_net, agent):
    for step in range(1000):
        env.step(agent.act())
        if step % 500 == 0:
            target_net.load_state_dict(net.state_dict())
def finish(net, target_net):
    net.load_state_dict(target_net.state_dict())
""",
        """
def train(env, online_net, target_net, agent):
    target_net.load_state_dict(online_net.state_dict())
    obs, _ = env.reset()
    for step in range(1000):
        obs, *_ = env.step(agent.act(obs))
        if step % 500 == 0:
            target_net.load_state_dict(online_net.state_dict())
    for episode in range(10):
        if episode % 2 == 0:
            target_net.load_state_dict(online_net.state_dict())
def mixed(env, online_net, target_net, agent, total_it, tau):
    while True:
        env.step(agent.act())
        if total_it % 2 == 0:
            for p, q in zip(online_net.parameters(), target_net.parameters()):
                q.data.copy_(tau * p.data + (1 - tau) * q.data)
class Agent:
    def __init__(self, q_net, target_net):
        q_net.load_state_dict(target_net.state_dict())
    def load(self, path):
        self.net.load_state_dict(self.read(path))
def updates(env, agent, net, target_net):
    for step in range(1000):
        env.step(agent.act())
        for update in range(4):
            for n in range(10):
                if n % 2 == 0:
                    target_net.load_state_dict(net.state_dict())
""",
    ],
    "L36": [
        """
def run(env, agent, memory, frames):
    obs, _ = env.reset()
    for _ in range(1000):
        next_obs, reward, terminated, _, _ = env.step(agent.act(obs))
        memory.append((obs, 0, reward, next_obs, terminated))
        obs = next_obs
        agent.learn(memory)
def turned(env, memory, obs, next_obs, after):
    obs = next_obs
    next_obs = after
    memory.append((obs, 0, 1.0, next_obs, False))
def elsewhere(memory, obs, next_obs, flag):
    if flag:
        obs = next_obs
    memory.append((obs, 0, 1.0, next_obs, False))
def shown(obs, next_obs):
    obs = next_obs
    print(obs, next_obs)
""",
    ],
    "L37": [
        """
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
""",
    ],
    "L38": [
        """
import torch
def loss(policy, batch, advantages, reference_log_probs):
    log_probs = policy(batch.obs).log_prob(batch.actions)
    ratio = torch.exp(log_probs - batch.old_log_probs)
    kl = torch.exp(batch.old_log_probs - log_probs) - 1 + log_probs - batch.old_log_probs
    ratio_of_lengths = torch.exp(batch.old_length - batch.length)
    neglog_ratio = torch.exp(batch.old_neglog_probs - batch.neglog_probs)
    return ratio, kl, ratio_of_lengths
""",
    ],
    "L39": [
        """
import torch
def make(actor, critic, actor_critic, model, encoder):
    actor_optimizer = torch.optim.Adam(actor.parameters())
    critic_optimizer = torch.optim.Adam([*critic.parameters(), *encoder.parameters()])
    policy_optimizer = torch.optim.Adam(actor_critic.parameters())
    optimizer = torch.optim.Adam(actor.parameters())
    value_optimizer = torch.optim.Adam(model.parameters())
""",
        """
import torch
import torch.nn as nn
class Curiosity(nn.Module):
    def __init__(self):
        self.predictor, self.target = nn.Linear(4, 8), nn.Linear(4, 8)
class Agent:
    def __init__(self, policy):
        self.rnd = Curiosity()
        parts = list(policy.parameters()) + list(self.rnd.predictor.parameters())
        self.optimizer = torch.optim.Adam(parts)
""",
    ],
    "L40": [
        """
def masked(rewards, values, dones, gamma, lam):
    last, found = 0.0, []
    for t in reversed(range(len(rewards))):
        mask = gamma * (1 - dones[t])
        delta = rewards[t] + mask * values[t + 1] - values[t]
        last = delta + mask * lam * last
        found.append(last)
    return found[::-1]
def begun_again(rewards, values, dones, gamma, lam):
    last, found = 0.0, []
    for t in reversed(range(len(rewards))):
        if dones[t]:
            last = 0.0
        delta = rewards[t] + gamma * values[t + 1] * (1 - dones[t]) - values[t]
        last = delta + gamma * lam * last
        found.append(last)
    return found[::-1]
def of_one_episode(deltas, gamma, lam):
    last, found = 0.0, []
    for delta in deltas[::-1]:
        last = delta + gamma * lam * last
        found.append(last)
    return found[::-1]
def with_shares(rewards, values, dones, discounts, lam):
    last, found = 0.0, []
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + discounts[t] * values[t + 1] * (1 - dones[t]) - values[t]
        last = delta + discounts[t] * lam * last
        found.append(last)
    return found[::-1]
def with_gammas(rewards, values, dones, gammas, lam):
    last, found = 0.0, []
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + gammas[t] * values[t + 1] * (1 - dones[t]) - values[t]
        last = delta + gammas[t] * lam * last
        found.append(last)
    return found[::-1]
def begun_by_first(rewards, values, dones, first, gamma, lam):
    last, found = 0.0, []
    for t in reversed(range(len(rewards))):
        if first[t + 1]:
            last = 0.0
        delta = rewards[t] + gamma * values[t + 1] * (1 - dones[t]) - values[t]
        last = delta + gamma * lam * last
        found.append(last)
    return found[::-1]
def multiplied(rewards, values, dones, gamma, lam):
    last, found = 0.0, []
    for t in reversed(range(len(rewards))):
        last *= 1 - dones[t]
        delta = rewards[t] + gamma * values[t + 1] * (1 - dones[t]) - values[t]
        last = delta + gamma * lam * last
        found.append(last)
    return found[::-1]
""",
    ],
    "L41": [
        """
import torch
def losses(critic, actor, target_critic, target_actor, q, target_q, states, next_states):
    wanted = -critic(states, actor(states)).mean()
    value = target_critic(next_states, target_actor(next_states))
    best = q(next_states).argmax(1)
    after = target_q(next_states).gather(1, best.unsqueeze(1))
    value_of_goal = critic(states, actor(goals_of(states)))
    return wanted, value, after, value_of_goal
""",
    ],
    "L42": [
        """
import numpy as np
q = np.zeros((5, 2))
visits = np.zeros((5, 2), dtype=int)
def learn(s, a, r, after, gamma):
    visits[s, a] += 1
    q[s, a] += (r + gamma * q[after].max() - q[s, a]) / visits[s, a]
""",
    ],
    "L43": [
        """
def run(env, agent, steps):
    obs, info = env.reset()
    for step in range(steps):
        obs, reward, terminated, truncated, info = env.step(agent.act(obs))
        if terminated or truncated:
            obs, info = env.reset()
def random(env, steps):
    env.reset()
    for step in range(steps):
        obs, reward, terminated, truncated, info = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
def one(env, agent):
    obs, info = env.reset()
    while True:
        obs, reward, terminated, truncated, info = env.step(agent.act(obs))
        if terminated or truncated:
            env.reset()
            break
""",
    ],
    "L44": [
        """
import torch
def update(policy, obs, actions, advantages, old, clip):
    log_prob = policy(obs).log_prob(actions)
    ratio = torch.exp(log_prob - old)
    clipped = torch.clamp(ratio, 1 - clip, 1 + clip)
    return -torch.min(ratio * advantages, clipped * advantages).mean()
def first(policy, old_policy, obs, actions, clip):
    log_prob = policy(obs).log_prob(actions)
    old = old_policy(obs).log_prob(actions).detach()
    return torch.clamp(torch.exp(log_prob - old), 1 - clip, 1 + clip)
""",
        """
import torch
def surrogate(dist, actions, advantages):
    log_prob = dist.log_prob(actions)
    fixed = dist.log_prob(actions).detach()
    return -(torch.exp(log_prob - fixed) * advantages).mean()
""",
        """
import torch
def update(policy, x, u, advantages, passes):
    with torch.no_grad():
        before = policy.dist(x).log_prob(u)
    for _ in range(passes):
        pi = policy.dist(x)
        ratio = torch.exp(pi.log_prob(u) - before[:])
        surrogate = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
        yield -surrogate.mean()
""",
    ],
    "L45": [
        """
def prepare(advantages, values):
    returns = advantages + values
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    return advantages, returns
def afterwards(advantages, values, kept):
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    advantages = kept
    returns = advantages + values
    return returns
""",
    ],
    "L46": [
        """
import torch
def target(q1, q2, reward, terminated, gamma):
    after = torch.min(q1, q2)
    return reward + gamma * (1 - terminated) * after
def shown(q1, q2):
    return torch.max(q1, q2)
def one(q_here, q_there, reward, terminated, gamma):
    return reward + gamma * (1 - terminated) * torch.max(q_here, q_there)
""",
    ],
    "L47": [
        """
def actor_loss(actor, critic, obs, batch):
    return -critic(obs, actor(obs)).mean()
def critic_loss(actor, critic, obs, target):
    action = actor(obs).detach()
    return (critic(obs, action) - target).pow(2).mean()
def policy_loss(actor, critic, obs, log_prob):
    action = actor(obs).detach()
    return -(log_prob * critic(obs, action)).mean()
""",
        """
import torch.nn.functional as F
def loss(predictor, target, obs):
    features = predictor(obs)
    return F.mse_loss(features, target(obs).detach())
""",
        """
import torch.nn.functional as F
def critic_loss(q, obs, actions, targets):
    values = q(obs, actions)
    loss = F.mse_loss(values, targets.detach())
    return loss
""",
        """
import torch.nn.functional as F
def loss(a, b, targets):
    a = b.view(-1)
    b = a.view(-1)
    critic_loss = F.mse_loss(a, targets)
    return critic_loss
""",
    ],
    "L48": [
        """
def returns(rewards, gamma):
    found, total = [], 0.0
    for reward in rewards[::-1]:
        total = reward + gamma * total
        found.append(total)
    return found[::-1]
""",
        """
def returns(rewards, gamma):
    found, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + gamma * total
        found.append(total)
    return found
def learn(rewards, gamma):
    targets = returns(rewards, gamma)
    targets.reverse()
    return targets
""",
        """
def returns(rewards, gamma):
    found, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + gamma * total
        found.append(reward)
    return total
""",
    ],
    "L49": [
        """
from torch.distributions import Normal
class Policy:
    def act(self, obs):
        mean, log_std = self.net(obs)
        return Normal(mean, log_std.exp()).sample()
    def other(self, obs):
        mean, log_std = self.net(obs)
        log_std = log_std.clamp(-5, 2).exp()
        return Normal(mean, log_std).sample()
""",
    ],
    "L50": [
        """
def target(q, reward, next_obs, terminated, gamma):
    return (reward + gamma * (1 - terminated) * q(next_obs).max(1)[0]).detach()
def table(q, reward, after, gamma):
    return reward + gamma * q[after, q[after].argmax()]
""",
    ],
    "L51": [
        """
import torch
def update(loss, net, optimizer):
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    optimizer.step()
def both(loss, other, net, optimizer):
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    optimizer.step()
    optimizer.zero_grad()
    other.backward()
    optimizer.step()
def summed(losses, net, optimizer):
    torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    optimizer.step()
    optimizer.zero_grad()
    for loss in losses:
        loss.backward()
""",
    ],
    "L52": [
        """
import torch
class Net(torch.nn.Module):
    def forward(self, obs):
        value, advantage = self.value(obs), self.advantage(obs)
        return value + advantage - advantage.mean(dim=1, keepdim=True)
def normalised(adv):
    return (adv - adv.mean()) / (adv.std() + 1e-8)
def shifted(value, returns):
    return value + returns - returns.mean()
""",
    ],
    "L53": [
        """
import numpy as np
import torch
def smoothed(action, sigma, bound, low, high):
    noise = (torch.randn_like(action) * sigma).clamp(-bound, bound)
    both = np.clip(2 * np.random.rand(3) - 1, -0.5, 0.5)
    return (action + noise).clamp(low, high), both, np.clip(np.random.rand(3), 0, 0.5)
""",
    ],
    "L54": [
        """
class Replay:
    def store(self, obs, action, reward, next_obs, terminated):
        mask = 0.0 if terminated else 1.0
        self.data.append((obs, action, reward, next_obs, mask))
def target(replay, critic, gamma):
    obs, action, reward, next_obs, mask = replay.sample(64)
    return reward + gamma * mask * critic(next_obs)
""",
        """
def other(terminated, reward, critic, next_obs, gamma, action_mask, logits):
    mask = terminated.float()
    hidden = logits - 1e9 * (1 - action_mask)
    return reward + gamma * (1 - mask) * critic(next_obs), hidden
""",
    ],
    "L55": [
        """
def project(p, b, m, offset, n):
    lower, upper = b.floor().long(), b.ceil().long()
    lower[(upper > 0) & (lower == upper)] -= 1
    upper[(lower < n - 1) & (lower == upper)] += 1
    m.index_add_(0, lower + offset, p * (upper.float() - b))
    m.index_add_(0, upper + offset, p * (b - lower.float()))
    return m
""",
        """
import jax.numpy as jnp
def project(p, b, m):
    l = jnp.clip(jnp.floor(b), 0, 50)
    u = jnp.clip(jnp.ceil(b), 0, 50)
    d = (u + (l == u) - b) * p
    return m, d, (b - l) * p
""",
    ],
    "L56": [
        """
class DoubleDQN:
    def target(self, reward, next_obs, terminated):
        best = self.online(next_obs).argmax(dim=1, keepdim=True)
        value = self.target_net(next_obs).gather(1, best).squeeze(1)
        return reward + self.gamma * (1 - terminated) * value
""",
    ],
    "L57": [
        """
import jax
def advantages(trajectory, gamma, lam, zero):
    def step(gae, t):
        gae = t.delta + gamma * lam * gae
        return gae, gae
    _, found = jax.lax.scan(step, zero, trajectory, reverse=True)
    turned = jax.tree.map(lambda x: x[::-1], trajectory)
    _, other = jax.lax.scan(step, zero, turned)
    return found, other
def discounted(trajectory, gamma, zero):
    def step(carry, t):
        total, power = carry
        return (total + power * t.reward, power * gamma), total
    return jax.lax.scan(step, zero, trajectory)
def scales(rewards, ends, gamma, start):
    def step(ret, t):
        ret = t[0] + gamma * ret * (1 - t[1])
        return ret, ret
    return jax.lax.scan(step, start, (rewards, ends))
""",
    ],
    "L58": [
        """
import torch.nn.functional as F
def loss(weights, q, target, value_weight):
    policy = (weights * F.smooth_l1_loss(q, target, reduction="none")).mean()
    return policy + value_weight * F.mse_loss(q, target)
""",
    ],
    "L59": [
        """
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
""",
    ],
    "L60": [
        """
import gymnasium as gym
import torch.nn as nn
def build(n, make):
    layers = [nn.Linear(4, 4) for _ in range(n)]
    rows = [0.0] * n + [make(3)] * 1
    shapes = [tuple(range(3))] * n
    return nn.Sequential(*layers), [nn.ReLU()] * n, rows, shapes
envs = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 4)
""",
    ],
    "L61": [
        """
import numpy as np
import tensorflow as tf
@tf.function
def act(q, obs, epsilon):
    explore = tf.random.uniform(()) < epsilon
    return tf.where(explore, 0, tf.argmax(q(obs), axis=1))
def outside(q, obs):
    return act(q, obs, np.random.uniform())
""",
    ],
    "L62": [
        """
def sarsa(env, q, choose, alpha, gamma):
    for episode in range(500):
        s, _ = env.reset()
        a = choose(q, s)
        over = False
        while not over:
            s2, r, terminated, truncated, _ = env.step(a)
            a2 = choose(q, s2)
            q[s, a] += alpha * (r + gamma * q[s2, a2] * (1 - terminated) - q[s, a])
            s, a = s2, a2
            over = terminated or truncated
def repeated(env, action):
    for _ in range(4):
        obs, reward, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            break
    return obs
def skipped(env, choose, obs):
    for t in range(100):
        a = choose(obs)
        for _ in range(4):
            next_obs, reward, terminated, truncated, _ = env.step(a)
        obs = next_obs
""",
    ],
    "L63": [
        """
import torch
def conservative(q, actions, ensemble):
    of_data = q.gather(1, actions.unsqueeze(1)).squeeze(1)
    return torch.logsumexp(q, dim=1).mean() - of_data.mean(), ensemble.softmax(dim=0)
""",
    ],
    "L64": [
        """
import torch
def asymmetric(u, tau):
    return torch.mean(torch.abs(tau - (u < 0).float()) * u**2)
def value_loss(q, v, tau):
    return asymmetric(q - v, tau)
def other(q, v, expectile):
    diff = v - q
    return (torch.where(diff > 0, 1 - expectile, expectile) * diff**2).mean()
""",
    ],
    "L65": [
        """
class NStepReplay:
    def fold(self):
        total, power = 0.0, 1.0
        for _, _, reward, _, _ in self.window:
            total += power * reward
            power *= self.gamma
        self.storage.append((self.window[0], total, power))
class Agent:
    def update(self, reward, next_obs, terminated, discount, n_step):
        value = self.target_net(next_obs).amax(dim=1)
        one = reward + self.gamma**self.n_step * (1 - terminated) * value
        target = reward + discount * (1 - terminated) * value
        return one, target
""",
        """
class Replay:
    def sample(self, gamma, rewards, n_steps):
        total, power = 0.0, 1.0
        for reward in rewards:
            total += power * reward
            power *= gamma
        return total, power
class Agent:
    def update(self, reward, next_obs, terminated, discount):
        target = reward + discount * (1 - terminated) * self.target_net(next_obs).amax(dim=1)
        return target
""",
        """
class Replay:
    def fold(self, gamma, rewards):
        total, power = 0.0, 1.0
        for reward in rewards:
            total += power * reward
            power *= gamma
        return total
class Rainbow:
    def loss(self, reward, summed, next_obs, terminated, n_step):
        target = reward + self.gamma * (1 - terminated) * self.target_net(next_obs).amax(dim=1)
        gamma = self.gamma**n_step
        longer = summed + gamma * (1 - terminated) * self.target_net(next_obs).amax(dim=1)
        return target, longer
""",
    ],
    "L66": [
        """
import random
import numpy as np
rng = np.random.default_rng(0)
def act(values, epsilon):
    if rng.random() < epsilon:
        return int(rng.integers(values.size))
    return int(values.argmax())
def other(values, epsilon, n):
    if rng.random() < epsilon:
        return random.randint(0, n - 1)
    return int(values.argmax())
def rows(memory):
    return rng.integers(0, len(memory) - 1, size=32)
""",
        """
import numpy as np
def act(epsilon, rng, n):
    if rng.random() < epsilon:
        return np.random.randint(low=0, high=n)
    return 0
""",
    ],
    "L67": [
        """
import optax
def step(optimiser, gradients, state, parameters, averages):
    updates, state = optimiser.update(gradients, state, parameters)
    kept, _ = averages.update(updates)
    return optax.apply_updates(parameters, updates), state, kept
""",
    ],
    "L68": [
        """
from stable_baselines3.common.callbacks import BaseCallback
class Log(BaseCallback):
    def _on_step(self) -> bool:
        if self.n_calls % 100:
            return True
        self.logger.record("x", self.num_timesteps)
        return True
class Stops(BaseCallback):
    def _on_step(self):
        return self.num_timesteps < 1000
class Later(BaseCallback):
    def _on_step(self):
        raise NotImplementedError
class Other:
    def _on_step(self):
        self.n = 1
""",
    ],
    "L69": [
        """
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
""",
    ],
    "L70": [
        """
import numpy as np
def collect(env, actor, obs, sigma):
    action = actor(obs) + np.random.normal(0.0, sigma, 3)
    action = np.clip(action, -1.0, 1.0)
    return env.step(action)
""",
        """
import numpy as np
def collect(env, actor, obs, sigma):
    action = np.clip(actor(obs), -1.0, 1.0)
    action = action + np.random.normal(0.0, sigma, action.shape)
    action = np.clip(action, -1.0, 1.0)
    return env.step(action)
""",
    ],
    "L71": [
        """
import gymnasium as gym
from gymnasium.wrappers import NormalizeReward, RecordEpisodeStatistics
def make_env(name):
    env = RecordEpisodeStatistics(gym.make(name))
    return NormalizeReward(env, gamma=0.99)
""",
        """
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize
def make(envs):
    return VecMonitor(VecNormalize(envs, norm_reward=False))
""",
    ],
}
