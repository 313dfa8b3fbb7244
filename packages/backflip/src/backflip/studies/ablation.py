"""Ablation of a run: what each changed setting and each component is worth.

An element is a setting that differs from the default, whose off value is the default, or a
component that is on, whose off value switches it off. The study runs the run's own settings, each
element off, one at a time; and all elements off (the baseline), each element on, one at a time.
Different components may replace each other: then none is missed when it is off, but each helps when
it is on.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np
from jaxtyping import Float

from backflip.algorithms.entry import AlgorithmEntry
from backflip.algorithms.registry import entry_of
from backflip.core.spec import EnvSpec
from backflip.studies.setting_values import BUDGET, as_value, defaults_of, off_value, problem_of
from backflip.training.build import env_args_of, spec_of
from backflip.training.renamed_settings import current_names
from runshelf.errors import UsageError
from runshelf.statistics.failures import count_failures
from runshelf.statistics.intervals import mean_interval
from runshelf.store.run import Run
from runshelf.sweeps.ranking import Standing
from runshelf.sweeps.space import Value, as_text


@final
class Arm(NamedTuple):
    """One configuration of an ablation.

    Attributes:
        what: what it is, in words.
        values: the elements.
        against: the number of the configuration that it is compared with.
    """

    what: str
    values: Mapping[str, Value]
    against: int


@final
class Ablation(NamedTuple):
    """What an ablation runs.

    Attributes:
        arms: the configurations; the first is the run's own.
        fixed: the settings that are the same in all of them, but not the algorithm's defaults.
        skipped: why elements were left out, in sentences.
    """

    arms: tuple[Arm, ...]
    fixed: Mapping[str, Value]
    skipped: tuple[str, ...]


@final
class Change(NamedTuple):
    """The difference that an arm makes.

    Attributes:
        mean: mean over seeds of its score minus that of the configuration it is compared with.
        low: the lower end of the 95 % interval; NaN with fewer than two seeds.
        high: the upper end.
        seeds: the number of seeds that both have.
    """

    mean: float
    low: float
    high: float
    seeds: int


def ablation_of(run: Run) -> Ablation:
    """Return the ablation of a run of `train`.

    Raises:
        UsageError: the run is of another command, or has nothing to switch off.
    """
    if run.manifest["command"] != "train":
        raise UsageError(
            f"run `{run.short}` is a run of `{run.manifest['command']}`; ablate a run of `train`"
        )
    entry = entry_of(run.manifest["algorithm"])
    spec = spec_of(run.manifest["env"], env_args_of(run))
    own = _typed(entry, current_names(run.config["settings"]))
    off, skipped = _elements(entry, spec, own)
    if not off:
        raise UsageError(
            f"run `{run.short}` has the default settings and no component that can be switched off"
        )
    fixed = {name: as_value(own[name]) for name in BUDGET if name in own}
    return Ablation(tuple(_arms(own, off)), fixed, tuple(skipped))


def _typed(entry: AlgorithmEntry, settings: Mapping[str, Any]) -> dict[str, Any]:
    known = entry.settings
    return {name: known[name].typed(value) for name, value in settings.items() if name in known}


def _elements(
    entry: AlgorithmEntry, spec: EnvSpec, own: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return the off value of each element, and why others were left out."""
    defaults = defaults_of(entry, spec)
    changed = {name: defaults[name] for name in own if own[name] != defaults[name]}
    on = {name: off_value(name, own) for name in own if name not in changed}
    off = changed | {name: value for name, value in on.items() if value is not None}
    off = {name: value for name, value in off.items() if name not in BUDGET}
    skipped: list[str] = []
    for name, value in list(off.items()):
        if problem := problem_of(entry, spec, {**own, name: value}):
            skipped.append(f"`{name}` was left out, because it cannot be off alone: {problem}")
            del off[name]
    while off and (problem := problem_of(entry, spec, {**own, **off})):
        name, _ = off.popitem()
        skipped.append(f"`{name}` was left out, because not all can be off together: {problem}")
    return off, skipped


def _arms(own: Mapping[str, Any], off: Mapping[str, Any]) -> list[Arm]:
    full = {name: as_value(own[name]) for name in off}
    bare = {name: as_value(value) for name, value in off.items()}
    arms = [Arm("the run's settings", full, 0)]
    arms += [Arm(f"without {_pair(name, full)}", {**full, name: bare[name]}, 0) for name in off]
    if len(off) > 1:
        baseline = len(arms)
        arms.append(Arm("baseline: all of these off", bare, 0))
        arms += [
            Arm(f"baseline with {_pair(name, full)}", {**bare, name: full[name]}, baseline)
            for name in (off if len(off) > 2 else ())
        ]
    return arms


def _pair(name: str, values: Mapping[str, Value]) -> str:
    return as_text({name: values[name]})


def failure_value(standings: Sequence[Standing], *, higher_is_better: bool) -> float:
    """Return what a failed seed counts as: the worst score of all; NaN without failures or scores.

    Otherwise a component that makes seeds fail would be judged by those that it spares.
    """
    groups = [_scores(one, list(one.scores)) for one in standings]
    if not any(np.isfinite(group).any() for group in groups):
        return math.nan
    return count_failures(groups, higher_is_better=higher_is_better).value


def change_of(one: Standing, against: Standing, failed_as: float) -> Change:
    """Return mean and interval of the differences of two configurations on the same seeds.

    The interval is Student's, of the differences seed by seed.

    Args:
        one: the configuration.
        against: what it is compared with.
        failed_as: the score of a failed seed; NaN if none has a score.
    """
    both = [seed for seed in one.scores if seed in against.scores]
    scores = [_scores(side, both) for side in (one, against)]
    filled = [np.where(np.isfinite(of), of, failed_as) for of in scores]
    differences = filled[0] - filled[1]
    differences = differences[np.isfinite(differences)]  # all, unless no seed has a score
    if not len(differences):
        return Change(float("nan"), float("nan"), float("nan"), 0)
    found = mean_interval(differences[:, None])
    return Change(
        float(found.centre[0]), float(found.low[0]), float(found.high[0]), len(differences)
    )


def _scores(one: Standing, seeds: Sequence[int]) -> Float[np.ndarray, " seeds"]:
    return np.array([one.scores[seed] for seed in seeds], float)
