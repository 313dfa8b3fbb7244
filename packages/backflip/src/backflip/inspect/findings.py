"""Findings of `look`: sentences about what in an environment would hinder learning."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.inspect.env_checks import HELD
from backflip.inspect.report import Report, per_channel

FAR_Z = 10.0  # a value further from the mean, in standard deviations, is an outlier
UNIT = (0.05, 20.0)  # scales of observations that networks can use without normalisation
FAR_FROM_ONE = 10.0  # half ranges of actions beyond this factor of 1 hinder learning
SPARSE = 0.01  # rewards are sparse below this share of informative ones
LARGE_REWARD, SMALL_REWARD = 20.0, 1e-3
SHORT_SIGHTED = 0.1  # a horizon is short below this share of an episode
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
MOST_NAMED = 8  # a sentence lists at most this many names

Kind = Literal["fine", "note", "hinders"]


class Finding(NamedTuple):
    """One finding.

    Attributes:
        kind: what it means for learning.
        text: one or more sentences.
        check: its id. The doctor's checks of a training run that find the same have the same id.
    """

    kind: Kind
    text: str
    check: str = ""


def findings(report: Report) -> list[Finding]:
    """Return all findings about an environment, those that hinder learning first."""
    parts = {
        "ENV-DET": _repeatable,
        "ENV-SEEDS": _seeds,
        "ACT-EFFECT": _actions,
        "REW-CONST": _rewards,
        "REW-LARGE": _reward_scale,
        "ENV-EQUAL": _returns,
        "ENV-LEN": _episodes,
        "GAMMA-H": _horizon,
        "OBS-LARGE": _observed,
        "OBS-BOUNDS": _beyond_bounds,
        "OBS-WRAP": _overflows,
        "ACT-BOUNDS": _box,
    }
    order: list[Kind] = ["hinders", "note", "fine"]
    found = [
        finding if finding.check else finding._replace(check=check)
        for check, part in parts.items()
        for finding in part(report)
    ]
    return sorted(found, key=lambda finding: order.index(finding.kind))


def verdict(found: list[Finding]) -> str:
    """Return a summary of the findings as one paragraph."""
    hindering = [finding.text for finding in found if finding.kind == "hinders"]
    if not hindering:
        notes = [finding.text for finding in found if finding.kind == "note"]
        return " ".join(["Nothing found that would hinder learning.", *notes])
    count = "One problem" if len(hindering) == 1 else f"{len(hindering)} problems"
    return f"{count} would hinder learning. {' '.join(hindering)}"


def _repeatable(report: Report) -> Iterator[Finding]:
    at, env_steps = report.repeatability.first_difference, report.repeatability.env_steps
    if at is None and report.actions.comparable:
        yield Finding(
            "fine", f"The same seed and actions give the same bits over {env_steps} env steps."
        )
        return
    if at is None:
        yield Finding(
            "hinders",
            "Two instances reset with the same seed differ: the constructor draws random numbers. "
            "Draw all random numbers from the generator that `reset(seed=...)` seeds.",
        )
        return
    where = "at the reset" if at == 0 else f"from env step {at} on"
    yield Finding(
        "hinders",
        f"The same seed and actions give different results {where}, so no run can be repeated. "
        "Draw all random numbers from the generator that `reset(seed=...)` seeds.",
    )


def _seeds(report: Report) -> Iterator[Finding]:
    rows, starts, histories = report.repeatability[2:]
    if histories == rows:
        yield Finding("fine", f"{rows} seeds give {rows} different episodes.")
    elif histories == 1:
        yield Finding(
            "note",
            "Every seed gives the same episode under the same actions. If the task should be "
            "random, `reset` does not use its seed.",
        )
    else:
        yield Finding(
            "note",
            f"{rows} seeds give {histories} different episodes under the same actions, with "
            f"{starts} different first observations.",
        )


def _actions(report: Report) -> Iterator[Finding]:
    audit = report.actions
    if not audit.comparable:
        yield Finding("note", "The effect of actions is unknown: copies with one seed differ.")
        return
    if isinstance(report.spec.action, Discrete) and report.spec.action.n == 1:
        yield Finding("note", "There is only one action.")
        return
    idle = [choice.name for choice in audit.choices if choice.after is None]
    twins = [f"{one.name} like {one.same_as}" for one in audit.choices if one.same_as]
    if len(idle) == len(audit.choices):
        yield Finding(
            "hinders",
            f"No action had any effect within {HELD} env steps in {audit.trials} trials. If this "
            "holds in all states, nothing can be learned.",
        )
    elif idle:
        text = f"Actions without any effect in {audit.trials} trials: {_some(idle)}. Remove them."
        yield Finding("hinders", text)
    elif twins:
        text = f"Actions with equal effects in {audit.trials} trials: {_some(twins)}."
        yield Finding("note", text)
    elif not audit.left_out:
        yield Finding("fine", "Every action has an effect.")
    if audit.left_out:
        tried = f"Only the first {len(audit.choices)} actions or dimensions were tried"
        yield Finding("note", f"{tried}, {audit.left_out} were not.")
    differ = report.informative > 0 and len(idle) < len(audit.choices)
    if audit.reward_after is None and differ:
        yield Finding(
            "note",
            f"No reward depended on the action within {HELD} env steps: rewards are delayed, or "
            "independent of the actions.",
        )


def _rewards(report: Report) -> Iterator[Finding]:
    informative = report.informative
    if informative == 0 and report.commonest_reward == 0:
        text = "Every reward was 0 in the random episodes. Shape the reward, or explore longer."
        yield Finding("hinders", text)
    elif informative == 0:
        common = report.commonest_reward
        text = f"Every reward is {common:g}, so returns differ only by the length of the episode."
        yield Finding("note", text)
    elif informative < SPARSE:
        yield Finding(
            "hinders",
            f"Rewards are sparse: only {informative:.2%} differ from {report.commonest_reward:g} "
            "under a random policy. Shape the reward, or explore longer.",
        )
    else:
        yield Finding("fine", f"{informative:.0%} of rewards differ from the most frequent reward.")


def _reward_scale(report: Report) -> Iterator[Finding]:
    largest = float(np.abs(report.episodes.rewards).max())
    if largest > LARGE_REWARD or 0 < largest < SMALL_REWARD:
        yield Finding(
            "hinders",
            f"The largest reward is {largest:.3g} in magnitude, and losses grow with its square. "
            "Scale the rewards (ppo: --set normalize_rewards=true).",
            "REW-LARGE" if largest > LARGE_REWARD else "REW-SMALL",
        )


def _returns(report: Report) -> Iterator[Finding]:
    returns, action = report.episodes.returns, report.spec.action
    choosable = not isinstance(action, Discrete) or action.n > 1
    if choosable and len(returns) > 1 and returns.std() == 0 and returns[0] != 0:
        yield Finding(
            "hinders",
            f"All {len(returns)} random episodes return {returns[0]:g}: a random policy finds "
            "nothing better. Explore longer, or shape the reward.",
        )


def _episodes(report: Report) -> Iterator[Finding]:
    play, limit = report.episodes, report.spec.max_episode_steps
    stopped = float((~play.terminated & ~play.truncated).mean())
    if stopped:
        yield Finding(
            "hinders",
            f"{stopped:.0%} of episodes did not end within {int(play.lengths.max()):,} env steps. "
            "Give the environment a time limit.",
        )
    truncated = float(play.truncated.mean())
    if truncated and report.spec.terminates:
        yield Finding(
            "note",
            f"{truncated:.0%} of random episodes are truncated by {_limit(limit)}. The algorithms "
            "here bootstrap from the last state.",
        )


def _limit(env_steps: int | None) -> str:
    if env_steps is None:
        return "the environment's own time limit"
    return f"the time limit of {env_steps} env steps"


def _horizon(report: Report) -> Iterator[Finding]:
    length, horizon = float(report.episodes.lengths.mean()), report.horizon
    ahead = f"The horizon of γ = {report.discount:g} is {horizon:.4g} env steps"
    ahead += f" ({horizon * report.step_seconds:.3g} s)" if report.step_seconds else ""
    if horizon < SHORT_SIGHTED * length:
        text = f"{ahead}, but an episode has {length:.0f}: raise γ if important rewards come late."
        yield Finding("note", text)
    elif np.isinf(horizon) and not report.spec.terminates:
        text = "γ = 1 and no state ends the task: values are unbounded. Use γ below 1."
        yield Finding("hinders", text)
    else:
        yield Finding("fine", f"{ahead}; an episode has {length:.0f}.")


def _observed(report: Report) -> Iterator[Finding]:
    scale = report.episodes.obs_stats
    if report.spec.is_image:
        still = float(scale.constant.mean())
        whole = per_channel(scale, report.spec.observation.shape[-1])
        kind: Kind = "hinders" if still == 1.0 else "fine"
        text = f"Pixel values range from {whole.low.min():g} to {whole.high.max():g}; "
        yield Finding(kind, f"{text}{still:.0%} of the pixels never change.")
        return
    constant = np.flatnonzero(scale.constant)
    changing = ~scale.constant
    away = np.maximum(np.abs(scale.mean), scale.std)
    small = (scale.std < UNIT[0]) & ~scale.binary  # a rare flag has a small std, too
    far = np.flatnonzero(changing & (small | (away > UNIT[1])))
    outliers = np.flatnonzero(scale.largest_z > FAR_Z)
    if len(constant):
        kind = "hinders" if len(constant) == len(scale.mean) else "note"
        text = f"Observed numbers that never change: {_some(constant)}."
        yield Finding(kind, text, "OBS-CONST")
    if len(far):
        yield Finding(
            "hinders",
            f"Observed numbers far from unit scale: {_some(far)}. {_normalization(report.spec)}",
        )
    if len(outliers):
        text = f"Observed numbers with outliers over {FAR_Z:g} standard deviations: "
        yield Finding("note", f"{text}{_some(outliers)}.")
    if not len(constant) and not len(far):
        yield Finding("fine", "Every observed number varies, on a scale near 1.")


def _normalization(spec: EnvSpec) -> str:
    """Return how to normalise observations; must agree with the algorithms' default settings."""
    if isinstance(spec.action, Discrete):
        return "Normalise them: --set normalize_obs=true (ppo, a2c, vpg)."
    return "ppo, a2c and vpg normalise them unless --set normalize_obs=false."


