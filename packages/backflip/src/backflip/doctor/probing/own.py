"""Runs the probes on algorithms of ours."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from backflip.algorithms.entry import AlgorithmEntry
from backflip.algorithms.registry import entry_of
from backflip.core.spec import within
from backflip.doctor.probing.outcome import SEEDS, OnProgress, Outcome, outcome_of
from backflip.doctor.probing.probes import Probe, probes_of_kinds, selected
from backflip.doctor.probing.settings import SETTINGS
from backflip.doctor.probing.ticking import ticking
from backflip.doctor.probing.verdicts import judged
from backflip.drivers.native import NativeDriver
from backflip.training.algorithm_config import configure
from runshelf.errors import UsageError

WITHOUT_VALUES = ("cem",)
# Its losses for choices and for numbers are two modules; numbers are what it is mostly used for.
VALUES_WITH_NUMBERS = ("sac",)


def probe_own(
    algorithm: str,
    settings: Mapping[str, Any],
    on_progress: OnProgress | None = None,
    only: Sequence[str] = (),
) -> list[Outcome]:
    """Return what an algorithm of ours does on each of its probes.

    Args:
        algorithm: its name.
        settings: settings that replace those for probes.
        on_progress: receives what is done, and the share of probes that are done.
        only: the ids of the probes to use; all if empty.

    Raises:
        UsageError: there is no such algorithm, setting or probe, or the discount is 1.
    """
    entry = entry_of(algorithm)
    if settings.get("discount") == 1:
        raise UsageError(
            "probes need a `discount` below 1: with 1, `probe:truncation` has no value"
        )
    chosen, outcomes = selected(_probes_of(entry), only), list[Outcome]()
    for number, probe in enumerate(chosen):
        given = SETTINGS[algorithm] | SETTINGS.get(f"{algorithm} {probe.id}", {}) | dict(settings)
        with ticking(on_progress, probe.id, number / len(chosen)):
            outcomes.append(_outcome(entry, probe, given))
    return judged(outcomes)


def _outcome(entry: AlgorithmEntry, probe: Probe, settings: Mapping[str, Any]) -> Outcome:
    start = time.monotonic()
    values_of, actions = _learned(entry, probe, settings)
    discount = float(settings.get("discount", 0.9))
    return outcome_of(probe, values_of, actions, discount, time.monotonic() - start)


def _probes_of(entry: AlgorithmEntry) -> list[Probe]:
    """Return the probes for an algorithm: of values, then of the kinds of actions it supports."""
    return probes_of_kinds(
        discrete=entry.discrete,
        continuous=entry.continuous,
        values=entry.name not in WITHOUT_VALUES,
        values_with_numbers=entry.name in VALUES_WITH_NUMBERS,
    )


def _learned(entry: AlgorithmEntry, probe: Probe, settings: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return values (seeds, shown), or (), and actions (seeds, shown) after learning."""
    config = configure(entry, dict(settings))
    driver = NativeDriver(probe.env, entry.build(config, probe.env.spec))
    learners = driver.fill_replay(driver.start(list(SEEDS)))
    learners, _ = driver.phase(config.updates)(learners, np.zeros(len(SEEDS)))
    algorithm, obs = driver.algorithm, jnp.asarray(probe.shown, jnp.float32)

    def ask(state: Any) -> tuple[Any, Any]:
        found: Any = ()
        if probe.values is not None and algorithm.assess is not None:
            found = algorithm.assess(state, obs)["value"]
        return found, algorithm.evaluation_action(state, obs, jax.random.key(0))

    state = jax.tree.map(jnp.asarray, jax.tree.map(np.asarray, learners.algorithm))
    values, actions = jax.jit(jax.vmap(ask))(state)
    actions = within(driver.spec.action, np.asarray(actions))
    return values, actions.reshape(len(SEEDS), len(probe.shown))
