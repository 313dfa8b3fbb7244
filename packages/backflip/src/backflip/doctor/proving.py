"""Runs the experiments that a diagnosis proposes, and weighs the causes again.

For each of the most probable causes that a setting can change, the training run is repeated with
this one change and a part of the budget, beside an unchanged repetition. With P(c) from the
diagnosis,

    P(c | runs) ∝ P(c) Π_i (r if change i helped and is about c, or did neither, else 1 - r)

A change helps if the mean return rises by more than one standard deviation of the seeds (the larger
of before and after). r is `RIGHT`; it is `SURE` if the return rises by more than `CLEAR` standard
deviations, which hardly happens by chance.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from backflip.doctor.diagnosis import Diagnosis, Ranked
from backflip.doctor.next_experiment import as_text, part_of, settings_of
from backflip.doctor.probe_evidence import weigh_by_probes
from backflip.doctor.probing import report as probe_report
from backflip.doctor.probing.outcome import Outcome
from backflip.doctor.probing.own import probe_own
from backflip.doctor.probing.settings import SETTINGS
from backflip.training.build import env_args_of
from backflip.training.renamed_settings import current_names
from backflip.training.train import train
from runshelf.errors import UsageError
from runshelf.store.run import Run, RunInfo

CANDIDATES = 3
SEEDS = 3
TAGS = ("doctor",)
RIGHT = 0.85  # probability that a change helps if its cause is at work, and does not otherwise
SURE, CLEAR = 0.98, 3.0
OnProgress = Callable[[str, float], None]


@final
class Repeated(NamedTuple):
    """What repetitions of a training run returned.

    Attributes:
        returns: the final return of each seed.
        run: the id of the run, or of the first of several.
    """

    returns: tuple[float, ...]
    run: str


Repeat = Callable[[Mapping[str, Any], str], Repeated]  # a change, and the question that it answers
Probe = Callable[[OnProgress], list[Outcome]]


@final
class Trial(NamedTuple):
    """A repetition with one change.

    Attributes:
        cause: the id of the cause that it is about; empty for the unchanged repetition.
        change: the settings that differ.
        returns: the final return of each seed.
        run: the id of the run.
        gain: how far the mean return is above that of the unchanged repetition, in standard
            deviations of the seeds (the larger of both).
    """

    cause: str
    change: Mapping[str, Any]
    returns: tuple[float, ...]
    run: str
    gain: float

    @property
    def helped(self) -> bool:
        """Whether the mean return rises by more than the larger standard deviation."""
        return self.gain > 1.0


@final
class Proof(NamedTuple):
    """What the experiments showed.

    Attributes:
        outcomes: what the probes of the algorithm showed; empty if it was not probed.
        trials: the unchanged repetition, then one for each cause; empty if there is no such change.
        causes: all causes with their new probabilities, the most probable first.
    """

    outcomes: list[Outcome]
    trials: list[Trial]
    causes: list[Ranked]


def prove(
    diagnosis: Diagnosis,
    repeat: Repeat | None,
    can_change: Callable[[Mapping[str, Any]], bool] = bool,
    on_progress: OnProgress | None = None,
    probe: Probe | None = None,
) -> Proof:
    """Return what probes and short repetitions of a training run say about its causes.

    Args:
        diagnosis: the diagnosis of the training run.
        repeat: repeats it with a change; None if it cannot be repeated.
        can_change: whether the training run can be repeated with a change.
        on_progress: receives what is done, and the share of the experiments that are done.
        probe: tests the code of the algorithm on the probes; None if it cannot be probed.

    Raises:
        UsageError: no experiment is possible.
        UserFacingError: a repetition failed.
    """
    plans = _plans(diagnosis, can_change) if repeat is not None else []
    if not plans and probe is None:
        raise UsageError("no setting that can be changed changes a probable cause")
    probed, repeated = probe is not None, list[Repeated]()

    def say(number: int, what: str, share: float = 0.0) -> None:
        if on_progress is not None:
            on_progress(what, (number + share) / (len(plans) + probed))

    outcomes = [] if probe is None else probe(lambda what, share: say(0, what, share))
    for number, (cause, change) in enumerate(plans):
        say(number + probed, f"repeating {describe(change)}")
        question = f"is it {cause}? ({describe(change)})" if cause else "what does it do unchanged?"
        assert repeat is not None  # plans are made only if the training run can be repeated
        repeated.append(repeat(change, question))
    trials = [
        Trial(*plan, *one, gain_of(repeated[0].returns, one.returns))
        for plan, one in zip(plans, repeated, strict=True)
    ]
    causes = weigh_by_probes(diagnosis.causes, outcomes)
    return Proof(outcomes, trials, weigh(causes, trials[1:]))


def _plans(
    diagnosis: Diagnosis, can_change: Callable[[Mapping[str, Any]], bool]
) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the causes to test, each with its change, after "" without one; empty if none."""
    wanted = [
        (one.cause.id, settings_of(diagnosis.log, one.cause.experiment.settings))
        for one in diagnosis.causes
    ]
    chosen = [(cause, change) for cause, change in wanted if change and can_change(change)]
    return [("", dict[str, Any]()), *chosen[:CANDIDATES]] if chosen else []


