"""Every native environment conforms to the interface, and the suite fails for broken ones."""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import pytest
from packages.backflip.tests.conformance.native_env import check_native_env

from backflip.envs.ids import NATIVE
from backflip.envs.native.cartpole import CartPole
from backflip.envs.native.probes import EndlessReward
from backflip.envs.registry import make_native

LIMITED = {"max_episode_steps": 12}
ENDS_EITHER_WAY = {"ends_by": {"terminated", "truncated"}, "env_steps": 80, "random_starts": True}
CUT = {"ends_by": {"truncated"}, "env_steps": 30, "random_starts": True}
CASES: dict[str, dict[str, Any]] = {
    "dot": {  # its limit counts raw steps, no-ops included
        "ends_by": {"truncated"},
        "env_steps": 252,
        "random_starts": True,
        "earliest_cut": 243,
    },
    "Acrobot-v1": {"ends_by": {"truncated"}, "env_steps": 30, "random_starts": True},
    "CartPole-v1": {"ends_by": {"terminated", "truncated"}, "env_steps": 80, "random_starts": True},
    "FrozenLake-v1": ENDS_EITHER_WAY | {"random_starts": False},
    "FrozenLake8x8-v1": ENDS_EITHER_WAY | {"random_starts": False},
    "MinAtar/Asterix-v0": CUT | {"random_starts": False},
    "MinAtar/Asterix-v1": CUT | {"random_starts": False},
    "MinAtar/Breakout-v0": ENDS_EITHER_WAY,
    "MinAtar/Breakout-v1": ENDS_EITHER_WAY,
    "MinAtar/Freeway-v0": CUT,
    "MinAtar/Freeway-v1": CUT,
    "MinAtar/Seaquest-v0": ENDS_EITHER_WAY | {"random_starts": False},
    "MinAtar/Seaquest-v1": ENDS_EITHER_WAY | {"random_starts": False},
    "MinAtar/SpaceInvaders-v0": CUT | {"random_starts": False},
    "MinAtar/SpaceInvaders-v1": CUT | {"random_starts": False},
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
    "probe:idle": {"ends_by": {"terminated"}, "env_steps": 8, "random_starts": False},
    "probe:row": {"ends_by": {"terminated"}, "env_steps": 12, "random_starts": True},
    "probe:scale": {"ends_by": {"terminated"}, "env_steps": 8, "random_starts": True},
    "probe:bound": {"ends_by": {"terminated"}, "env_steps": 8, "random_starts": False},
    "probe:zero": {"ends_by": {"terminated"}, "env_steps": 8, "random_starts": False},
    "probe:memory": {"ends_by": {"terminated"}, "env_steps": 12, "random_starts": True},
    "probe:distractor": {"ends_by": {"terminated"}, "env_steps": 8, "random_starts": True},
    "probe:action": {"ends_by": {"truncated"}, "env_steps": 45, "random_starts": False},
}


# Of each kind of environment one: games take seconds to compile, and probes are alike.
QUICK = (
    *("CartPole-v1", "FrozenLake-v1", "MinAtar/Breakout-v1", "Pendulum-v1", "dot"),
    *("probe:2", "probe:truncation"),
)


def marks(env_id: str) -> Any:
    return pytest.mark.medium if env_id in QUICK else pytest.mark.slow


EACH = [pytest.param(i, marks=marks(i)) for i in NATIVE]


@pytest.mark.parametrize("env_id", EACH)
def test_conforms_to_the_interface(env_id: str) -> None:
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


class _Impure(EndlessReward):
    """Increases the reward with every trace, so that results depend on other calls."""

    traced: ClassVar[list[bool]] = []

    def step(self, state: Any, action: Any, key: Any) -> Any:
        step = super().step(state, action, key)
        self.traced.append(True)
        return step._replace(reward=step.reward * len(self.traced))


@pytest.mark.medium
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
        _Impure,
    ],
)
def test_suite_fails_for_broken_environments(broken: type) -> None:
    case = CASES["CartPole-v1"] if broken is _BothFlags else CASES["probe:truncation"]
    with pytest.raises((AssertionError, TypeError)):
        check_native_env(broken(), **case)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("wrong", "value"), [("ends_by", {"terminated"}), ("env_steps", 5), ("random_starts", True)]
)
def test_untested_clause_fails(wrong: str, value: Any) -> None:
    with pytest.raises(AssertionError):
        check_native_env(EndlessReward(), **(CASES["probe:truncation"] | {wrong: value}))
