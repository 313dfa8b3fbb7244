"""Every native environment of ours keeps the interface, and the suite notices who does not."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from backflip.envs.native.cartpole import CartPole
from backflip.envs.native.probes import EndlessReward
from backflip.envs.registry import NATIVE, make_native
from tests.conformance.native_env import check_native_env

LIMITED = {"max_episode_steps": 12}
CASES: dict[str, dict[str, Any]] = {
    "dot": {  # its limit counts raw steps, no-ops included
        "ends_by": {"truncated"},
        "env_steps": 252,
        "random_starts": True,
        "earliest_cut": 243,
    },
    "Acrobot-v1": {"ends_by": {"truncated"}, "env_steps": 30, "random_starts": True},
    "CartPole-v1": {"ends_by": {"terminated", "truncated"}, "env_steps": 80, "random_starts": True},
    "MountainCar-v0": {"ends_by": {"truncated"}, "env_steps": 30, "random_starts": True},
    "MountainCarContinuous-v0": {"ends_by": {"truncated"}, "env_steps": 30, "random_starts": True},
    "Pendulum-v1": {"ends_by": {"truncated"}, "env_steps": 30, "random_starts": True},
    "probe:1": {"ends_by": {"terminated"}, "env_steps": 8, "random_starts": False},
    "probe:2": {"ends_by": {"terminated"}, "env_steps": 8, "random_starts": True},
    "probe:3": {"ends_by": {"terminated"}, "env_steps": 8, "random_starts": False},
    "probe:4": {"ends_by": {"terminated"}, "env_steps": 8, "random_starts": False},
    "probe:5": {"ends_by": {"terminated"}, "env_steps": 8, "random_starts": True},
    "probe:truncation": {"ends_by": {"truncated"}, "env_steps": 25, "random_starts": False},
    "probe:continuous": {"ends_by": {"terminated"}, "env_steps": 8, "random_starts": False},
}


@pytest.mark.parametrize("env_id", NATIVE)
def test_keeps_the_interface(env_id: str) -> None:
    args = {} if env_id == "dot" or env_id.startswith("probe:") else LIMITED
    env = make_native(env_id, args)
    assert env is not None
    assert env.spec.id == env_id
    check_native_env(env, **CASES[env_id])


class _BothFlags(CartPole):
    def step(self, state: Any, action: Any, key: Any) -> Any:
        step = super().step(state, action, key)
        return step._replace(truncated=step.truncated | step.terminated)


class _LateLimit(EndlessReward):
    def step(self, state: Any, action: Any, key: Any) -> Any:
        step = super().step(state, action, key)
        return step._replace(truncated=step.state.env_steps > self.max_episode_steps)


class _EarlyLimit(EndlessReward):
    def step(self, state: Any, action: Any, key: Any) -> Any:
        step = super().step(state, action, key)
        return step._replace(truncated=step.state.env_steps >= self.max_episode_steps - 1)


class _NoLimit(EndlessReward):
    def step(self, state: Any, action: Any, key: Any) -> Any:
        step = super().step(state, action, key)
        return step._replace(truncated=jnp.zeros_like(step.truncated))


class _WholeReward(EndlessReward):
    def step(self, state: Any, action: Any, key: Any) -> Any:
        step = super().step(state, action, key)
        return step._replace(reward=jnp.ones((), jnp.int32))


class _OutOfBounds(EndlessReward):
    def observe(self, state: Any) -> Any:
        return state.shown[None] + 1.5


class _WiderObs(EndlessReward):
    def observe(self, state: Any) -> Any:
        return jnp.stack([state.shown, state.shown])


@dataclass(frozen=True, eq=True)
class _Unhashable(EndlessReward):
    __hash__ = None  # pyright: ignore[reportAssignmentType]


class _MixesRows(EndlessReward):
    """Averages over the batch: what vmap makes easy to do and single rows show."""

    def step(self, state: Any, action: Any, key: Any) -> Any:
        step = super().step(state, action, key)
        return step._replace(reward=step.reward * jax.random.uniform(key))


@pytest.mark.parametrize(
    "broken",
    [
        _BothFlags,
        _EarlyLimit,
        _LateLimit,
        _NoLimit,
        _WholeReward,
        _OutOfBounds,
        _WiderObs,
        _Unhashable,
        _MixesRows,
    ],
)
def test_the_suite_notices(broken: type) -> None:
    case = CASES["CartPole-v1"] if broken is _BothFlags else CASES["probe:truncation"]
    with pytest.raises((AssertionError, TypeError)):
        check_native_env(broken(), **case)


@pytest.mark.parametrize(
    ("wrong", "value"), [("ends_by", {"terminated"}), ("env_steps", 5), ("random_starts", True)]
)
def test_an_untested_clause_fails(wrong: str, value: Any) -> None:
    with pytest.raises(AssertionError):
        check_native_env(EndlessReward(), **(CASES["probe:truncation"] | {wrong: value}))
