"""A diagnosis as text and as JSON."""

import math
import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from backflip.doctor.calibration import kinds_in_words
from backflip.doctor.catalogue import CHECKS
from backflip.doctor.causes import CAUSES
from backflip.doctor.check import LOGARITHM
from backflip.doctor.diagnosis import Diagnosis, Measured, run_check, signal_of
from backflip.doctor.log import Log
from backflip.doctor.next_experiment import command_of, time_of
from backflip.doctor.reading.from_settings import HOW
from backflip.doctor.reading.suggesting import closest
from backflip.doctor.signals import SIGNALS
from runshelf.charts.sparkline import sparkline
from runshelf.formatting import number, plural
from runshelf.terminal_text import harmless

BARS = 40
MOST_CAUSES = 3
MOST_NAMES = 8
MOST_UNKNOWN = 20
_ASKED = (
    "learning_rate",
    "discount",
    "gae_lambda",
    "num_envs",
    "rollout_length",
    "epochs",
    "minibatches",
    "entropy_coef",
    "value_coef",
    "clip_range",
    "batch_size",
    "buffer_size",
    "learning_starts",
    "train_frequency",
    "gradient_steps",
    "policy_delay",
    "target_update_interval",
    "tau",
    "epsilon_start",
    "epsilon_end",
    "exploration_fraction",
    "normalize_obs",
    "normalize_rewards",
    "actions",
)


def all_in_words(diagnoses: Sequence[Diagnosis]) -> str:
    """Return diagnoses as text: a line for each if there are several, then the worst in full."""
    if len(diagnoses) == 1:
        return in_words(diagnoses[0])
    found = sum(bool(one.findings) for one in diagnoses)
    lines = [f"{len(diagnoses)} training runs, {found} with findings"]
    lines += [f"  {harmless(one.log.name)}: {one.verdict}" for one in diagnoses]
    worst = max(diagnoses, key=lambda one: (len(one.findings), len(one.warnings)))
    return "\n\n".join(["\n".join(lines), in_words(worst)])


def in_words(diagnosis: Diagnosis) -> str:
    """Return a diagnosis as text."""
    parts = [_facts(diagnosis.log), diagnosis.verdict]
    parts += [f"note: {harmless(note)}" for note in diagnosis.log.notes]
    parts += [_finding(diagnosis.log, one, "finding") for one in diagnosis.findings]
    parts += [_finding(diagnosis.log, one, "warning") for one in diagnosis.warnings]
    parts += [_finding(diagnosis.log, one, "remark") for one in diagnosis.remarks]
    parts += [part for part in (_causes(diagnosis), _fine(diagnosis), _open(diagnosis)) if part]
    return "\n\n".join(parts)


def _setting(log: Log, name: str) -> str:
    """Return a setting in words; a float with the digits that 32 bits can hold."""
    value = log.settings[name]
    text = number(value) if isinstance(value, float) else str(value)
    return f"{name}={harmless(text)}{' (guessed)' if name in log.guessed else ''}"


def _facts(log: Log) -> str:
    """Return what a maintainer asks first."""
    settings = ", ".join(_setting(log, name) for name in _ASKED if name in log.settings)
    library = "an unknown library" if log.library == "unknown" else log.library
    of = f"{log.algorithm or 'unknown algorithm'} on {log.env or 'an unknown environment'}"
    lines = [
        f"{harmless(log.name)}: {harmless(of)}, log of {library}",
        f"  {'env steps' if log.is_over_env_steps else 'steps    '}      {_env_steps(log)}",
        f"  settings       {settings or 'not in the log'}",
        f"  reward scale   {_reward(log)}",
        f"  normalisation  {_normalisation(log)}",
    ]
    return "\n".join(lines)


def _env_steps(log: Log) -> str:
    if not log.signals:
        return "unknown: no logged name has a meaning here"
    if not log.is_over_env_steps:
        return f"{number(log.end)} {log.counts}, judged as a training run that has ended"
    if math.isinf(log.planned):
        return f"{number(log.end)} so far: training goes on, and its planned ones are unknown"
    if log.planned > 0:
        return f"{number(log.end)} of {number(log.planned)}"
    return (
        f"{number(log.end)}, judged as a training run that has ended (if not: --about env_steps=N, "
        "the planned ones)"
    )


def _reward(log: Log) -> str:
    if not log.has("reward_min", "reward_max"):
        return "not logged" + (
            f"; returns from {_range(log)}" if log.has("episode_return_mean") else ""
        )
    least = float(np.fmin.reduce(log.signals["reward_min"].y))
    most = float(np.fmax.reduce(log.signals["reward_max"].y))
    returns = f"; returns from {_range(log)}" if log.has("episode_return_mean") else ""
    return f"rewards from {number(least)} to {number(most)}{returns}"