def repetition_of(run: Run, home: Path) -> Repeat:
    """Return a function that repeats a run of ours, in runs of their own.

    Raises:
        UsageError: it is not a run of `train`.
    """
    if run.manifest["command"] != "train":
        kind = run.manifest["command"]
        raise UsageError(f"`--prove` repeats runs of `train`; {run.short} is a run of `{kind}`")

    def repeat(change: Mapping[str, Any], question: str) -> Repeated:
        settings = {**current_names(run.config["settings"]), **change}
        env_steps = part_of(settings.pop("env_steps"), settings)
        result = train(
            run.manifest["algorithm"],
            run.manifest["env"],
            seeds=SEEDS,
            first_seed=int(run.seeds[0]),
            env_steps=env_steps,
            env_args=env_args_of(run),
            settings=settings,
            home=home,
            info=RunInfo(question=question, tags=TAGS, parent=run.ulid),
        )
        return Repeated(tuple(map(float, result.returns)), result.run)

    return repeat


def probe_of(run: Run) -> Probe | None:
    """Return a function that probes the algorithm of a run; None if it has no probes.

    The settings are those that solve each probe, so that a failure is in the code.
    """
    algorithm = run.manifest["algorithm"]
    if algorithm not in SETTINGS:
        return None
    return lambda on_progress: probe_own(algorithm, {}, on_progress)


def gain_of(before: Sequence[float], after: Sequence[float]) -> float:
    """Return the rise of the mean return in standard deviations.

        (mean(after) - mean(before)) / max(std(before), std(after))

    std is taken over seeds. Infinity if a change turns returns that are not finite into finite
    ones, and minus infinity if it does not.
    """
    one, other = np.asarray(before, np.float64), np.asarray(after, np.float64)
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return math.inf if np.isfinite(other).all() else -math.inf
    spread = max(float(one.std(ddof=1)), float(other.std(ddof=1)), 1e-9 * float(np.abs(one).max()))
    rise = float(other.mean() - one.mean())
    return rise / spread if spread else math.copysign(math.inf, rise) if rise else 0.0


def weigh(causes: "list[Ranked]", trials: "list[Trial]") -> list[Ranked]:
    """Return the causes with the probabilities after the trials, as in the module's docstring."""
    weights = np.asarray([one.probability for one in causes])
    for trial in trials:
        names = np.asarray([one.cause.id == trial.cause for one in causes])
        right = SURE if trial.gain > CLEAR else RIGHT
        weights = weights * np.where(names == trial.helped, right, 1.0 - right)
    shares = (weights / weights.sum()).tolist()
    found = [one._replace(probability=share) for one, share in zip(causes, shares, strict=True)]
    return sorted(found, key=lambda one: -one.probability)


def describe(change: Mapping[str, Any]) -> str:
    """Return a change in words."""
    return ", ".join(f"{name}={as_text(value)}" for name, value in change.items()) or "unchanged"


def in_words(proof: Proof) -> str:
    """Return the trials and the causes as text."""
    lines = ["experiments"]
    if proof.outcomes:
        lines += ["  " + line for line in probe_report.in_words(proof.outcomes).splitlines()]
    for one in proof.trials:
        returns = ", ".join(f"{value:.4g}" for value in one.returns)
        verdict = "" if not one.cause else ("  helped" if one.helped else "  did not help")
        lines.append(f"  {describe(one.change):32} returns {returns}  run {one.run[-8:]}{verdict}")
    lines.append("causes after the experiments; they replace those above and the next experiment")
    for one in proof.causes[:CANDIDATES]:
        lines += [f"  {one.probability:4.0%}  {one.cause.text}", f"        {one.cause.fix}"]
    return "\n".join(lines)


def to_json(proof: Proof) -> dict[str, Any]:
    """Return the proof as a JSON document."""
    return {
        "probes": probe_report.to_json(proof.outcomes)["probes"],
        "trials": [_trial(one) for one in proof.trials],
        "causes": [{"cause": one.cause.id, "probability": one.probability} for one in proof.causes],
    }


def _trial(one: Trial) -> dict[str, Any]:
    fields = one._asdict() | {"change": dict(one.change), "helped": one.helped}
    numbers = [value if math.isfinite(value) else None for value in one.returns]
    return fields | {"returns": numbers, "gain": one.gain if math.isfinite(one.gain) else None}
