"""The command `premortem`: ask what may go wrong with a run, and later what came true."""

import argparse
import re
import select
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runshelf.cli.arguments import RUN, add_command, add_output, attended, home
from runshelf.errors import UsageError, did_you_mean
from runshelf.terminal_text import put

if TYPE_CHECKING:
    from runshelf.store.run import Run
    from runshelf.worklog.premortems import Premortem, Risk

    Outcome = dict[str, Any] | None

_SHARE = re.compile(r"(?P<number>\d+(?:\.\d+)?|\.\d+)\s*(?P<unit>%?)", re.ASCII)
# What is before the number must be a separator: `1e-1`, `-5%` and `v2` are no probabilities.
_RISK = re.compile(rf"(?P<text>.*[^\s=:,])[\s=:,]+(?P<share>{_SHARE.pattern})", re.S | re.ASCII)
OUTCOMES = ("worked", "failed")


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "premortem",
        _premortem,
        "predict what may go wrong with a run",
        "Write how surprised you would be if RUN failed and what might go wrong, before it ends. "
        "Afterwards, --outcome writes what came true. Without RUN, print all predictions and "
        "their Brier scores. On a terminal, what is not given as an option is asked.",
    )
    parser.add_argument("run", nargs="?", metavar="RUN", help=RUN)
    parser.add_argument(
        "--surprise", metavar="SHARE", help="how surprised you would be if it failed: 80%%"
    )
    parser.add_argument(
        "--risk",
        action="append",
        default=[],
        metavar="TEXT=SHARE",
        dest="risks",
        help="what may go wrong and its probability, as 'the reward is too sparse=20%%'; "
        "repeatable; the doctor weighs its own causes by it: steps-too-large=30%%",
    )
    parser.add_argument(
        "--outcome",
        nargs="?",
        const="",
        metavar="HOW",
        help="afterwards: worked or failed",
    )
    parser.add_argument(
        "--came-true",
        action="append",
        default=[],
        metavar="TEXT",
        help="with --outcome: a risk that came true, or something unexpected; repeatable",
    )
    add_output(parser)


def _premortem(options: argparse.Namespace) -> "Outcome":
    from runshelf.store.finding import find_run

    predicts, is_after = options.surprise or options.risks, options.outcome is not None
    if options.run is None:
        if predicts or is_after or options.came_true:
            raise UsageError("missing: RUN; try premortem latest")
        return _all(options)
    if predicts and is_after:
        raise UsageError("a prediction comes before the run, an outcome after it: give one of them")
    if options.came_true and not is_after:
        raise UsageError("`--came-true` works with --outcome only: add --outcome failed")
    run = find_run(home(options), options.run)
    if is_after:
        return _after(options, run)
    if predicts or attended(options):
        return _before(options, run)
    return _one(options, run)


def _before(options: argparse.Namespace, run: "Run") -> "Outcome":
    from runshelf.worklog.premortems import write_premortem

    risks = [risk_of(text) for text in options.risks]
    if options.surprise is not None:
        surprise = share_of(options.surprise)
    elif attended(options):
        asked = ask_prediction()
        if asked is None:
            put("skipped")
            return None
        surprise, more = asked
        risks += more
    else:
        raise UsageError("missing: --surprise; try --surprise 80%")
    found = write_premortem(run, surprise, risks)
    if options.json:
        return as_fields(found)
    put(in_words(found))
    if found.is_late:
        put("the run was over already: this is kept, and is not counted as a forecast")
    return None


def ask_prediction(seconds: float | None = None) -> "tuple[float, list[Risk]] | None":
    """Ask on the terminal how surprising a failure would be, and what might go wrong.

    Args:
        seconds: how long to wait for the first key; None for no limit.

    Returns:
        The surprise, from 0 to 1, and the risks; None if the person skips it or does not answer.
    """
    put("How surprised would you be if this run failed? 0% to 100%; Enter skips", file=sys.stderr)
    surprise = _ask_share(seconds)
    if surprise is None:
        return None
    put("What might go wrong? A cause and its probability in each line, as in", file=sys.stderr)
    put("  the learning rate is too high 30%", file=sys.stderr)
    put("Enter ends the list.", file=sys.stderr)
    risks: list[Risk] = []
    while line := _line():
        try:
            risks.append(risk_of(line))
        except UsageError as error:
            put(error, file=sys.stderr)
    return surprise, risks


def _ask_share(seconds: float | None) -> float | None:
    while True:
        if seconds is not None and not select.select([sys.stdin], [], [], seconds)[0]:
            put("no answer: it goes on without", file=sys.stderr)
            return None
        line = _line()
        if not line:
            return None
        try:
            return share_of(line)
        except UsageError as error:
            put(error, file=sys.stderr)