def _range(log: Log) -> str:
    known = log.signals["episode_return_mean"].y
    known = known[np.isfinite(known)]
    if not len(known):
        return "no episode"
    return f"{number(float(known.min()))} to {number(float(known.max()))}"


def _normalisation(log: Log) -> str:
    said = {
        what: log.settings[name]
        for what, name in (("observations", "normalize_obs"), ("rewards", "normalize_rewards"))
        if name in log.settings
    }
    return ", ".join(f"{what} {'yes' if on else 'no'}" for what, on in said.items()) or "not logged"


def _finding(log: Log, one: Measured, kind: str) -> str:
    check = one.check
    sign = ">" if check.bad_side == "above" else "<"
    step = "env step" if log.is_over_env_steps else "step"
    where = f"from {step} {number(one.since)} on ({one.since / max(log.budget, 1):.0%})"
    lines = [
        f"{kind} {check.id}: {check.title}",
        f"  seen    {check.shown(one.value)} {sign} {check.shown(one.limit)}, {where}",
        f"          {check.quantity.removeprefix(LOGARITHM)}",
        f"  curve   {_curve(log, one)}",
        f"  means   {check.explanation}",
        f"  limit   {_limit_from(log, one)}",
        f"  source  {check.source}",
    ]
    how = [log.signals[name].how for name in check.needs if log.signals[name].how]
    return "\n".join([*lines, *(f"  logged  {text}" for text in dict.fromkeys(how))])


def _curve(log: Log, one: Measured) -> str:
    """Return the curve of what was measured; if that is one number, of a signal that it needs."""
    running = run_check(one.check, log)
    if running is None:
        return ""
    known = running.value[np.isfinite(running.value)]
    signal = signal_of(log, one.check)
    if known.min() == known.max() and signal is not None:
        y = signal.y[np.isfinite(signal.y)]
        low, high = float(y.min()), float(y.max())
        of = f"of {harmless(signal.logged_as)}, as logged"
        return f"{sparkline(y, low, high, BARS)}  {number(low)} to {number(high)} {of}"
    low, high = float(known.min()), float(known.max())
    shown = (one.check.shown(low), one.check.shown(high))
    return f"{sparkline(known, low, high, BARS)}  {shown[0]} to {shown[1]}"


def _limit_from(log: Log, one: Measured) -> str:
    if one.check.limit_from == "identity":
        return "an identity: a correct program cannot be beyond it"
    if one.check.limit_from == "setting":
        return "a setting beyond all that are known to learn"
    if one.check.limit_from == "convention":
        return "a convention of the literature"
    return f"beyond all healthy runs of {kinds_in_words(one.check, log)}, with a margin"


def _causes(diagnosis: Diagnosis) -> str:
    if not diagnosis.causes:
        return ""
    is_wrong = bool(diagnosis.findings or diagnosis.warnings)
    lines = [f"{'causes' if is_wrong else 'if something is wrong'}, the most probable first"]
    for place, (cause, probability) in enumerate(diagnosis.causes[:MOST_CAUSES], 1):
        lines.append(f"  {place}. {probability:4.0%}  {cause.text}")
        lines.append(f"           {cause.fix}")
    lines += _expected(diagnosis.log)
    first = diagnosis.causes[0].cause
    step = first.experiment
    lines += [
        "next experiment",
        f"  {step.change}",
        f"  if it is this: {step.if_cause}",
        f"  if not: {step.if_not}",
    ]
    if command := command_of(diagnosis):
        lines += [f"  {command}{time_of(diagnosis)}"]
    return "\n".join(lines)


def _expected(log: Log) -> list[str]:
    """Return which causes the premortem gave a probability before any check."""
    named = [f"{id} {share:.0%}" for id, share in log.expected.items()]
    return [f"  prior of your premortem: {', '.join(named)}"] if named else []


def _fine(diagnosis: Diagnosis) -> str:
    """Return what is fine: what was measured apart from what only the settings say."""
    as_set = [one for one in diagnosis.fine if _is_as_set(diagnosis.log, one)]
    measured = [one for one in diagnosis.fine if one not in as_set]
    parts = (("measured", measured), ("set; the program may do otherwise", as_set))
    return "\n".join(_ids(f"fine as {how}", some) for how, some in parts if some)


def _ids(what: str, some: Sequence[Measured]) -> str:
    ids = ", ".join(one.check.id for one in some)
    return f"{what} ({plural(len(some), 'check')}): {ids}"


