# L01: truncation counted as termination

# %% mistake
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

# %% mistake
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

# %% mistake
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

# %% mistake
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

# %% mistake
def run(env, act, net):
    obs, info = env.reset()
    while True:
        next_obs, r, terminated, truncated, info = env.step(act(obs))
        done = terminated or truncated
        y = r + 0.99 * net(next_obs).max() * (1 - done)  # here
        obs = next_obs
        if done:
            obs, info = env.reset()

# %% mistake
def target(env, q):
    obs, reward, terminated, truncated, _ = env.step(0)
    done = terminated or truncated
    return reward + 0.99 * (1 - done) * q(obs)  # here

# %% mistake
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

# %% mistake
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

# %% mistake
def collect(env, memory):
    obs, reward, terminated, truncated, _ = env.step(0)
    done = terminated or truncated
    memory.push((obs, 0, reward, done))  # here
def update(batch, q, gamma):
    return batch.reward + gamma * q(batch.next_obs).max(1) * (1 - batch.done)

# %% mistake
import numpy as np
def learn(envs, rewards, values, dones, args):
    obs, reward, terminations, truncations, infos = envs.step(0)
    next_done = np.logical_or(terminations, truncations)
    next_done = torch.Tensor(next_done).to("cpu")
    nextnonterminal = 1.0 - next_done
    delta = rewards[0] + args.gamma * values[1] * nextnonterminal - values[0]  # here
    last = delta + args.gamma * 0.95 * nextnonterminal * 0

# %% mistake
def target(env, q, gamma):
    obs, reward, terminated, truncated, _ = env.step(0)
    done = terminated or truncated
    return reward + gamma * q(obs) * (not done)  # here

# %% mistake
def target(env, q):
    obs, reward, term, trunc, _ = env.step(0)
    done = (term | trunc).astype(float)
    return reward + (1 - done) * self.discount * q(obs)  # here

# %% mistake
import torch
def advantages(envs, buffer, gamma):
    obs, reward, term, trunc, _ = envs.step(0)
    buffer.end[0] = torch.logical_or(torch.as_tensor(term), torch.as_tensor(trunc)).float()
    alive = 1.0 - buffer.end[0]
    return reward + gamma * buffer.v[1] * alive  # here

# %% mistake
def target(env, q, gamma):
    obs, reward, terminated, truncated, _ = env.step(0)
    if (over := terminated or truncated):
        env.reset()
    return reward + gamma * q(obs) * (1 - over)  # here

# %% mistake
def target(env, q, gamma):
    obs, reward, terminated, truncated, _ = env.step(0)
    done = terminated + truncated
    return reward + gamma * q(obs) * (1 - done)  # here

# %% mistake
def advantages(rewards, values, terminated, truncated, gamma, lam):
    done, last = terminated | truncated, 0.0
    if not truncated.any():
        last = gamma * values[-1]
    for t in reversed(range(len(rewards))):
        alive = 1 - done[t]
        last = rewards[t] + gamma * lam * alive * last + gamma * alive * values[t + 1]  # here
    return last

# %% mistake
def targets(rewards, values, terminated, truncated, gamma):
    done = terminated | truncated
    if terminated or truncated:
        rewards = gamma * rewards
    values *= gamma * (1 - done)  # here
    return rewards + values

# %% mistake
def targets(rewards, values, terms, truncs, gamma):
    for reward, value, term, trunc in zip(rewards, values, terms, truncs):
        done = term or trunc
        yield reward + gamma * value * (1 - done)  # here

# %% mistake
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

# %% mistake
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

# %% mistake
import torch
def collect(env, buf):
    o, r, terminated, truncated, _ = env.step(0)
    done = terminated | truncated
    buf.append((o, 0, r, o, done))  # here
def update(buf, q, gamma):
    o, a, r, o2, d = map(torch.as_tensor, zip(*buf))
    return r + gamma * (~d) * q(o2).max(1)[0]

# %% mistake
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

# %% mistake
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

# %% mistake
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

# %% mistake
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

# %% mistake
def collect(env, buf):
    obs2, reward, done, truncated, _ = env.step(a)
    done = done or truncated
    buf.add(obs, a, reward, obs2, done)  # here
def update(batch, q, gamma):
    return batch.reward + gamma * q(batch.next_obs).max(1) * (1 - batch.done)

# %% mistake
def collect(env, buffer):
    obs, reward, term, trunc, _ = env.step(0)
    mask = 0.0 if (term or trunc) else 1.0
    buffer.push(obs, 0, reward, obs, mask)  # here
def learn(buffer, target_q, gamma):
    obs, action, reward, next_obs, mask = buffer.sample()
    return reward + gamma * mask * target_q(next_obs)

# %% mistake
def collect(env, buffer):
    obs, reward, term, trunc, _ = env.step(0)
    buffer.push(obs, 0, reward, obs, 1.0 - float(term or trunc))  # here
def learn(buffer, target_q, gamma):
    obs, action, reward, next_obs, alive = buffer.sample()
    return reward + gamma * alive * target_q(next_obs)

# %% mistake
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

# %% mistake
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

# %% mistake
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

# %% mistake
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

# %% mistake
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

# %% mistake
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

# %% right
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

# %% right
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

