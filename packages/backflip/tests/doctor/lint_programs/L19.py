# L19: a key is used twice, or a counter is too narrow

# %% mistake
import jax
import jax.numpy as jnp
NUM, LEN = 8192, 32
def update(state):
    return {"step": state["step"] + jnp.int32(NUM * LEN)}
state = {"step": jnp.array(0, jnp.int32)}  # here
for k in range(50_000):
    state = update(state)

# %% mistake
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

# %% mistake
import jax
def draw(key):
    one = jax.random.normal(key, (3,))
    other = jax.random.uniform(key, (3,))  # here
    return one, other

# %% mistake
from jax import random
key = random.key(0)
for step in range(10):
    noise = random.normal(key)  # here

# %% mistake
import jax
def act(key, deterministic):
    key_a, key_b = jax.random.split(key)
    if deterministic:
        return 0
    return jax.random.normal(key)  # here

# %% mistake
import jax
class Agent:
    def __init__(self, seed):
        self.key = jax.random.PRNGKey(seed)
    def sample(self, mean):
        return mean + jax.random.normal(self.key, mean.shape)  # here

# %% mistake
import jax
def train(env, act, state, obs):
    key = jax.random.PRNGKey(0)
    key, act_key = jax.random.split(key)
    for step in range(1000):
        action = act(state, obs, act_key)  # here
        obs, reward, terminated, truncated, info = env.step(action)

# %% mistake
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

# %% mistake
import numpy as np
class Clock:
    def __init__(self):
        self.env_steps = np.int32(0)  # here
    def tick(self, n):
        self.env_steps = self.env_steps + n

# %% mistake
import jax.numpy as jnp
BUDGET = 5_000_000_000
def run(update, state):
    steps = jnp.zeros((), jnp.int32)  # here
    while steps < BUDGET:
        state = update(state)
        steps += 4096
    return state

# %% mistake
import jax
class Agent:
    def noisy(self, mean, rng):
        return mean + jax.random.normal(rng, mean.shape)
    def update(self, state, batch, rng):
        ahead = self.noisy(state.mean(batch.y), rng)
        now = self.noisy(state.mean(batch.x), rng)  # here
        return ahead, now

# %% mistake
import jax
def pick(params, x, source):
    a, b = jax.random.split(source)
    return jax.random.normal(a) + params @ x, b
def step(p, batch, source):
    ahead, _ = jax.vmap(pick, in_axes=(None, 0, None))(p, batch.y, source)
    slope = jax.grad(lambda w: pick(w, batch.x, source)[0].mean())(p)  # here
    return ahead, slope

# %% mistake
from jax import grad, random
def update(p, q, batch, key):
    def critic_cost(w):
        return ((w @ batch.x - random.normal(key, batch.u.shape)) ** 2).mean()
    def actor_cost(w):
        return (w @ random.normal(key, batch.u.shape)).mean()  # here
    return grad(critic_cost)(q), grad(actor_cost)(p)

# %% mistake
import jax
def act(weights, obs, k):
    return weights @ obs + jax.random.normal(k, (3,))
quick = jax.jit(act)
def run(weights, world, k):
    for _ in range(10):
        world.move(quick(weights, world.obs, k))  # here

# %% mistake
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

# %% mistake
from functools import partial
from jax import lax
def turn(world, carry, t):
    (obs, state), key = carry
    obs, state, r, over, _ = world.step(key, state, 0)  # here
    new = ((obs, state), key)
    return new, (r, over)
def go(world, carry):
    return lax.scan(partial(turn, world), carry, length=4)

# %% mistake
import jax
def go(world, state, rng):
    def going(c):
        return ~c[0].over
    def body(c):
        state, rng = c
        part, _ = jax.random.split(rng)  # here
        return world.move(state, jax.random.randint(part, (), 0, 4)), rng
    return jax.lax.while_loop(going, body, (state, rng))

# %% mistake
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

# %% mistake
import jax.numpy as jnp
def start(weights):
    return {"weights": weights, "frames": jnp.array(0, dtype=jnp.int32)}  # here
def go(state, n):
    return {**state, "frames": state["frames"] + n}
def train(state):
    while state["frames"] < 5e9:
        state = go(state, 4096)

# %% right
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

# %% right
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

# %% right
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

# %% right
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

# %% right
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

# %% right
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

# %% right
import numpy as np
class Clock:
    def __init__(self):
        self.env_steps = np.int64(0)
    def tick(self, n):
        self.env_steps = self.env_steps + n

# %% right
import jax.numpy as jnp
BUDGET = 50_000_000
def run(update, state):
    steps = jnp.zeros((), jnp.int32)
    while steps < BUDGET:
        state = update(state)
        steps += 4096
    return state

# %% right
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

# %% right
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

# %% right
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

# %% right
import jax.numpy as jnp
def start(largest=1e10):
    return {"frames": jnp.int32(0), "count": jnp.int32(0)}
def go(state, n):
    return {"frames": state["frames"] + n, "count": state["count"]}