def _beyond_bounds(report: Report) -> Iterator[Finding]:
    box, scale = report.spec.observation, report.episodes.obs_stats
    lowest, highest = box.low.reshape(-1), box.high.reshape(-1)
    slack = 1e-5 * np.maximum(1.0, np.abs(np.where(np.isfinite(highest), highest, 0.0)))
    beyond = (scale.low < lowest - slack) | (scale.high > highest + slack)
    if beyond.any():
        yield Finding(
            "note",
            "Observed numbers outside the bounds of the observation space: "
            f"{_some(np.flatnonzero(beyond))}.",
        )


def _overflows(report: Report) -> Iterator[Finding]:
    """Find jumps over more than half of an integer type: 127 + 1 is -128 in int8.

    A space of integers has the bounds of its type, unless it states others.
    """
    box, changes = report.spec.observation, report.episodes.largest_changes
    if report.spec.is_image:
        return
    low, high = (np.asarray(x, np.float64).reshape(-1) for x in (box.low, box.high))
    for name in INTEGERS:
        limits = np.iinfo(name)
        is_integer = np.isclose(low, limits.min) & np.isclose(high, limits.max)
        jumps = np.flatnonzero(is_integer & (changes > (limits.max - limits.min) / 2))
        if len(jumps):
            yield Finding(
                "note",
                f"Observed numbers that jump by more than half of the range of {name} in one env "
                f"step: {_some(jumps)}. If they overflow, give the observation a wider type.",
            )


def _box(report: Report) -> Iterator[Finding]:
    action = report.spec.action
    if not isinstance(action, Box):
        return
    if not (np.isfinite(action.low).all() and np.isfinite(action.high).all()):
        yield Finding("hinders", "Actions are unbounded: wrap the environment to bound them.")
    elif not ((action.low == -1).all() and (action.high == 1).all()):
        low, high = float(action.low.min()), float(action.high.max())
        text = f"Actions range from {low:g} to {high:g}, not from -1 to 1. Policies here start "
        text += "with a mean near 0 and a standard deviation of 1."
        half = (action.high.astype(float) - action.low) / 2
        if (half > FAR_FROM_ONE).any() or (half < 1 / FAR_FROM_ONE).any():
            wrap = " Wrap the environment: gymnasium.wrappers.RescaleAction(env, -1.0, 1.0)."
            yield Finding("hinders", text + wrap)
        else:
            yield Finding("note", text)


def _some(names: "np.ndarray | list[str]") -> str:
    shown = ", ".join(str(name) for name in names[:MOST_NAMED])
    rest = len(names) - MOST_NAMED
    return f"{shown} and {rest} more" if rest > 0 else shown