# %% right
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

# %% right
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

# %% right
def smooth(env, value):
    obs, reward, terminated, truncated, _ = env.step(0)
    done = terminated or truncated
    value = 0.01 * reward + 0.99 * value * (1 - done)
    return value

# %% right
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

# %% right
def collect(env, memory, reward_log):
    obs, reward, terminated, truncated, _ = env.step(0)
    done = terminated or truncated
    memory.push((obs, 0, reward, terminated))
    reward_log.append(done)
def update(batch, q, gamma):
    return batch.reward + gamma * q(batch.next_obs).max(1) * (1 - batch.done)

# %% right
def discounts_of_rewards(replay, gamma):
    ended = replay.terminated | replay.truncated
    return discount * gamma * (1 - ended)

# %% right
def target(env, q, gamma):
    obs, reward, terminated, truncated, _ = env.step(0)
    done = terminated or truncated
    if done:
        env.reset()
    return reward + gamma * q(obs) * (1 - terminated)

# %% right
import numpy as np
def lstm(self, hidden, terminations, truncations):
    done = np.logical_or(terminations, truncations)
    return self.lstm(hidden, (1.0 - done) * self.state)

# %% right
def advantage(self, rewards, values, terminated, truncated):
    done = terminated | truncated
    rewards = rewards + self.gamma * truncated * values
    return rewards + self.gamma * values * (1 - done)

# %% right
import torch
def advantages(envs, buffer, gamma):
    obs, reward, term, trunc, _ = envs.step(0)
    if (over := term or trunc):
        obs, _ = envs.reset()
    buffer.end[0] = torch.as_tensor(term).float()
    alive = 1.0 - buffer.end[0]
    return reward + gamma * buffer.v[1] * alive

# %% right
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

# %% right
import numpy as np
def gae(rewards, values, next_values, terminated, truncated, gamma, lam):
    done, last = np.logical_or(terminated, truncated), 0.0
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + gamma * next_values[t] * (1 - terminated[t]) - values[t]
        last = delta + gamma * lam * (1 - done[t]) * last
        next_value, going = next_values[t] * (1 - terminated[t]), 1.0 - done[t]
        total = rewards[t] + gamma * (next_value + lam * going * total) - values[t]
    return last, total

# %% right
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

# %% right
import torch
def collect(env, buf):
    o, r, terminated, truncated, _ = env.step(0)
    done = terminated | truncated
    buf.append((o, 0, r, o, terminated, done))
def update(buf, q, gamma):
    o, a, r, o2, d, last = map(torch.as_tensor, zip(*buf))
    return r + gamma * (~d) * q(o2).max(1)[0]

# %% right
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

# %% right
def collect(env, buf):
    obs2, reward, done, truncated, _ = env.step(a)
    buf.add(obs, a, reward, obs2, done)
    done = done or truncated
    if done:
        env.reset()
def update(batch, q, gamma):
    return batch.reward + gamma * q(batch.next_obs).max(1) * (1 - batch.done)

# %% right
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

# %% right
def collect(env, buffer):
    obs, reward, term, trunc, _ = env.step(0)
    mask = 0.0 if term else 1.0
    buffer.push(obs, 0, reward, obs, mask)
    over = term or trunc
def learn(buffer, target_q, gamma):
    obs, action, reward, next_obs, mask = buffer.sample()
    return reward + gamma * mask * target_q(next_obs)

# %% right
def collect(env, buffer):
    obs, reward, term, trunc, _ = env.step(0)
    resets = 1.0 - float(term or trunc)
    buffer.push(obs, reward, obs, 1.0 - float(term), resets)
def learn(buffer, target_q, gamma):
    obs, reward, next_obs, mask, resets = buffer.sample()
    target = reward + gamma * mask * target_q(next_obs)
    return target, resets

# %% right
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

# %% right
def has_ended(result):
    return result[2] or result[3]
def train(env, policy, critic, obs, gamma):
    result = env.step(policy(obs))
    over = has_ended(result)
    if over:
        env.reset()
    alive = 1.0 - float(result[2])
    return result[1] + gamma * alive * critic(result[0])

# %% right
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

# %% right
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

# %% right
def play(env, pick, bank, s):
    s2, r, te, tr, _ = env.step(pick(s))
    bank.append({"r": r, "s2": s2, "over": te or tr, "late": tr})
def goal(row, q, gamma):
    stop = row["over"] * (1 - row["late"])
    return row["r"] + gamma * (1 - stop) * q(row["s2"]).max()

# %% right
def play(env, pick, bank, s):
    s2, r, te, tr, _ = env.step(pick(s))
    bank.append((s, r, s2, te or tr))
def goal(rows, q, gamma, lam, tau):
    s, r, s2, over = rows
    mix = r + gamma * ((1 - lam) * q(s2) + lam * q(s))
    return mix * (1 - tau)

# %% right
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

# %% right
def play(env, pick, bank, s):
    s2, r, te, tr, info = env.step(pick(s))
    bank.append({"r": r, "s2": s2, "over": te or tr})
    if info.get("TimeLimit.truncated"):
        bank.pop()
def goal(row, q, gamma):
    return row["r"] + gamma * (1 - row["over"]) * q(row["s2"]).max()
