# L21: returns are summed forwards

# %% mistake
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

# %% mistake
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

# %% mistake
def twice(rewards, gamma):
    G, returns = 0, []
    rewards.reverse()
    rewards = rewards[::-1]
    for r in rewards:
        G = r + gamma * G  # here
        returns.append(G)
    returns.reverse()
    return returns

# %% mistake
def returns_of(rewards, gamma):
    G, returns = 0, []
    for t in range(len(rewards)):
        G = rewards[t] + gamma * G  # here
        returns.insert(0, G)
    return returns

# %% mistake
def returns_of(rewards, gamma):
    R, returns = 0, []
    for r in rewards:
        R = r + gamma * R  # here
        returns.append(R)
    return returns

# %% mistake
import torch
def advantages(rewards, values, dones, gamma, lam):
    found, last = torch.zeros(len(rewards)), 0.0
    for t in range(len(rewards)):
        alive = 1.0 - dones[t]
        delta = rewards[t] + gamma * values[t + 1] * alive - values[t]
        found[t] = last = delta + gamma * lam * alive * last  # here
    return found

# %% mistake
import jax
def to_go(rewards, dones, gamma):
    def body(total, step):
        reward, done = step
        total = reward + gamma * (1 - done) * total
        return total, total
    _, found = jax.lax.scan(body, 0.0, (rewards, dones))  # here
    return found

# %% mistake
import jax
import jax.numpy as jnp
def body(total, reward):
    total = reward + 0.5 * gamma * total
    return total, total
one = jax.lax.scan(body, last_value, rewards)  # here
other = jax.lax.scan(body, jnp.zeros(4), rewards, reverse=False)  # here

# %% mistake
def by_env(rewards, gamma):
    out, kept = rewards.copy(), []
    for n in range(4):
        R = 0.0
        for t in range(100):
            R = rewards[t, n] + gamma * R  # here
            out[t, n] = R
            kept.append(R)
    return out, kept, np.std(kept)

# %% mistake
def to_go(gains, discount):
    total, out = 0.0, []
    for gain in gains:
        total = gain + discount * total  # here
        out.append(total)
    return out

# %% right
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

# %% right
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

# %% right
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

# %% right
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

# %% right
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

# %% right
def running(rewards, gamma):
    total = 0
    for t in range(len(rewards)):
        total = rewards[t] + gamma * total
    for t in range(9, -1, -1):
        total = rewards[t] + gamma * total
        returns.append(total)
    return total

# %% right
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

# %% right
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

# %% right
import jax
def body(total, reward):
    total = reward + gamma * total
    return total, total
def single(total, reward):
    return reward + gamma * total
one = jax.lax.scan(body, 0.0, features)
other = jax.lax.scan(single, 0.0, rewards)

# %% right
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

# %% right
def to_go(gains, discount):
    total, out = 0.0, []
    for gain in reversed(gains):
        total = gain + discount * total
        out.append(total)
    return out[::-1]
