"""Runs the probes on algorithms of other libraries, behind an adapter."""

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

import gymnasium
import numpy as np

from backflip.core.user_code import find_object
from backflip.doctor.probing.as_gymnasium import AsGymnasium
from backflip.doctor.probing.exits import exits_raise
from backflip.doctor.probing.learner import MakeLearner
from backflip.doctor.probing.outcome import SEEDS, OnProgress, Outcome, not_asked, outcome_of
from backflip.doctor.probing.probes import Probe, probes_for, probes_of_kinds, selected
from backflip.doctor.probing.ticking import ticking
from backflip.doctor.probing.verdicts import judged
from runshelf.errors import UsageError, UserFacingError, shown

_KINDS = {True: "choices as actions", False: "numbers as actions"}
ENV_STEPS = 6_000  # on each probe


def probe_other(
    factory: str,
    env_steps: int = ENV_STEPS,
    on_progress: OnProgress | None = None,
    only: Sequence[str] = (),
) -> list[Outcome]:
    """Return what an algorithm of another library does on each probe.

    Args:
        factory: `module:name` of a `MakeLearner`. It may refuse one kind of actions with any
            exception: the probes of that kind are not asked, and the exception is told.
        env_steps: to learn for, on each probe.
        on_progress: receives what is done, and the share of probes that are done.
        only: the ids of the probes to use; all if empty.

    Raises:
        UsageError: there is no such name or probe, it accepts neither kind of actions, or its
            learner lacks something.
        UserFacingError: the learner fails, or returns something else than a number.
    """
    make: MakeLearner = find_object(factory)
    refusals = _refusals(make, factory)
    kinds = probes_of_kinds(discrete=True not in refusals, continuous=False not in refusals)
    chosen = selected(kinds, only)
    outcomes = list[Outcome]()
    for number, probe in enumerate(chosen):
        with ticking(on_progress, probe.id, number / len(chosen)):
            outcomes.append(_outcome(make, factory, probe, env_steps))
    return judged(outcomes) + ([] if only else _refused(refusals))


def _refused(refusals: Mapping[bool, str]) -> list[Outcome]:
    """Return the probes of actions that the factory refuses, as not asked."""
    return [
        not_asked(probe, f"the factory refuses {_KINDS[discrete]}: {reason}")
        for discrete, reason in refusals.items()
        for probe in probes_for(discrete=discrete, values=False)
    ]


def _outcome(make: MakeLearner, factory: str, probe: Probe, env_steps: int) -> Outcome:
    start = time.monotonic()
    asked = [_asked(make, factory, seed, probe, env_steps) for seed in SEEDS]
    values = [one.values for one in asked if one.values is not None]
    actions = np.asarray([one.actions for one in asked], np.float64)
    found = outcome_of(probe, values, actions, asked[0].discount, time.monotonic() - start)
    return found._replace(has_env_steps=any(one.env_steps for one in asked))


def _refusals(make: MakeLearner, factory: str) -> dict[bool, str]:
    """Return why choices (True) or numbers (False) are refused; neither if it accepts both.

    Raises:
        UsageError: it refuses both.
    """
    found = dict[bool, str]()
    for discrete in (True, False):
        try:
            with exits_raise():
                make(AsGymnasium(probes_for(discrete=discrete)[0].env), 0)
        except (Exception, SystemExit) as error:  # noqa: BLE001  (it may refuse spaces with any)
            found[discrete] = f"{type(error).__name__}: {error}"
    if len(set(found.values())) == 2:
        both = "; ".join(f"with {_KINDS[kind]}, {reason}" for kind, reason in found.items())
        raise UsageError(f"`{factory}` makes no learner for a probe: {both}")
    if len(found) == 2:
        raise UsageError(f"`{factory}` makes no learner for a probe: {found[True]}")
    return found


@final
class _Asked(NamedTuple):
    """What a learner says after learning: values, if it has any, actions, and its discount.

    `env_steps` counts those of learning.
    """

    values: list[float] | None
    actions: list[float]
    discount: float
    env_steps: int


def _asked(make: MakeLearner, factory: str, seed: int, probe: Probe, env_steps: int) -> _Asked:
    # Also a learner that ends the process: it would end the probes with its own status.
    try:
        with exits_raise():
            return _learned(make, factory, seed, probe, env_steps)
    except UserFacingError:
        raise
    except (Exception, SystemExit) as error:
        raise UserFacingError(
            f"the learner failed on {probe.id} ({type(error).__name__}: {error})"
        ) from error


def _learned(make: MakeLearner, factory: str, seed: int, probe: Probe, env_steps: int) -> _Asked:
    env = AsGymnasium(probe.env)
    learner = make(env, seed)
    discount = _checked(learner, factory)
    learner.learn(env_steps)
    shown = [np.asarray(obs, np.float32) for obs in probe.shown]
    value = getattr(learner, "value", None)
    values = None if value is None else [_one(value(obs), "value") for obs in shown]
    actions = [_action(learner.act(obs), env.action_space) for obs in shown]
    return _Asked(values, actions, discount, env.env_steps)


def _checked(learner: Any, factory: str) -> float:
    """Return the discount of a learner.

    Raises:
        UsageError: the learner lacks something, or its discount is not possible.
    """
    of = f"the learner of `{factory}`"
    for name, what in (("learn", "learn(env_steps)"), ("act", "act(obs)"), ("value", "value(obs)")):
        if not callable(getattr(learner, name, None)) and (
            name != "value" or hasattr(learner, name)
        ):
            raise UsageError(f"{of} must have a method `{what}`, got {_kind(learner, name)}")
    discount = _discount_of(learner)
    if not 0 <= discount < 1:
        raise UsageError(
            f"{of} must have a `discount`, a number of at least 0 and below 1: its γ; "
            f"got {_kind(learner, 'discount')}"
        )
    return discount


def _discount_of(learner: Any) -> float:
    try:
        return float(learner.discount)
    except (AttributeError, TypeError, ValueError):
        return math.nan


def _kind(learner: Any, name: str) -> str:
    if learner is None:
        return "None in place of a learner"
    return shown(getattr(learner, name)) if hasattr(learner, name) else "none"


def _action(found: Any, space: gymnasium.Space[Any]) -> float:
    """Return what the learner does, as a number, clipped to the bounds as the environment does.

    Raises:
        UserFacingError: it is not one number, or no action of the environment.
    """
    action = _one(found, "act")
    is_choice = isinstance(space, gymnasium.spaces.Discrete) and math.isfinite(action)
    if is_choice and not (action.is_integer() and space.contains(int(action))):
        raise UserFacingError(
            f"`act(obs)` of the learner must return an action of {space}, got {action:g}"
        )
    if isinstance(space, gymnasium.spaces.Box) and math.isfinite(action):
        return float(np.clip(action, space.low.item(), space.high.item()))
    return action


def _one(found: Any, method: str) -> float:
    """Return what a method of the learner gave for one observation, as a number.

    Raises:
        UserFacingError: it is not a number, or more than one.
    """
    try:
        # Arrays of any library have `item`, and NumPy cannot read some, as those with gradients.
        return float((found if hasattr(found, "item") else np.asarray(found, object)).item())
    except (TypeError, ValueError, RuntimeError) as error:
        shape = tuple(getattr(found, "shape", ()))
        what = f"an array of shape {shape}" if shape else shown(found)
        raise UserFacingError(
            f"`{method}(obs)` of the learner must return one number for one observation, got {what}"
        ) from error
