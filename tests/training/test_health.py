"""What is not a finite number is refused by name, whoever is to blame, thinned or not."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.algorithms.drivers.driver import Learner
from backflip.algorithms.drivers.thinning import ALWAYS_FINITE, thin
from backflip.archive.run import Run, create_run
from backflip.core.errors import BackflipError, EnvironmentFailed
from backflip.training.health import health_of, refuse_nonfinite

OF_ENV, LOWER = "environment `x` failed at", "; try a lower learning rate"
# (metric, the reward is the environment's own, error, how it begins, what it says of the number)
REFUSED = [
    ("obs_abs_mean", True, EnvironmentFailed, OF_ENV, "an observation is nan"),
    ("obs_abs_mean", False, EnvironmentFailed, OF_ENV, "an observation is nan"),
    ("reward_mean", True, EnvironmentFailed, OF_ENV, "a reward is nan"),
    ("reward_mean", False, BackflipError, "the reward model failed at", "a reward is nan"),
    ("value_loss", True, BackflipError, "learning failed at", "the value loss is nan"),
    ("grad_norm", True, BackflipError, "learning failed at", "the gradient's norm is nan"),
    ("update_ratio", True, BackflipError, "learning failed at", "the update is nan"),
]


def learner(weight: float) -> Learner:
    nothing, key = jnp.zeros(1), jax.random.key_data(jax.random.key(0))
    return Learner({"w": np.full(2, weight)}, (), nothing, nothing, key)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    about: dict[str, Any] = {"command": "train", "env": "x", "algorithm": "ppo", "argv": []}
    with create_run(tmp_path, config={}, seeds=[4, 5], **about) as writer:
        return writer.run


@pytest.mark.parametrize(("name", "own", "kind", "who", "what"), REFUSED)
def test_one_nan_among_many_updates_is_refused(
    run: Run, name: str, own: bool, kind: type, who: str, what: str
) -> None:
    """Of the second seed, in the fourth of six updates, two a record."""
    values = np.ones((2, 6))
    values[1, 3] = np.nan
    with pytest.raises(kind) as caught:
        refuse_nonfinite(run, thin({name: values}, 2), learner(1.0), [2, 4, 6], own)
    hint = LOWER if who.startswith("learning") else ""
    assert str(caught.value) == f"{who} seed 5, update 4: {what}, expected a finite number{hint}"
    assert type(caught.value) is kind


def test_all_that_is_always_finite_is_among_these() -> None:
    assert {*ALWAYS_FINITE} == {name for name, *_ in REFUSED}


def test_what_was_learnt_is_refused_by_its_name(run: Run) -> None:
    fine = {"value_loss": np.ones((2, 3))}
    refuse_nonfinite(run, fine, learner(1.0), [2, 4, 6], learns_own_reward=True)
    with pytest.raises(BackflipError, match="learning failed by update 6: `w` is not finite"):
        refuse_nonfinite(run, fine, learner(np.inf), [2, 4, 6], learns_own_reward=True)


def test_health_is_the_newest_known_value_by_hand() -> None:
    metrics = {
        "entropy": np.array([[3.0, 2.0], [1.0, np.nan]]),
        "entropy_max": np.array([[4.0, 4.0], [4.0, 4.0]]),
        "approx_kl": np.full((2, 2), np.nan),
        "loss": np.ones((2, 2)),
    }
    assert health_of(metrics) == {"entropy": 1.5, "entropy_max": 4.0}
