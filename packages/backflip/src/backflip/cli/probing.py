"""The command `probe`."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from backflip.cli.progress_lines import progress_lines
from runshelf.cli.arguments import add_output, sentence, whole
from runshelf.cli.command_line import Reported
from runshelf.errors import Interrupted, UsageError
from runshelf.terminal_text import put

if TYPE_CHECKING:
    from backflip.doctor.probing.outcome import Outcome

FAILED = 1  # exit status if a probe failed
UNDECIDED = 3  # exit status if none failed, and values of some have not converged
DEFAULT_ENV_STEPS = 6_000  # on each probe, of learners of other libraries
FEW_ENV_STEPS = f"""
Fewer than the usual {DEFAULT_ENV_STEPS:,} env steps: a right learner may fail, too; try again \
without --env-steps."""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    about = "test an algorithm on tiny environments whose correct result is known"
    parser = commands.add_parser("probe", help=about, description=sentence(about))
    parser.add_argument(
        "algorithm",
        metavar="ALGORITHM|MODULE:FACTORY",
        help="an algorithm of ours, or a function that makes a learner of another library",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of an algorithm of ours; repeatable",
    )
    parser.add_argument(
        "--env-steps",
        type=whole(1, 100_000_000, DEFAULT_ENV_STEPS),
        metavar="N",
        help="env steps on each probe for another library; default 6,000",
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="PROBE",
        help="use only this probe, as probe:truncation; repeatable",
    )
    add_output(parser)
    parser.set_defaults(act=_probe)


def _probe(options: argparse.Namespace) -> Reported:
    from backflip.doctor.probing.report import in_words, to_json

    try:
        outcomes = _outcomes(options)
    except KeyboardInterrupt:
        raise Interrupted("interrupted; probes keep nothing") from None
    document = to_json(outcomes)
    options.exit_status = _status(document)
    few = options.env_steps is not None and options.env_steps < DEFAULT_ENV_STEPS
    note = FEW_ENV_STEPS if few and not document["passed"] else ""
    return Reported(document, lambda: put(in_words(outcomes) + note))


def _status(document: Mapping[str, Any]) -> int:
    if document["passed"]:
        return 0
    verdicts = {one["verdict"] for one in document["probes"]}
    return UNDECIDED if "not_converged" in verdicts and "failed" not in verdicts else FAILED


def _outcomes(options: argparse.Namespace) -> "list[Outcome]":
    if ":" in options.algorithm:
        from backflip.doctor.probing.others import probe_other

        if options.set:
            raise UsageError("`--set` is for our algorithms; set others in the factory")
        return probe_other(
            options.algorithm,
            options.env_steps or DEFAULT_ENV_STEPS,
            progress_lines(),
            options.only,
        )
    if options.env_steps is not None:
        raise UsageError(
            "`--env-steps` is for learners of other libraries; ours have the same on each probe"
        )
    from backflip.doctor.probing.own import probe_own

    return probe_own(options.algorithm, _settings(options.set), progress_lines(), options.only)


def _settings(texts: list[str]) -> dict[str, Any]:
    from runshelf.key_values import key_values
    from runshelf.snapshot.command_settings import parse_value

    found = key_values("--set", texts, "learning_rate=0.001", identifiers=True)
    return {key: parse_value(text) for key, text in found.items()}
