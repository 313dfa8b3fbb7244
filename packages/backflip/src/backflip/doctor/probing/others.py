"""Runs the probes on algorithms of other libraries, behind an adapter."""

import time
from typing import Any

import numpy as np

from backflip.core.user_code import find_object
from backflip.doctor.probing.as_gymnasium import AsGymnasium
from backflip.doctor.probing.learner import Learner, MakeLearner
from backflip.doctor.probing.outcome import SEEDS, OnProgress, Outcome, outcome_of
from backflip.doctor.probing.probes import Probe, probes_for
from runshelf.errors import UsageError, UserFacingError

ENV_STEPS = 6_000  # on each probe


def probe_other(
    factory: str, env_steps: int = ENV_STEPS, on_progress: OnProgress | None = None
) -> list[Outcome]:
    """Return what an algorithm of another library does on each probe.

    Args:
        factory: `module:name` of a `MakeLearner`. Where it refuses the actions of a probe with any
            exception, the probes of the other kind of actions are used.
        env_steps: to learn for, on each probe.
        on_progress: receives what is done, and the share of probes that are done.

    Raises:
        UsageError: there is no such name, or it accepts neither kind of actions.
    """
    make: MakeLearner = find_object(factory)
    chosen = probes_for(discrete=_accepts_choices(make, factory))
    outcomes = list[Outcome]()
    for number, probe in enumerate(chosen):
        if on_progress is not None:
            on_progress(probe.id, number / len(chosen))
        start = time.monotonic()
        asked = [_asked(make(AsGymnasium(probe.env), seed), probe, env_steps) for seed in SEEDS]
        values = [one for one, _, _ in asked if one is not None]
        actions = np.asarray([found for _, found, _ in asked], np.float64)
        outcomes.append(
            outcome_of(probe, values or (), actions, asked[0][2], time.monotonic() - start)
        )
    return outcomes


def _accepts_choices(make: MakeLearner, factory: str) -> bool:
    for discrete in (True, False):
        try:
            make(AsGymnasium(probes_for(discrete=discrete)[0].env), 0)
        except Exception as error:  # noqa: BLE001  (a library may refuse spaces with any)
            reason = f"{type(error).__name__}: {error}"
        else:
            return discrete
    raise UsageError(f"`{factory}` makes no learner for a probe: {reason}")


def _asked(learner: Learner, probe: Probe, env_steps: int) -> tuple[Any, list[float], float]:
    """Return the values, if the learner has any, the actions, and its discount."""
    try:
        learner.learn(env_steps)
        shown = [np.asarray(obs, np.float32) for obs in probe.shown]
        value = getattr(learner, "value", None)
        values = [float(value(obs)) for obs in shown] if value is not None else None
        actions = [float(np.asarray(learner.act(obs)).reshape(-1)[0]) for obs in shown]
    except Exception as error:
        raise UserFacingError(
            f"the learner failed on {probe.id} ({type(error).__name__}: {error})"
        ) from error
    return values, actions, float(learner.discount)
