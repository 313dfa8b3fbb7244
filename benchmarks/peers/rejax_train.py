"""Train with rejax 0.1.3 in gymnax 0.0.9: many seeds in one program, one JSON line.

    python peers/rejax_train.py ppo|dqn ENV --env-steps N --seeds S [--settings JSON] [--conv]

The rate leaves out compilation, and rejax's evaluation callback is off. With `--steady-from W` the
time of W env steps, measured apart, is subtracted: the rest is the rate after learning starts.
`--conv` replaces its networks by MinAtar's: 16 3x3 convolutions and a dense layer of 128.
Runs in the peer's environment: `.cache/peers/rejax/bin/python`.
"""

import argparse
import json
import time

import jax
from flax import linen as nn
from rejax import DQN, PPO
from rejax.networks import DiscretePolicy, DiscreteQNetwork, EpsilonGreedyPolicy

ALGORITHMS = {"ppo": PPO, "dqn": DQN}


class Features(nn.Module):
    """Young & Tian 2019, arXiv:1903.03176, section 4."""

    @nn.compact
    def __call__(self, obs):  # noqa: D102
        x = nn.relu(nn.Conv(16, (3, 3), padding="VALID")(obs))
        return nn.relu(nn.Dense(128)(x.reshape(x.shape[0], -1)))


class ConvPolicy(DiscretePolicy):
    """A policy over those features."""

    def setup(self):  # noqa: D102
        self.features = Features()
        self.action_logits = nn.Dense(self.action_dim)


class ConvValue(nn.Module):
    """A value network with separate features: rejax shares none between policy and value."""

    @nn.compact
    def __call__(self, obs):  # noqa: D102
        return nn.Dense(1)(Features()(obs)).squeeze(1)


class ConvQ(nn.Module):
    """Action values over those features."""

    action_dim: int

    @nn.compact
    def __call__(self, obs):  # noqa: D102
        return nn.Dense(self.action_dim)(Features()(obs))

    take = DiscreteQNetwork.take


def configured(env_steps):
    """The algorithm for so many env steps, and its evaluation callback, which is taken out."""
    algorithm = ALGORITHMS[arguments.algorithm].create(
        env=arguments.env,
        total_timesteps=env_steps,
        eval_freq=env_steps,
        skip_initial_evaluation=True,
        **arguments.settings,
    )
    if arguments.conv:
        algorithm = with_convolutions(algorithm)
    if arguments.q_hidden:  # its DQN takes no other widths than its own
        net = EpsilonGreedyPolicy(DiscreteQNetwork)
        algorithm = algorithm.replace(
            agent=net(tuple(arguments.q_hidden), nn.relu, algorithm.action_dim)
        )
    evaluate = algorithm.eval_callback
    return algorithm.replace(eval_callback=lambda algorithm, state, key: ()), evaluate


def with_convolutions(algorithm):
    """The algorithm with MinAtar's networks."""
    if arguments.algorithm == "dqn":
        return algorithm.replace(agent=EpsilonGreedyPolicy(ConvQ)(algorithm.action_dim))
    policy = ConvPolicy(algorithm.action_dim, (), nn.relu)
    return algorithm.replace(actor=policy, critic=ConvValue())


def timed(algorithm):
    """The last state, the least seconds of several runs, and the seconds of compilation."""
    start = time.perf_counter()
    train = jax.jit(jax.vmap(algorithm.train)).lower(keys).compile()
    compiling, seconds = time.perf_counter() - start, []
    for _ in range(arguments.repeats):
        start = time.perf_counter()
        state, _ = jax.block_until_ready(train(keys))
        seconds.append(time.perf_counter() - start)
    return state, min(seconds), compiling


parser = argparse.ArgumentParser()
parser.add_argument("algorithm", choices=ALGORITHMS)
parser.add_argument("env")
parser.add_argument("--seeds", type=int, default=1)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--env-steps", type=int, required=True)
parser.add_argument("--steady-from", type=int, default=0)
parser.add_argument("--repeats", type=int, default=1)
parser.add_argument("--settings", type=json.loads, default={})
parser.add_argument("--conv", action="store_true")
parser.add_argument("--q-hidden", type=int, nargs="+", default=(), help="widths of DQN's layers")
parser.add_argument("--evaluate", action="store_true")
arguments = parser.parse_args()

keys = jax.random.split(jax.random.key(arguments.seed), arguments.seeds)
algorithm, evaluate = configured(arguments.env_steps)
state, seconds, compiling = timed(algorithm)
env_steps = int(state.global_step[0])
before = (0, 0.0)
if arguments.steady_from:
    earlier, before_seconds, _ = timed(configured(arguments.steady_from)[0])
    before = (int(earlier.global_step[0]), before_seconds)
returns = []
if arguments.evaluate:
    played = jax.jit(jax.vmap(lambda state, key: evaluate(algorithm, state, key)))(state, keys)
    returns = [round(float(x), 1) for x in played[1].mean(axis=1)]
print(
    json.dumps(
        {
            "env_steps": env_steps,
            "seeds": arguments.seeds,
            "compile_seconds": compiling,
            "seconds": seconds,
            "env_steps_per_second": arguments.seeds
            * (env_steps - before[0])
            / (seconds - before[1]),
            "returns": returns,
        }
    )
)
