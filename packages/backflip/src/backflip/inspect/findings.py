"""From numbers to sentences: what about an environment is fine, what would hinder learning."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from backflip.core.spec import Box, Discrete, EnvSpec
from backflip.inspect.env_checks import HELD
from backflip.inspect.report import Report, per_channel

FAR_Z = 10.0  # standard deviations: further away is an outlier
UNIT = (0.05, 20.0)  # standard deviations of an observation that networks learn from as it is
SPARSE = 0.01  # share of informative rewards below which exploring is the problem
LARGE_REWARD, SMALL_REWARD = 20.0, 1e-3
SHORT_SIGHTED = 0.1  # of an episode: a horizon shorter than this misses most of it
MOST_NAMED = 8

Kind = Literal["fine", "note", "hinders"]


class Finding(NamedTuple):
    """One sentence, and whether it is about something that hinders learning."""

    kind: Kind
    text: str


def findings(report: Report) -> list[Finding]:
    """Return what is to be said of an environment, what hinders learning first."""
    parts = (
        _repeatable,
        _seeds,
        _actions,
        _rewards,
        _returns,
        _episodes,
        _horizon,
        _observed,
        _beyond_bounds,
        _box,
    )
    order: list[Kind] = ["hinders", "note", "fine"]
    found = [finding for part in parts for finding in part(report)]
    return sorted(found, key=lambda finding: order.index(finding.kind))


def verdict(found: list[Finding]) -> str:
    """Return the findings as one paragraph."""
    hindering = [finding.text for finding in found if finding.kind == "hinders"]
    if not hindering:
        return f"Nothing found that would hinder learning. {_joined(found, 'note')}".strip()
    count = "One thing" if len(hindering) == 1 else f"{len(hindering)} things"
    return f"{count} would hinder learning. {' '.join(hindering)}"


def _joined(found: list[Finding], kind: Kind) -> str:
    return " ".join(finding.text for finding in found if finding.kind == kind)


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
            "Two of it, made alike and reset with one seed, do not do the same: something random "
            "is drawn where it is made. Draw everything random from what `reset(seed=...)` seeds.",
        )
        return
    where = "at the reset" if at == 0 else f"from env step {at} on"
    yield Finding(
        "hinders",
        f"The same seed and actions do not give the same: they differ {where}. No run can be "
        "repeated; draw everything random from what `reset(seed=...)` seeds.",
    )


def _seeds(report: Report) -> Iterator[Finding]:
    rows, starts, histories = report.repeatability[2:]
    if histories == rows:
        yield Finding("fine", f"{rows} seeds give {rows} different episodes.")
    elif histories == 1:
        yield Finding(
            "note",
            "Every seed gives the same episode under the same actions: fine if the task has no "
            "randomness; else the seed given to `reset` is not used.",
        )
    else:
        yield Finding(
            "note",
            f"{rows} seeds give {histories} different episodes under the same actions, from "
            f"{starts} different starts.",
        )


def _actions(report: Report) -> Iterator[Finding]:
    audit = report.actions
    if not audit.comparable:
        yield Finding("note", "Whether actions matter cannot be told: rows of one seed differ.")
        return
    if isinstance(report.spec.action, Discrete) and report.spec.action.n == 1:
        yield Finding("note", "There is one action only: nothing can be chosen.")
        return
    idle = [choice.name for choice in audit.choices if choice.after is None]
    twins = [f"{one.name} as {one.same_as}" for one in audit.choices if one.same_as]
    if len(idle) == len(audit.choices):
        yield Finding(
            "hinders",
            f"No action changed anything within {HELD} env steps of {audit.trials} moments: if it "
            "is so everywhere, nothing can be learnt.",
        )
    elif idle:
        text = f"Without any effect in {audit.trials} trials: {_some(idle)}. Leave them out."
        yield Finding("hinders", text)
    elif twins:
        yield Finding("note", f"The same came of {_some(twins)}, in {audit.trials} trials.")
    elif not audit.left_out:
        yield Finding("fine", "Every action changes what follows.")
    if audit.left_out:
        some = f"the first {len(audit.choices)} alone were tried, {audit.left_out} were not"
        yield Finding("note", f"Of what can be done {some}.")
    differ = report.informative > 0 and len(idle) < len(audit.choices)
    if audit.reward_after is None and differ:
        yield Finding(
            "note",
            f"No reward depended on the action within {HELD} env steps: credit is delayed, or the "
            "reward is not for what is done.",
        )


def _rewards(report: Report) -> Iterator[Finding]:
    rewards, informative = report.play.rewards, report.informative
    largest = float(np.abs(rewards).max())
    if informative == 0 and report.commonest_reward == 0:
        yield Finding("hinders", "No random episode met any reward: shape it, or explore longer.")
    elif informative == 0:
        common = report.commonest_reward
        text = f"Every env step pays {common:g}: only an episode's length tells good from bad."
        yield Finding("note", text)
    elif informative < SPARSE:
        yield Finding(
            "hinders",
            f"Only {informative:.2%} of env steps pay anything but {report.commonest_reward:g}: a "
            "random policy hardly ever learns what is good. Shape the reward, or explore longer.",
        )
    else:
        yield Finding(
            "fine", f"Rewards differ from the commonest at {informative:.0%} of env steps."
        )
    if largest > LARGE_REWARD or 0 < largest < SMALL_REWARD:
        yield Finding(
            "hinders",
            f"Rewards reach {largest:.3g} in size: losses follow their square. ObservationStats them "
            "(--set normalize_rewards=true of ppo).",
        )


def _returns(report: Report) -> Iterator[Finding]:
    returns, action = report.play.returns, report.spec.action
    choosable = not isinstance(action, Discrete) or action.n > 1
    if choosable and len(returns) > 1 and returns.std() == 0 and returns[0] != 0:
        yield Finding(
            "hinders",
            f"All {len(returns)} random episodes return {returns[0]:g}: by chance nothing better "
            "is ever found. Explore longer, or shape the reward.",
        )


def _episodes(report: Report) -> Iterator[Finding]:
    play, limit = report.play, report.spec.max_episode_steps
    stopped = float((~play.terminated & ~play.truncated).mean())
    if stopped:
        yield Finding(
            "hinders",
            f"{stopped:.0%} of episodes did not end within {int(play.lengths.max()):,} env steps: "
            "give the environment a time limit.",
        )
    truncated = float(play.truncated.mean())
    if truncated and report.spec.terminates:
        yield Finding(
            "note",
            f"{truncated:.0%} of random episodes are cut by {_limit(limit)}: what would have "
            "followed has to be bootstrapped, as the algorithms here do.",
        )


def _limit(env_steps: int | None) -> str:
    return "a time limit of their own" if env_steps is None else f"the time limit of {env_steps}"


def _horizon(report: Report) -> Iterator[Finding]:
    length, horizon = float(report.play.lengths.mean()), report.horizon
    seen = f"γ = {report.discount:g} looks {horizon:.4g} env steps ahead"
    seen += f" ({horizon * report.step_seconds:.3g} s)" if report.step_seconds else ""
    if horizon < SHORT_SIGHTED * length:
        text = f"{seen}, an episode lasts {length:.0f}: raise γ if what is good comes late."
        yield Finding("note", text)
    elif np.isinf(horizon) and not report.spec.terminates:
        text = "γ = 1 and no state ends the task: values have no bound. Take γ below 1."
        yield Finding("hinders", text)
    else:
        yield Finding("fine", f"{seen}; an episode lasts {length:.0f}.")


def _observed(report: Report) -> Iterator[Finding]:
    scale = report.play.scale
    if report.spec.is_pixels:
        still = float(scale.constant.mean())
        whole = per_channel(scale, report.spec.observation.shape[-1])
        kind: Kind = "hinders" if still == 1.0 else "fine"
        text = f"Pixels lie between {whole.low.min():g} and {whole.high.max():g}; "
        yield Finding(kind, f"{text}{still:.0%} of them never change.")
        return
    constant = np.flatnonzero(scale.constant)
    changing = ~scale.constant
    away = np.maximum(np.abs(scale.mean), scale.std)
    small = (scale.std < UNIT[0]) & ~scale.binary  # a flag that is rarely set is no small number
    far = np.flatnonzero(changing & (small | (away > UNIT[1])))
    outliers = np.flatnonzero(scale.largest_z > FAR_Z)
    if len(constant):
        kind = "hinders" if len(constant) == len(scale.mean) else "note"
        yield Finding(kind, f"Observed numbers that never change: {_some(constant)}.")
    if len(far):
        yield Finding(
            "hinders",
            f"Observed numbers far from unit scale: {_some(far)}. {_normalising(report.spec)}",
        )
    if len(outliers):
        text = f"Observed numbers with values over {FAR_Z:g} standard deviations off: "
        yield Finding("note", f"{text}{_some(outliers)}.")
    if not len(constant) and not len(far):
        yield Finding("fine", "Every observed number varies, on a scale near 1.")


def _normalising(spec: EnvSpec) -> str:
    """Return how observations are normalised; the algorithms' entries decide who does it."""
    if isinstance(spec.action, Discrete):
        return "Normalise them: --set normalize_obs=true (ppo, a2c, vpg)."
    return "Normalise them: ppo, a2c and vpg do, unless --set normalize_obs=false."


