"""PPO on CartPole-v1 by rejax 0.1.3, with the settings that SB3's zoo has for it.

The rate leaves out compilation, and rejax's evaluation callback is off. Its learning rate and clip
range are constants here: it has no schedule for them, which costs it nothing. Prints one JSON line.
Runs in the peer's environment: `.cache/peers/rejax/bin/python`.
"""

import argparse
import json
import time

import jax
from rejax import PPO

parser = argparse.ArgumentParser()
parser.add_argument("--seeds", type=int, default=1)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--env-steps", type=int, default=100_000)
parser.add_argument("--repeats", type=int, default=3)
arguments = parser.parse_args()

num_envs, num_steps = 8, 32
env_steps = -(-arguments.env_steps // (num_envs * num_steps)) * num_envs * num_steps
algorithm = PPO.create(
    env="CartPole-v1",
    agent_kwargs={"hidden_layer_sizes": (64, 64), "activation": "tanh"},
    num_envs=num_envs,
    num_steps=num_steps,
    num_minibatches=1,
    num_epochs=20,
    learning_rate=1e-3,
    gamma=0.98,
    gae_lambda=0.8,
    clip_eps=0.2,
    ent_coef=0.0,
    vf_coef=0.5,
    max_grad_norm=0.5,
    total_timesteps=env_steps,
    eval_freq=env_steps,
    skip_initial_evaluation=True,
)
evaluate = algorithm.eval_callback
algorithm = algorithm.replace(eval_callback=lambda algorithm, state, key: ())

keys = jax.random.split(jax.random.key(arguments.seed), arguments.seeds)
start = time.perf_counter()
train = jax.jit(jax.vmap(algorithm.train)).lower(keys).compile()
compile_seconds = time.perf_counter() - start
seconds = []
for _ in range(arguments.repeats):
    start = time.perf_counter()
    state, _ = jax.block_until_ready(train(keys))
    seconds.append(time.perf_counter() - start)
_, returns = jax.jit(jax.vmap(lambda state, key: evaluate(algorithm, state, key)))(state, keys)
print(
    json.dumps(
        {
            "env_steps": int(state.global_step[0]),
            "seeds": arguments.seeds,
            "compile_seconds": compile_seconds,
            "seconds": min(seconds),
            "env_steps_per_second": arguments.seeds * env_steps / min(seconds),
            "returns": [round(float(x), 1) for x in returns.mean(axis=1)],
        }
    )
)
