"""Tests of `backflip.training.health`: non-finite numbers are refused by name."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.core.errors import EnvironmentFailed
from backflip.drivers.driver import Learner
from backflip.drivers.thinning import ALWAYS_FINITE, thin
from backflip.training.health import health_of, refuse_nonfinite
from runshelf.errors import UserFacingError
from runshelf.store.run import Run, create_run

OF_ENV, LOWER = "environment `x` failed at", ", expected a finite number; try a lower learning rate"
BELOW = " or too large, expected a finite number of at most 1e+15"
# (metric, the reward is the environment's own, error, how it begins, what it says of the number)
REFUSED = [
    ("obs_abs_mean", True, EnvironmentFailed, OF_ENV, f"an observation is nan{BELOW}"),
    ("obs_abs_mean", False, EnvironmentFailed, OF_ENV, f"an observation is nan{BELOW}"),
    ("reward_mean", True, EnvironmentFailed, OF_ENV, f"a reward is nan{BELOW}"),
    (
        "reward_mean",
        False,
        UserFacingError,
        "the reward model failed at",
        "a reward is nan, expected a finite number",
    ),
    ("value_loss", True, UserFacingError, "learning failed at", f"the value loss is nan{LOWER}"),
    (
        "grad_norm",
        True,
        UserFacingError,
        "learning failed at",
        f"the gradient's norm is nan{LOWER}",
    ),
    ("update_ratio", True, UserFacingError, "learning failed at", f"the update is nan{LOWER}"),
]


def refuse(
    run: Run,
    metrics: dict[str, np.ndarray],
    *,
    weight: float = 1.0,
    learnt: Any = None,
    learns_own_reward: bool = True,
    checked: bool = False,
) -> None:
    """Check the metrics of six updates, two for each record, and the parameters after them."""
    nothing, key = jnp.zeros(1), jax.random.key_data(jax.random.key(0))
    learner = Learner(learnt or {"w": np.full(2, weight)}, (), nothing, nothing, key)
    refuse_nonfinite(
        run, metrics, learner, [2, 4, 6], learns_own_reward=learns_own_reward, checked=checked
    )


@pytest.fixture
def run(tmp_path: Path) -> Run:
    about: dict[str, Any] = {"command": "train", "env": "x", "algorithm": "ppo", "argv": []}
    with create_run(tmp_path, config={}, seeds=[4, 5], **about) as writer:
        return writer.run


@pytest.mark.parametrize(("name", "own", "kind", "who", "what"), REFUSED)
def test_one_nan_among_many_updates_is_refused(
    run: Run, name: str, own: bool, kind: type, who: str, what: str
) -> None:
    """It is in the second seed, in the fourth of six updates, with two updates for each record."""
    values = np.ones((2, 6))
    values[1, 3] = np.nan
    with pytest.raises(kind) as caught:
        refuse(run, thin({name: values}, 2), learns_own_reward=own)
    assert str(caught.value) == f"{who} seed 5, update 4: {what}"
    assert type(caught.value) is kind


def test_all_finite_metrics_are_covered() -> None:
    assert {*ALWAYS_FINITE} == {name for name, *_ in REFUSED}


def test_a_non_finite_parameter_is_refused_by_name(run: Run) -> None:
    fine = {"value_loss": np.ones((2, 3))}
    refuse(run, fine)
    with pytest.raises(
        UserFacingError, match="by update 6: `w` is not finite; try a lower learning"
    ):
        refuse(run, fine, weight=np.inf)


TOO_LARGE = "too large to add up and to square in 32 bits: divide them"
# Metrics of an environment outside JAX that overflowed, and the message.
OVERFLOWED = [
    (
        {"reward_mean": np.inf, "reward_min": 3e38, "reward_max": 3e38},
        f"the mean reward is inf, .*; rewards, as large as 3e\\+38, are finite, but {TOO_LARGE}",
    ),
    ({"reward_mean": np.nan}, f"the mean reward is nan, .*; rewards are finite, but {TOO_LARGE}"),
    (
        {"obs_abs_mean": np.inf, "reward_min": 0.0, "reward_max": 3e38},
        f"the mean observation is inf, .*; observations are finite, but {TOO_LARGE}",
    ),
    (
        {"value_loss": np.inf, "reward_min": -1e30, "reward_max": 1.0},
        f"the value loss is inf, .*; rewards, as large as 1e\\+30, are finite, but {TOO_LARGE}",
    ),
    (
        {"value_loss": np.inf, "obs_abs_mean": 2e20},
        f"the value loss is inf, .*; observations, as large as 2e\\+20, are .* {TOO_LARGE}",
    ),
    (
        {"grad_norm": np.nan, "reward_min": -1e15, "reward_max": np.inf, "obs_abs_mean": 9.0},
        "the gradient's norm is nan, expected a finite number; try a lower learning rate$",
    ),
]


@pytest.mark.parametrize(("last", "says"), OVERFLOWED)
def test_overflow_is_not_blamed_on_a_checked_environment(
    run: Run, last: dict[str, float], says: str
) -> None:
    metrics = {name: np.array([[1.0, 1.0, 1.0], [1.0, 1.0, x]]) for name, x in last.items()}
    with pytest.raises(
        UserFacingError, match=f"^learning failed at seed 5, update 6: {says}"
    ) as caught:
        refuse(run, metrics, checked=True)
    assert type(caught.value) is UserFacingError


def test_unused_true_rewards_may_be_large(run: Run) -> None:
    metrics = {"value_loss": np.full((2, 3), np.inf), "reward_max": np.full((2, 3), 1e30)}
    with pytest.raises(UserFacingError, match=r"try a lower learning rate$"):
        refuse(run, metrics, learns_own_reward=False)


@pytest.mark.parametrize(
    ("part", "what"), [("return_statistics", "rewards"), ("obs_statistics", "observations")]
)
def test_overflowing_statistics_name_their_quantity(run: Run, part: str, what: str) -> None:
    fine, learnt = {"value_loss": np.ones((2, 3))}, {part: {"std": np.full(2, np.inf)}}
    said = f"`{part}.std` is not finite; {what} are finite, but {TOO_LARGE}"
    with pytest.raises(UserFacingError, match=said):
        refuse(run, fine, learnt=learnt)


def test_health_is_the_newest_finite_value() -> None:
    metrics = {
        "entropy": np.array([[3.0, 2.0], [1.0, np.nan]]),
        "entropy_max": np.array([[4.0, 4.0], [4.0, 4.0]]),
        "approx_kl": np.full((2, 2), np.nan),
        "loss": np.ones((2, 2)),
    }
    assert health_of(metrics) == {"entropy": 1.5, "entropy_max": 4.0}