def _is_as_set(log: Log, one: Measured) -> bool:
    """Return whether a check has read settings only, or signals that were computed from them."""
    needs = one.check.needs
    computed = any(log.signals[name].how == HOW for name in needs)
    return computed or (not needs and one.check.limit_from == "setting")


def _open(diagnosis: Diagnosis) -> str:
    lines = [*_unknown(diagnosis.log.unknown), *_missing(diagnosis)]
    others = [one for one in diagnosis.unchecked if not one.missing]
    for why in dict.fromkeys(one.why for one in others):
        ids = ", ".join(one.check.id for one in others if one.why == why)
        lines.append(f"not checked, {why}: {ids}")
    return "\n".join(lines)


def _missing(diagnosis: Diagnosis) -> list[str]:
    """Return lines about signals that are not logged; those that most checks need come first."""
    wanted = Counter(name for one in diagnosis.unchecked for name in one.missing)
    if not wanted:
        return []
    lines = ["not logged, and needed for more checks (in brackets: how to log it)"]
    if diagnosis.log.library == "sb3":
        lines.append("  DoctorCallback of backflip.doctor.sb3 logs what the algorithm computes")
    for name, _ in wanted.most_common(MOST_NAMES):
        lines.append(f"  {name}: {SIGNALS[name].text} ({SIGNALS[name].how})")
    more = len(wanted) - MOST_NAMES
    return [*lines, f"  and {more} more: backflip doctor --list shows all"] if more > 0 else lines


def _unknown(names: Sequence[str]) -> list[str]:
    """Return lines about the names without a meaning, and what they may be."""
    if not names:
        return []
    near = [*closest(names).items()][:MOST_NAMES]
    rest = len(names) - MOST_UNKNOWN
    more = f", and {rest} more (--json has all)" if rest > 0 else ""
    return [
        f"names without a meaning here: {harmless(', '.join(names[:MOST_UNKNOWN]))}{more}",
        *(
            f"  perhaps --map {shlex.quote(f'{harmless(theirs)}={ours}')} ({SIGNALS[ours].text})"
            for theirs, ours in near
        ),
    ]


def to_json(diagnoses: Sequence[Diagnosis]) -> dict[str, Any]:
    """Return diagnoses as a JSON document."""
    return {"diagnoses": [_json(one) for one in diagnoses]}


def _json(one: Diagnosis) -> dict[str, Any]:
    return {
        "name": one.log.name,
        "library": one.log.library,
        "algorithm": one.log.algorithm,
        "env": one.log.env,
        "seed": one.log.seed,
        "env_steps": one.log.end if one.log.is_over_env_steps else None,
        "verdict": one.verdict,
        "findings": [_measured(found) for found in one.findings],
        "warnings": [_measured(found) for found in one.warnings],
        "remarks": [_measured(found) for found in one.remarks],
        "fine": [found.check.id for found in one.fine],
        "fine_as_set": [found.check.id for found in one.fine if _is_as_set(one.log, found)],
        "unchecked": [
            {"check": left.check.id, "missing": list(left.missing), "why": left.why}
            for left in one.unchecked
        ],
        "causes": [
            {"cause": cause.id, "probability": probability, "text": cause.text, "fix": cause.fix}
            for cause, probability in one.causes
        ],
        "premortem": dict(one.log.expected),
        "next": command_of(one),
        "notes": list(one.log.notes),
        "unknown_names": list(one.log.unknown),
        "suggested": closest(one.log.unknown),
    }


def _measured(one: Measured) -> dict[str, Any]:
    return {
        "check": one.check.id,
        "title": one.check.title,
        "value": one.value if math.isfinite(one.value) else None,
        "limit": one.limit,
        "side": one.check.bad_side,
        "since_env_steps": one.since,
        "means": one.check.explanation,
        "source": one.check.source,
    }


def listed() -> str:
    """Return one line for each check, each cause, and each signal."""
    checks = [f"{check.id:18} {check.title}" for check in CHECKS]
    causes = [f"{cause.id:24} {cause.text}" for cause in CAUSES]
    signals = [f"{name:32} {meaning.text}" for name, meaning in SIGNALS.items()]
    return "\n".join([*checks, "", *causes, "", *signals])


def listed_json() -> dict[str, Any]:
    """Return the checks, causes and signals as a JSON document."""
    return {
        "checks": {check.id: check.title for check in CHECKS},
        "causes": {cause.id: cause.text for cause in CAUSES},
        "signals": {name: meaning.text for name, meaning in SIGNALS.items()},
    }
