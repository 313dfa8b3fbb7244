# L57: advantages are computed from the first step on

# %% mistake
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

# %% mistake
from jax import lax
def gae(r, gone, gamma, lam, zero):
    def fold(acc, x):
        d, g = x
        acc = d + gamma * lam * (1 - g) * acc
        return acc, acc
    _, found = lax.scan(fold, zero, (r, gone))  # here
    return found

# %% right
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