def _line() -> str:
    put("> ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()


def share_of(text: str) -> float:
    """Read a probability: `30%`, `30 %` or `0.3`; a number above 1 is in percent.

    Raises:
        UsageError: the text is not a probability.
    """
    found = _SHARE.fullmatch(text.strip())
    if not found:
        raise UsageError(f"`{text[:60]}` is not a probability; try 30%")
    number = float(found["number"])
    share = number / 100 if found["unit"] or number > 1 else number
    if share > 1:
        raise UsageError(f"`{text[:60]}` is more than 100 %; try 30%")
    return share


def risk_of(text: str) -> "Risk":
    """Read a risk: a text that ends with its probability.

    Raises:
        UsageError: there is no probability, or no text.
    """
    from runshelf.worklog.premortems import Risk

    found = _RISK.fullmatch(text.strip())
    if not found:
        raise UsageError(f"`{text[:60]}` has no probability at its end, or no text; add =30%")
    return Risk(found["text"], share_of(found["share"]))


def _after(options: argparse.Namespace, run: "Run") -> "Outcome":
    from runshelf.worklog.premortems import read_premortem, write_outcome

    before, how, came_true = read_premortem(run), options.outcome, list(options.came_true)
    if how and how not in OUTCOMES:
        raise UsageError(
            f"`--outcome {how}`{did_you_mean(how, OUTCOMES)} (expected worked, failed)"
        )
    if not how:
        if not attended(options) or before is None:
            raise UsageError("missing: worked or failed; try --outcome failed --came-true 'TEXT'")
        how, more = _ask_outcome(before)
        came_true += more
    found = write_outcome(run, failed=how == "failed", came_true=came_true)
    if options.json:
        return as_fields(found)
    put(in_words(found))
    return None


def _ask_outcome(before: "Premortem") -> tuple[str, list[str]]:
    put("Did the run fail? y or n", file=sys.stderr)
    how = "failed" if _yes() else "worked"
    true: list[str] = []
    for risk in before.risks:
        put(f"{risk.text}: did it come true? y or n", file=sys.stderr)
        true += [risk.text] if _yes() else []
    put("What else went wrong? Enter if nothing", file=sys.stderr)
    else_wrong = _line()
    return how, [*true, *([else_wrong] if else_wrong else [])]


def _yes() -> bool:
    return _line().casefold().startswith("y")


def _one(options: argparse.Namespace, run: "Run") -> "Outcome":
    from runshelf.worklog.premortems import read_premortem

    found = read_premortem(run)
    if options.json:
        return as_fields(found) if found else {"run": run.short, "premortem": None}
    put(in_words(found) if found else f"run {run.short} has no premortem; add --surprise 80%")
    return None


def _all(options: argparse.Namespace) -> "Outcome":
    from runshelf.worklog.premortems import (
        all_premortems,
        brier_score,
        failure_forecasts,
        risk_forecasts,
    )

    found = all_premortems(Path(home(options)))
    scores = {
        "failures": brier_score(failure_forecasts(found)),
        "risks": brier_score(risk_forecasts(found)),
    }
    if options.json:
        return {
            "premortems": [as_fields(one) for one in found],
            "brier": scores,
            "over_time": _over_time(found),
        }
    for one in found:
        put(in_words(one))
    put(_scores_in_words(scores, found) if found else "no premortems yet: premortem latest")
    return None


def _over_time(found: "Sequence[Premortem]") -> list[dict[str, Any]]:
    """Return the Brier score of failures after each forecast whose outcome is known."""
    from runshelf.worklog.premortems import brier_score, failure_forecasts

    scored = [one for one in found if one.is_scored]
    return [
        {
            "run": one.run,
            "time": one.time,
            "brier": brier_score(failure_forecasts(scored[: number + 1])),
        }
        for number, one in enumerate(scored)
    ]


def _scores_in_words(scores: dict[str, float | None], found: "Sequence[Premortem]") -> str:
    known = sum(one.is_scored for one in found)
    if not known and any(one.has_outcome for one in found):
        return "no forecast counts yet: each with an outcome was written after its run had ended"
    if not known:
        return "no outcome is known yet: premortem RUN --outcome"
    history = [f"{one['brier']:.2f}" for one in _over_time(found)][-10:]
    of_risks = scores["risks"]
    risks = "" if of_risks is None else f", of single risks {of_risks:.2f}"
    return (
        f"Brier score of {known} forecast{'s' * (known > 1)} of failure {scores['failures']:.2f}"
        f"{risks} (0 is perfect, 0.25 is always saying 50 %); over time {' '.join(history)}"
    )


def in_words(one: "Premortem") -> str:
    """Return a premortem for the terminal."""
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.time))
    late = ", written after its end" if one.is_late else ""
    lines = [f"{one.run}  {when}  failure {one.failure:.0%}{late}"]
    true = {text.casefold() for text in one.came_true}
    for risk in one.risks:
        mark = "came true" if risk.text.casefold() in true else "did not"
        lines.append(f"    {risk.probability:4.0%}  {risk.text}" + f"  {mark}" * one.has_outcome)
    expected = {risk.text.casefold() for risk in one.risks}
    lines += [f"    unexpected: {t}" for t in one.came_true if t.casefold() not in expected]
    if one.has_outcome:
        lines.append(f"    it {'failed' if one.failed else 'worked'}")
    return "\n".join(lines)


def as_fields(one: "Premortem") -> dict[str, Any]:
    """Return the JSON fields of a premortem."""
    fields = one._asdict()
    return fields | {"risks": [risk._asdict() for risk in one.risks]}
