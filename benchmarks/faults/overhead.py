"""Measure what the identities of an update cost, and `action_match`, as a share of its CPU time.

    python benchmarks/faults/overhead.py

Updates and the identities alone are each repeated in a loop of compiled code. The share of a
training is smaller still: acting and the environment take time, too.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from backflip.algorithms import a2c, dqn, ppo
from backflip.algorithms.parts.identities import ROWS_BETWEEN, rollout_identities
from backflip.algorithms.parts.rollout_rows import prepare
from backflip.algorithms.parts.stochastic_policy import ActionInfo, Actor
from backflip.algorithms.registry import entry_of
from backflip.core.replay.layout import Sampled
from backflip.core.types import Transition
from backflip.drivers.action_match import action_match
from backflip.envs.native.cartpole import CartPole
from backflip.envs.native.pendulum import Pendulum
from backflip.networks.actor_critic import actor_critic
from backflip.networks.q_network import q_network

SPEC = CartPole().spec
KEY = jax.random.key(0)
REPETITIONS = 7
MODULES = {"ppo": ppo, "a2c": a2c}


def main() -> None:
    """Print a line for each algorithm."""
    for name, times in (("ppo", 5), ("a2c", 500)):
        update, look, every = _on_policy(name)
        _print(name, _seconds(update, times) * every, _seconds(look, 200))
    update, look = _dqn()
    _print("dqn", _seconds(update, 2), _seconds(look, 200))
    for name in ("sac", "td3"):
        update, look = _with_critics(name)
        _print(f"{name}, action_match", _seconds(update, 1), _seconds(look, 200))


def _print(name: str, update: float, look: float) -> None:
    print(f"{name}: {look / update:.2%} of the updates ({look * 1e6:.0f} µs)", flush=True)


def _on_policy(name: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any], int]:
    """Return an update, its identities, and how many updates come to one look."""
    config: Any = entry_of(name).config()
    algorithm = entry_of(name).build(config, SPEC)
    state, batch = algorithm.init(0), _rows((config.rollout_length, config.num_envs))
    batch = batch._replace(extra=ActionInfo(batch.reward, batch.reward))
    actor = Actor(SPEC, actor_critic(SPEC, config.hidden, config.network), config.normalize_obs)

    def look(x: Any) -> Any:
        now = _moved(batch, x)
        rows = prepare(actor, state, now, partial(MODULES[name].estimate, config))
        found = rollout_identities(
            actor,
            state,
            state.params,
            now,
            rows,
            updates=jnp.zeros((), jnp.int32),
            discount=config.discount,
            gae_lambda=config.gae_lambda,
        )
        return 1e-9 * found["advantage_error_max"]

    def update(x: Any) -> Any:
        now = _moved(batch, x)
        return 1e-9 * algorithm.update(state, now, KEY)[1]["grad_norm"]

    return update, look, -(-ROWS_BETWEEN // batch.valid.size)


def _dqn() -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    config: Any = entry_of("dqn").config()
    algorithm = entry_of("dqn").build(config, SPEC)
    net = q_network(SPEC, 2, config.hidden, dueling=config.dueling, pixels=config.network)
    state = algorithm.init(0)
    batch = _rows((round(config.updates_per_step * 256), config.batch_size))
    one = jnp.ones(batch.valid.shape)
    batch = batch._replace(extra=Sampled(0.99 * one, one.astype(jnp.int32), one))

    def look(x: Any) -> Any:
        now = _moved(batch, x)
        params = (state.params, state.target)
        return 1e-9 * dqn.target_error(config, net, *params, now, now.reward)

    def update(x: Any) -> Any:
        now = _moved(batch, x)
        return 1e-9 * algorithm.update(state, now, KEY)[1]["grad_norm"]

    return update, look


def _with_critics(name: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return an update, and the comparison of the rollout's actions with the policy."""
    entry, spec = entry_of(name), Pendulum().spec
    config: Any = entry.config()
    algorithm = entry.build(config, spec)
    state = algorithm.init(0)
    shapes = (config.rollout_length, config.num_envs), (config.rollout_length, config.batch_size)
    rollout, drawn = (_continuous(shape) for shape in shapes)
    one = jnp.ones(drawn.valid.shape)
    drawn = drawn._replace(extra=Sampled(0.99 * one, one.astype(jnp.int32), one))

    def look(x: Any) -> Any:
        return 1e-9 * action_match(algorithm, state, _moved(rollout, x), KEY)["action_match"]

    def update(x: Any) -> Any:
        return 1e-9 * algorithm.update(state, _moved(drawn, x), KEY)[1]["critic_grad_norm"]

    return update, look


def _continuous(shape: tuple[int, int]) -> Transition:
    rows = _rows(shape)
    obs, after = rows.obs[..., :3], rows.next_obs[..., :3]
    return rows._replace(obs=obs, next_obs=after, action=rows.obs[..., 3:])


def _rows(shape: tuple[int, int]) -> Transition:
    rng = np.random.default_rng(0)
    obs, after = (jnp.asarray(x, jnp.float32) for x in rng.normal(size=(2, *shape, 4)))
    reward = jnp.asarray(rng.normal(size=shape), jnp.float32)
    action = jnp.asarray(rng.integers(0, 2, shape), jnp.int32)
    ended, cut = (jnp.asarray(x < 0.02) for x in rng.random((2, *shape)))
    return Transition(obs, action, reward, ended, cut, after, reward == reward, ())


def _moved(batch: Transition, x: Any) -> Transition:
    """Return a batch that depends on the loop, so that each turn computes everything again."""
    return batch._replace(reward=batch.reward + x, obs=batch.obs + x, next_obs=batch.next_obs + x)


def _seconds(function: Callable[[Any], Any], times: int) -> float:
    """Return the least CPU seconds of one call, of several loops."""

    def turn(_: Any, x: Any) -> Any:
        return function(x)

    def loop(x: Any) -> Any:
        return jax.lax.fori_loop(0, times, turn, x)

    run = jax.jit(loop)
    run(jnp.zeros(())).block_until_ready()
    found = list[float]()
    for _ in range(REPETITIONS):
        start = time.process_time()
        run(jnp.zeros(())).block_until_ready()
        found.append(time.process_time() - start)
    return min(found) / times


if __name__ == "__main__":
    main()
