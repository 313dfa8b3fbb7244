"""Algorithms check their own advantages and targets, and see what is wrong with them."""

from functools import partial
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packages.backflip.tests.algorithms.batches import (
    CONTINUOUS,
    DISCRETE,
    KEY,
    PIXELS,
    make_batch,
    start,
)
from packages.backflip.tests.algorithms.minibatches import LOPSIDED, drawn

from backflip.algorithms import ppo as module
from backflip.algorithms.entries.ppo import PPOConfig
from backflip.algorithms.parts.identities import ROWS_BETWEEN, rollout_identities, rows_to_check
from backflip.algorithms.parts.invalid_rows import blank_invalid
from backflip.algorithms.parts.rollout_rows import prepare
from backflip.algorithms.parts.stochastic_policy import Actor, module_ratios
from backflip.algorithms.registry import entry_of
from backflip.core.spec import EnvSpec
from backflip.core.types import Transition
from backflip.networks.actor_critic import actor_critic

SMALL = PPOConfig(
    num_envs=4, rollout_length=8, hidden=(8,), epochs=1, minibatches=1, normalize_obs=False
)


def errors(spec: EnvSpec, estimate: Any = module.estimate, updates: int = 0) -> list[float]:
    """The errors of advantages and of targets in a batch with ends and reset rows."""
    algorithm = module.ppo(SMALL, spec)
    state = start(algorithm)
    batch = blank_invalid(make_batch(algorithm, spec, state))
    actor = Actor(spec, actor_critic(spec, SMALL.hidden, SMALL.network), False)
    rows = prepare(actor, state, batch, partial(estimate, SMALL))
    found = rollout_identities(
        actor,
        state,
        state.params,
        batch,
        rows,
        updates=jnp.asarray(updates),
        discount=SMALL.discount,
        gae_lambda=SMALL.gae_lambda,
    )
    return [float(found[name]) for name in ("advantage_error_max", "target_error_max")]


@pytest.mark.medium
@pytest.mark.parametrize(
    "spec",
    [
        DISCRETE,
        pytest.param(CONTINUOUS, marks=pytest.mark.slow),
        pytest.param(PIXELS, marks=pytest.mark.slow),
    ],
    ids=lambda spec: spec.id,
)
def test_there_is_no_error(spec: EnvSpec) -> None:
    assert max(errors(spec)) < 1e-5


@pytest.mark.medium
def test_the_successor_of_a_truncated_step_is_not_the_next_row() -> None:
    def through_limits(config: Any, *stream: Any) -> Any:
        return module.estimate(config, *stream[:4], jnp.zeros_like(stream[4]))

    def no_bootstrap(config: Any, *stream: Any) -> Any:
        return module.estimate(config, *stream[:3], stream[3] | stream[4], stream[4])

    for broken in (through_limits, no_bootstrap):
        assert min(errors(DISCRETE, broken)) > 5e-3


@pytest.mark.medium
def test_only_one_of_some_rollouts_is_looked_at() -> None:
    every = ROWS_BETWEEN // (SMALL.num_envs * SMALL.rollout_length)
    assert np.isnan(errors(DISCRETE, updates=1)).all()
    assert max(errors(DISCRETE, updates=every)) < 1e-5


@pytest.mark.medium
@pytest.mark.parametrize(
    ("updates", "rows", "looked_at"), [(128, 128, 64), (8, 32, 2), (1, 32, 1), (4, 256, 10)]
)
def test_one_of_a_hundred_rows_is_looked_at(updates: int, rows: int, looked_at: int) -> None:
    x = jnp.zeros((updates, rows))
    batch = Transition(x, x, x, x > 0, x > 0, x, x == 0, ())
    assert rows_to_check(batch).reward.shape == (looked_at,)


@pytest.mark.medium
def test_each_module_moves_alone() -> None:
    algorithm = module.ppo(SMALL, CONTINUOUS)
    before = start(algorithm).params
    actor = Actor(CONTINUOUS, actor_critic(CONTINUOUS, SMALL.hidden, SMALL.network), False)

    def moved(policy: float, value: float) -> dict[str, float]:
        after = {
            "body": jax.tree.map(
                lambda x: jnp.stack([x[0] * policy, x[1] * value]), before["body"]
            ),  # one torso of each
            "policy": jax.tree.map(lambda x: x * policy, before["policy"]),
            "log_std": before["log_std"] * policy,
            "value": jax.tree.map(lambda x: x * value, before["value"]),
        }
        return {name: float(x) for name, x in module_ratios(actor, before, after).items()}

    assert moved(1.0, 1.1) == pytest.approx(
        {"policy_update_ratio": 0.0, "value_update_ratio": 0.1}, 1e-5
    )
    assert moved(0.8, 1.0) == pytest.approx(
        {"policy_update_ratio": 0.2, "value_update_ratio": 0.0}, 1e-5
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("dqn", DISCRETE),
        pytest.param("ddpg", LOPSIDED, marks=pytest.mark.slow),
        pytest.param("td3", LOPSIDED, marks=pytest.mark.slow),
        pytest.param("sac", LOPSIDED, marks=pytest.mark.slow),
        pytest.param("sac", DISCRETE, marks=pytest.mark.slow),
    ],
    ids=["dqn", "ddpg", "td3", "sac", "discrete_sac"],
)
def test_an_update_sees_a_wrong_mask_of_ends(
    name: str, spec: EnvSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert target_error_of(name, spec) < 1e-5
    discrete = name == "sac" and spec is DISCRETE
    of = import_module(f"backflip.algorithms.{'discrete_sac' if discrete else name}")
    original = of.bellman_target

    def without_mask(reward: Any, discount: Any, terminated: Any, value: Any) -> Any:
        return original(reward, discount, jnp.zeros_like(terminated), value)

    monkeypatch.setattr(of, "bellman_target", without_mask)
    assert target_error_of(name, spec) > 1e-2


def target_error_of(name: str, spec: EnvSpec) -> float:
    config = entry_of(name).config(
        num_envs=4, rollout_length=8, batch_size=256, updates_per_step=0.125, hidden=(8,)
    )
    algorithm = entry_of(name).build(config, spec)
    state = start(algorithm)
    _, metrics = jax.jit(algorithm.update)(state, drawn(spec, 4, 256), KEY)
    return float(metrics["target_error_max"])
