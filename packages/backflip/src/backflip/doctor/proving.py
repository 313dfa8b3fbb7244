"""Runs the experiments that a diagnosis proposes, and weighs the causes again.

For each of the most probable causes that a setting can change, the training is repeated with this
one change and a part of the budget, beside an unchanged repetition. With P(c) from the diagnosis,

    P(c | runs) ∝ P(c) · (RIGHT if the change helped, else 1 - RIGHT)

A change helps if the mean return rises by more than the larger deviation of the seeds.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from backflip.doctor.diagnosis import Diagnosis, Ranked
from backflip.doctor.report import as_text, settings_of
from backflip.training.build import env_args_of
from backflip.training.renamed_settings import current_names
from backflip.training.result import Result
from backflip.training.train import train
from runshelf.errors import UsageError
from runshelf.store.run import Run, RunInfo

CANDIDATES = 3
SEEDS = 3
PART = 0.5  # of the env steps
RIGHT = 0.85  # probability that a change helps if its cause is at work, and does not otherwise
OnProgress = Callable[[str, float], None]


@final
class Trial(NamedTuple):
    """A repetition with one change.

    Attributes:
        cause: the id of the cause that it is about; empty for the unchanged repetition.
        change: the settings that differ.
        returns: the final return of each seed.
        run: the id of the run.
        helped: whether the returns are better than those of the unchanged repetition.
    """

    cause: str
    change: Mapping[str, Any]
    returns: tuple[float, ...]
    run: str
    helped: bool


@final
class Proof(NamedTuple):
    """What the experiments showed.

    Attributes:
        trials: the unchanged repetition, then one for each cause.
        causes: all causes with their new probabilities, the most probable first.
    """

    trials: list[Trial]
    causes: list[Ranked]


def prove(
    run: Run, diagnosis: Diagnosis, home: Path, on_progress: OnProgress | None = None
) -> Proof:
    """Return what short repetitions of a run say about its causes. They are runs of their own.

    Args:
        run: the run, of `train`.
        diagnosis: the diagnosis of one of its seeds.
        home: where the repetitions are kept.
        on_progress: receives what is done, and the share of repetitions that are done.

    Raises:
        UsageError: it is no run of `train`, or no setting changes a probable cause.
    """
    if run.manifest["command"] != "train":
        raise UsageError(f"`--prove` repeats runs of `train`, and {run.short} is none")
    wanted = [
        (one.cause.id, settings_of(diagnosis.log, one.cause.experiment.settings))
        for one in diagnosis.causes
    ]
    chosen = [pair for pair in wanted if pair[1]][:CANDIDATES]
    if not chosen:
        raise UsageError(f"no setting of {run.short} changes a probable cause: nothing to repeat")
    plans = [("", dict[str, Any]()), *chosen]
    results = list[Result]()
    for number, (cause, change) in enumerate(plans):
        if on_progress is not None:
            on_progress(f"repeating {describe(change)}", number / len(plans))
        results.append(_repeat(run, home, cause, change))
    base = results[0].returns
    trials = [
        Trial(
            cause,
            change,
            tuple(map(float, result.returns)),
            result.run,
            bool(cause) and helps(base, result.returns),
        )
        for (cause, change), result in zip(plans, results, strict=True)
    ]
    return Proof(trials, weigh(diagnosis.causes, trials[1:]))


def _repeat(run: Run, home: Path, cause: str, change: Mapping[str, Any]) -> Result:
    """Train again with one change and a part of the budget."""
    settings = {**current_names(run.config["settings"]), **change}
    env_steps = max(1, round(settings.pop("env_steps") * PART))
    question = f"is it {cause}? ({describe(change)})" if cause else "what does it do unchanged?"
    return train(
        run.manifest["algorithm"],
        run.manifest["env"],
        seeds=SEEDS,
        first_seed=int(run.seeds[0]),
        env_steps=env_steps,
        env_args=env_args_of(run),
        settings=settings,
        home=home,
        info=RunInfo(question=question, tags=("doctor",), parent=run.ulid),
    )


def helps(before: "Any", after: "Any") -> bool:
    """Return whether the mean rises by more than the larger deviation of the seeds."""
    one, other = np.asarray(before, np.float64), np.asarray(after, np.float64)
    spread = max(float(one.std(ddof=1)), float(other.std(ddof=1)))
    return float(other.mean() - one.mean()) > max(spread, 1e-9 * float(np.abs(one).max()))


def weigh(causes: "list[Ranked]", trials: "list[Trial]") -> list[Ranked]:
    """Return the causes with the probabilities after the trials."""
    factors = {one.cause: RIGHT if one.helped else 1.0 - RIGHT for one in trials}
    weights = np.asarray([one.probability * factors.get(one.cause.id, 0.5) for one in causes])
    shares = (weights / weights.sum()).tolist()
    found = [one._replace(probability=share) for one, share in zip(causes, shares, strict=True)]
    return sorted(found, key=lambda one: -one.probability)


def describe(change: Mapping[str, Any]) -> str:
    """Return a change in words."""
    return ", ".join(f"{name}={as_text(value)}" for name, value in change.items()) or "unchanged"


def in_words(proof: Proof) -> str:
    """Return the trials and the causes as text."""
    lines = ["experiments"]
    for one in proof.trials:
        returns = ", ".join(f"{value:.4g}" for value in one.returns)
        verdict = "" if not one.cause else ("  helped" if one.helped else "  did not help")
        lines.append(f"  {describe(one.change):32} returns {returns}  run {one.run[-8:]}{verdict}")
    lines.append("causes after the experiments")
    lines += [f"  {one.probability:4.0%}  {one.cause.text}" for one in proof.causes[:CANDIDATES]]
    return "\n".join(lines)


def to_json(proof: Proof) -> dict[str, Any]:
    """Return the proof as a JSON document."""
    return {
        "trials": [one._asdict() | {"change": dict(one.change)} for one in proof.trials],
        "causes": [{"cause": one.cause.id, "probability": one.probability} for one in proof.causes],
    }


def after(diagnosis: Diagnosis, proof: Proof) -> Diagnosis:
    """Return the diagnosis with the causes after the experiments."""
    return diagnosis._replace(causes=proof.causes)
