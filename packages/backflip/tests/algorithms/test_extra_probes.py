"""Every algorithm on the probes that look for one fault each, and broken as each is to show."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
from packages.backflip.tests.algorithms.probing import Probe, error, native

from backflip.algorithms import a2c, cem, discrete_sac, dqn, ppo, vpg
from backflip.algorithms.interface import Algorithm
from backflip.algorithms.parts.action_scale import ActionScale, action_scale
from backflip.core.spec import EnvSpec
from backflip.core.types import Transition
from backflip.envs.native import extra_probes as probes
from backflip.envs.native.probes import IgnoredNumber, ProbeState

from . import test_a2c, test_cem, test_continuous, test_discrete_sac, test_dqn, test_ppo, test_vpg

Broken = Callable[[Algorithm], Algorithm]


class Subject(NamedTuple):
    """An algorithm, its module, settings for probes, and a negated policy loss."""

    build: Callable[[Any, EnvSpec], Algorithm]
    module: Any
    config: Any
    flipped: tuple[str, Any] = ("", None)


def continuous(name: str) -> Subject:
    subject = test_continuous.ALL[name]
    settings = test_continuous.SMALL | test_continuous.PROBE
    cold = test_continuous.COLD if name == "sac" else {}
    flipped = ("actor_loss", test_continuous.downhill(name))
    return Subject(subject.build, subject.module, subject.config(**settings, **cold), flipped)


ALL = {
    "ppo": Subject(ppo.ppo, ppo, test_ppo.PROBE, ("clipped_surrogate", test_ppo.advantage_flipped)),
    "a2c": Subject(a2c.a2c, a2c, test_a2c.SLOW, ("policy_gradient", test_a2c.flipped)),
    "vpg": Subject(vpg.vpg, vpg, test_vpg.PROBE, ("policy_gradient", test_vpg.flipped)),
    "dqn": Subject(dqn.dqn, dqn, replace(test_dqn.PROBE, env_steps=4_096)),
    "discrete sac": Subject(
        discrete_sac.discrete_sac,
        discrete_sac,
        test_discrete_sac.PROBE,
        ("actor_loss", test_discrete_sac.downhill),
    ),
    "cem": Subject(cem.cem, cem, test_cem.PROBE, ("refit", test_cem.worst_chosen)),
    "ddpg": continuous("ddpg"),
    "td3": continuous("td3"),
    "sac": continuous("sac"),
}
ON_POLICY, CHOICES, NUMBERS = ("ppo", "a2c", "vpg"), ("dqn", "discrete sac"), ("ddpg", "td3", "sac")

# The probes, and what is right


def shows(env: Any, kind: Callable[..., Any], *states: tuple[Any, ...]) -> list[np.ndarray]:
    """The observations of states of a kind."""
    return [np.asarray(env.observe(kind(*map(jnp.asarray, state)))) for state in states]


def paid_by_row(env: Any) -> Probe:
    """γ^(i - t) in step t of an episode of kind i; 0 when the step that pays is over."""
    states = [(i, t) for i in range(probes.ROWS) for t in range(probes.ROWS)]
    shown = shows(probes.OneRowReward(), probes.RowState, *states)
    values = [0.9 ** (i - t) if t <= i else 0.0 for i, t in states]
    return Probe(env, shown, values=values, tolerance=0.08)


def far_from_zero() -> Probe:
    env = probes.FarFromZero()
    shown = shows(env, ProbeState, (-1.0, 0), (1.0, 0))
    return Probe(env, shown, values=[1.0, 1.0], actions=[0, 1])


def remembered() -> Probe:
    """Values of the first step, whose action has no effect, and of the third, which pays."""
    env, steps = probes.RememberedReward(stack=3), (0, probes.RECALLED)
    shown = shows(env, probes.MemoryState, *[(coin, t) for t in steps for coin in (-1.0, 1.0)])
    return Probe(env, shown, values=[0.81, 0.81, 1, 1], actions=[np.nan, np.nan, 0, 1])


def forgotten() -> Probe:
    """Values of the steps that do not show the coin: any policy gets 1 as often as -1."""
    env = probes.RememberedReward()
    shown = shows(env, probes.MemoryState, (1.0, 1), (1.0, probes.RECALLED))
    return Probe(env, shown, values=[0, 0], tolerance=0.2)


def distracted() -> Probe:
    """Values with eight noise inputs next to each coin."""
    env = probes.Distracted()
    noises = np.random.default_rng(0).uniform(-1, 1, (8, probes.NOISE)).astype(np.float32)
    states = [(coin, noise, 0) for coin in (-1.0, 1.0) for noise in noises]
    shown = shows(env, probes.DistractedState, *states)
    return Probe(env, shown, [1.0] * 16, [0] * 8 + [1] * 8, tolerance=0.2)


PROBES = {
    "row": paid_by_row(probes.OneRowReward()),
    "row and a number": paid_by_row(IgnoredNumber(probes.OneRowReward())),
    "scale": far_from_zero(),
    "memory": remembered(),
    "forgotten": forgotten(),
    "distractor": distracted(),
    "action": Probe(probes.ActionReward(), [0.0], values=[10.0], actions=[1]),
    "bound": Probe(probes.BestAtBound(), [0.0], actions=[1.0]),
    "zero": Probe(probes.BestAtZero(), [0.0], actions=[0.0]),
}
SETTINGS: dict[tuple[str, str], dict[str, Any]] = {
    **{(name, "scale"): {"normalize_obs": True} for name in ON_POLICY},
    ("a2c", "row"): {"env_steps": 40 * 1_500, "learning_rate": 2e-2},
    ("a2c", "distractor"): {"env_steps": 40 * 1_500, "learning_rate": 2e-2},
    ("a2c", "forgotten"): {"env_steps": 160 * 600, "num_envs": 32},
    ("ppo", "forgotten"): {"env_steps": 2_048 * 20, "num_envs": 32, "rollout_length": 64},
    ("vpg", "forgotten"): {"env_steps": 2_048 * 30, "num_envs": 32, "rollout_length": 64},
    ("sac", "bound"): {
        "target_entropy_per_dimension": -3.0
    },  # -1 nat keeps actions .1 away from it
    ("cem", "memory"): {"env_steps": 60 * 20 * 24, "rollout_length": 24, "episodes": 8},
    ("cem", "distractor"): {"env_steps": 60 * 20 * 16, "rollout_length": 16, "episodes": 16},
}
LEARNED = [
    *[(name, "row") for name in (*ON_POLICY, *CHOICES)],
    *[(name, "row and a number") for name in NUMBERS],
    *[(name, "scale") for name in ON_POLICY],
    *[(name, "memory") for name in (*ON_POLICY, *CHOICES, "cem")],
    *[(name, "forgotten") for name in (*ON_POLICY, *CHOICES)],
    *[(name, "distractor") for name in (*ON_POLICY, *CHOICES, "cem")],
    *[(name, "action") for name in (*ON_POLICY, *CHOICES, "cem")],
    *[(name, "bound") for name in (*ON_POLICY, "cem", *NUMBERS)],
    *[(name, "zero") for name in (*ON_POLICY, "cem", *NUMBERS)],
]
ids = [f"{name}-{probe}" for name, probe in LEARNED]


def miss(name: str, probe: str, broken: Any = None, **settings: Any) -> float:
    """The error of the worst seed, of the algorithm or of a variant of it."""
    subject, there = ALL[name], PROBES[probe]
    if name == "cem":
        there = replace(there, values=None)
    config = replace(subject.config, **(SETTINGS.get((name, probe), {}) | settings))
    algorithm = subject.build(config, there.env.spec)
    if broken is not None:
        algorithm = broken(algorithm)
    return error(native(there, algorithm), there, config.updates)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "probe"), LEARNED, ids=ids)
def test_probe_is_learned_on_every_seed(name: str, probe: str) -> None:
    assert miss(name, probe) < PROBES[probe].tolerance


# Broken variants, which miss them


def learning_from(change: Callable[[Transition], Transition]) -> Broken:
    """An algorithm that learns from changed batches."""

    def broken(algorithm: Algorithm) -> Algorithm:
        def update(state: Any, batch: Transition, key: Any) -> Any:
            return algorithm.update(state, change(batch), key)

        return algorithm._replace(update=update)

    return broken


@learning_from
def rewards_of_the_neighbour(batch: Transition) -> Transition:
    return batch._replace(reward=jnp.roll(batch.reward, 1, axis=1))


@learning_from
def observations_of_the_neighbour(batch: Transition) -> Transition:
    return batch._replace(obs=jnp.roll(batch.obs, 1, axis=1))


@learning_from
def actions_of_the_neighbour(batch: Transition) -> Transition:
    return batch._replace(action=jnp.roll(batch.action, 1, axis=1))


@learning_from
def rewards_a_step_late(batch: Transition) -> Transition:
    return batch._replace(reward=jnp.roll(batch.reward, 1, axis=0))


@learning_from
def only_what_went_well(batch: Transition) -> Transition:
    return batch._replace(valid=batch.valid & (batch.reward >= 0))


@learning_from
def actions_before_the_shift(batch: Transition) -> Transition:
    return batch._replace(action=batch.action - 0.5)


def actions_shifted(algorithm: Algorithm) -> Algorithm:
    """The environment gets ½ more than the action that was chosen and stored."""

    def act(*arguments: Any) -> tuple[Any, Any]:
        action, extra = algorithm.act(*arguments)
        return action + 0.5, extra

    return actions_before_the_shift(algorithm)._replace(act=act)


def half_the_range(algorithm: str, spec: EnvSpec) -> ActionScale:
    scale = action_scale(algorithm, spec)
    return scale._replace(half=scale.half / 2)


BROKEN: dict[Any, Broken] = {
    "row": rewards_of_the_neighbour,
    "row and a number": rewards_of_the_neighbour,
    "memory": observations_of_the_neighbour,
    "forgotten": only_what_went_well,
    "distractor": observations_of_the_neighbour,
    "zero": actions_shifted,
    ("dqn", "action"): actions_of_the_neighbour,
    ("cem", "memory"): rewards_of_the_neighbour,
    ("cem", "distractor"): rewards_of_the_neighbour,
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "probe"), LEARNED, ids=ids)
def test_probe_is_missed_by_a_broken_variant(
    monkeypatch: pytest.MonkeyPatch, name: str, probe: str
) -> None:
    subject, settings = ALL[name], {}
    broken: Any = BROKEN.get((name, probe), BROKEN.get(probe))
    if probe == "scale":
        settings = {"normalize_obs": False}
    elif probe == "bound" and name in NUMBERS:
        monkeypatch.setattr(subject.module, "action_scale", half_the_range)
    elif broken is None:
        monkeypatch.setattr(subject.module, *subject.flipped)
    assert miss(name, probe, broken, **settings) > 2 * PROBES[probe].tolerance


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_POLICY)
def test_rewards_one_step_late_are_detected(name: str) -> None:
    assert miss(name, "row", rewards_a_step_late) > 2 * PROBES["row"].tolerance