def _beyond_bounds(report: Report) -> Iterator[Finding]:
    box, scale = report.spec.observation, report.play.scale
    lowest, highest = box.low.reshape(-1), box.high.reshape(-1)
    slack = 1e-5 * np.maximum(1.0, np.abs(np.where(np.isfinite(highest), highest, 0.0)))
    beyond = (scale.low < lowest - slack) | (scale.high > highest + slack)
    if beyond.any():
        yield Finding(
            "note",
            "Observed numbers beyond the bounds that the observation space declares: "
            f"{_some(np.flatnonzero(beyond))}.",
        )


def _box(report: Report) -> Iterator[Finding]:
    action = report.spec.action
    if not isinstance(action, Box):
        return
    if not (np.isfinite(action.low).all() and np.isfinite(action.high).all()):
        yield Finding("hinders", "Actions have no bounds: wrap the environment to bound them.")
    elif not ((action.low == -1).all() and (action.high == 1).all()):
        low, high = float(action.low.min()), float(action.high.max())
        text = f"Actions go from {low:g} to {high:g}, not from -1 to 1: policies here start near 0 "
        yield Finding("note", f"{text}with a spread of 1.")


def _some(names: "np.ndarray | list[str]") -> str:
    shown = ", ".join(str(name) for name in names[:MOST_NAMED])
    rest = len(names) - MOST_NAMED
    return f"{shown} and {rest} more" if rest > 0 else shown
