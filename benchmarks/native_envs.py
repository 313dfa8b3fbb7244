"""Env steps per second of our native environments, and of gymnax if installed.

    python benchmarks/native_envs.py [--env-steps 2000000] [--repeats 3]

Random actions, automatic reset, `vmap` over N environments inside one `scan`; observations are
summed, so that the compiler cannot remove them. The best repeat counts, without compilation.
"""

import argparse
import functools
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.envs.registry import make_native

ENVS = ("CartPole-v1", "Pendulum-v1", "Acrobot-v1")
SIZES = (16, 256, 4096)


def random_actions(spec: EnvSpec, key: Any, num_envs: int) -> Any:
    """Return one uniform action per environment."""
    if isinstance(spec.action, Discrete):
        return jax.random.randint(key, (num_envs,), 0, spec.action.n)
    shape = (num_envs, *spec.action.shape)
    return jax.random.uniform(key, shape, minval=spec.action.low, maxval=spec.action.high)


def ours(env_id: str, num_envs: int, length: int) -> Callable[[Any], Any]:
    """Return a program of `length` steps: reset drawn at every step, taken where one ended."""
    env = make_native(env_id)
    assert env is not None

    def one(state: Any, action: Any, key: Any) -> tuple[Any, Any]:
        step = env.step(state, action, key)
        fresh, done = env.reset(key), step.terminated | step.truncated
        state = jax.tree.map(functools.partial(jnp.where, done), fresh, step.state)
        return state, env.observe(step.state).sum() + step.reward

    def body(carry: Any, key: Any) -> tuple[Any, None]:
        state, total = carry
        act, run = jax.random.split(key)
        keys = jax.random.split(run, num_envs)
        state, seen = jax.vmap(one)(state, random_actions(env.spec, act, num_envs), keys)
        return (state, total + seen.sum()), None

    def program(key: Any) -> Any:
        first, rest = jax.random.split(key)
        start = jax.vmap(env.reset)(jax.random.split(first, num_envs))
        return jax.lax.scan(body, (start, jnp.zeros(())), jax.random.split(rest, length))[0][1]

    return jax.jit(program)


def theirs(env_id: str, num_envs: int, length: int) -> Callable[[Any], Any]:
    """Return gymnax's program of the same steps; its `step` resets by itself."""
    import gymnax  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    env, params = gymnax.make(env_id)
    spec = make_native(env_id).spec  # pyright: ignore[reportOptionalMemberAccess]

    def body(carry: Any, key: Any) -> tuple[Any, None]:
        state, total = carry
        act, run = jax.random.split(key)
        keys, actions = jax.random.split(run, num_envs), random_actions(spec, act, num_envs)
        obs, state, reward, *_ = jax.vmap(env.step, (0, 0, 0, None))(keys, state, actions, params)
        return (state, total + obs.sum() + reward.sum()), None

    def program(key: Any) -> Any:
        first, rest = jax.random.split(key)
        _, start = jax.vmap(env.reset, (0, None))(jax.random.split(first, num_envs), params)
        return jax.lax.scan(body, (start, jnp.zeros(())), jax.random.split(rest, length))[0][1]

    return jax.jit(program)


def steps_per_second(program: Callable[[Any], Any], env_steps: int, repeats: int) -> float:
    """Return the best rate of several runs after one that compiles."""
    jax.block_until_ready(program(jax.random.key(0)))
    rates: list[float] = []
    for repeat in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(program(jax.random.key(repeat)))
        rates.append(env_steps / (time.perf_counter() - start))
    return max(rates)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--env-steps", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    makers = {"backflip": ours}
    if importlib.util.find_spec("gymnax"):
        makers["gymnax"] = theirs
    print(f"{'million env steps/s':<20}{'N':>6}" + "".join(f"{name:>12}" for name in makers))
    for env_id in ENVS:
        for num_envs in SIZES:
            length = max(options.env_steps // num_envs, 1)
            rates = [
                steps_per_second(make(env_id, num_envs, length), length * num_envs, options.repeats)
                for make in makers.values()
            ]
            row = "".join(f"{rate / 1e6:>12.2f}" for rate in rates)
            print(f"{env_id:<20}{num_envs:>6}{row}")


if __name__ == "__main__":
    main()
