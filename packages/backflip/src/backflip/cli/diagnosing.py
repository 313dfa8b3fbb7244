"""The command `doctor`."""

import argparse
import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from signal import SIGINT, SIGTERM
from typing import TYPE_CHECKING, Any

from backflip.cli.progress_lines import progress_lines
from runshelf.cli.arguments import add_output, home, sentence
from runshelf.cli.command_line import Reported
from runshelf.errors import UsageError, UserFacingError
from runshelf.interrupts import interruptible
from runshelf.store.files import disk_errors
from runshelf.store.paths import exists, is_folder
from runshelf.terminal_text import harmless, put

if TYPE_CHECKING:
    from backflip.doctor.diagnosis import Diagnosis
    from backflip.doctor.log import Log
    from backflip.doctor.proving import Probe, Proof

FOUND = 1  # exit status if something is wrong
CANNOT_READ = 2  # if there is no log, or it cannot be read
CANNOT_TELL = 3  # if too little is logged
EPILOG = (
    "Exit status: 0 if nothing wrong was seen, 1 with findings, 2 if there is no log that "
    "can be read, 3 if too little is logged in one of them. "
    "docs/checks.md describes every check."
)


def add(commands: Any) -> None:
    """Add the command to the parser."""
    about = "say what is wrong with a training run, and what to try next"
    parser = commands.add_parser("doctor", help=about, description=sentence(about), epilog=EPILOG)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="RUN|GROUP|LOGS",
        help="a run, a group, or a folder or file of TensorBoard, Stable-Baselines3, CleanRL, "
        "RLlib, W&B or CSV",
    )
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="NAME=SIGNAL",
        help="what a logged name means; repeatable",
    )
    parser.add_argument(
        "--about",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="what the log does not say: algorithm, env, env_steps, actions (their number, or "
        "continuous), discount and other settings; repeatable",
    )
    parser.add_argument(
        "--prove",
        action="store_true",
        help="probe the algorithm of a run of train, and repeat the run with the changes that "
        "separate the causes; takes about as long as the run",
    )
    parser.add_argument(
        "--command",
        dest="repeated",
        metavar="COMMAND",
        help="with --prove: the program to repeat, as 'python train.py --lr {learning_rate} "
        "--seed {seed}'",
    )
    parser.add_argument(
        "--probe",
        metavar="MODULE:FACTORY",
        help="with --prove: a function that makes the learner of the program, for the probes",
    )
    parser.add_argument(
        "--follow",
        action="store_true",
        help="look again until training ends, the log is quiet for ten minutes, or Ctrl-C, and "
        "print each finding when it is new",
    )
    parser.add_argument(
        "--until-finding", action="store_true", help="with --follow: stop at the first finding"
    )
    parser.add_argument("--html", metavar="FILE", help="also write one HTML file with pictures")
    parser.add_argument("--list", action="store_true", help="print all checks and signals")
    add_output(parser)
    parser.set_defaults(act=_doctor)


def _doctor(options: argparse.Namespace) -> Reported:
    from backflip.doctor.diagnosis import diagnose
    from backflip.doctor.report import all_in_words, listed, listed_json, to_json

    if options.list:
        return Reported(listed_json(), lambda: put(listed()))
    _check(options)
    mapping = _mapping(options.map)
    found = [diagnose(log) for log in _logs(options, mapping)]
    if options.html:
        _write_page(Path(options.html), found)
    options.exit_status = _exit_status(found, options.unread)
    for error in options.unread:
        put(harmless(f"backflip: left out: {error}"), file=sys.stderr)
    fields = to_json(found) | {"unread": list(map(str, options.unread))}
    if not options.prove:
        return Reported(fields, lambda: put(all_in_words(found)))
    from backflip.doctor import proving

    proof = _prove(options, found, mapping)
    words = f"{all_in_words(found)}\n\n{proving.in_words(proof)}"
    return Reported(fields | {"proof": proving.to_json(proof)}, lambda: put(words))


def _check(options: argparse.Namespace) -> None:
    """Raise `UsageError` for options that do not go together."""
    if not options.names:
        raise UsageError("missing: RUN, GROUP or LOGS; try backflip doctor latest")
    for option, given in (("--command", options.repeated), ("--probe", options.probe)):
        if given is not None and not options.prove:
            raise UsageError(f"`{option}` works with --prove only: add --prove")
    if options.until_finding and not options.follow:
        raise UsageError("`--until-finding` works with --follow only: add --follow")


def _exit_status(found: "Sequence[Diagnosis]", unread: Sequence[UserFacingError]) -> int:
    if any(one.findings for one in found):
        return FOUND
    if unread:
        return CANNOT_READ
    return 0 if all(one.can_tell for one in found) else CANNOT_TELL


def _logs(options: argparse.Namespace, mapping: dict[str, str]) -> "list[Log]":
    from backflip.doctor.reading.about import checked_facts
    from backflip.doctor.reading.find import find_logs, with_facts
    from runshelf.snapshot.command_settings import parse_value

    about = dict(_pair("--about", text) for text in options.about)
    facts = {name: parse_value(value) for name, value in about.items()}
    facts = checked_facts(facts, _placeholders(options.repeated))

    def read() -> "list[Log]":
        found: list[Log] = []
        options.unread = []
        for name in options.names:
            try:
                found += find_logs(home(options), name, mapping)
            except UserFacingError as error:
                options.unread.append(error)
        if options.unread and not found:
            raise options.unread[0]
        return [with_facts(log, facts) if facts else log for log in found]

    return _read((lambda: _follow(options, read)) if options.follow else read)


def _read(read: "Callable[[], list[Log]]") -> "list[Log]":
    """Return logs; errors get an exit status of their own, for scripts that wait for findings."""
    try:
        return read()
    except UserFacingError as error:
        error.exit_status = max(error.exit_status, CANNOT_READ)
        raise


def _placeholders(command: str | None) -> set[str]:
    """Return the names that a command needs; what fills them comes from --about."""
    if command is None:
        return set()
    from runshelf.recorder.command_templates import placeholders

    return placeholders(command.split())


def _follow(options: argparse.Namespace, read: "Callable[[], list[Log]]") -> "list[Log]":
    """Print findings on stderr as they appear. Ctrl-C or SIGTERM end this; the diagnosis follows.

    Returns:
        The logs as they are now, or as they were last, if they cannot be read any more.
    """
    from backflip.doctor.live import follow, going_on
    from backflip.doctor.log import Log

    last, stopped = list[Log](), False

    def kept() -> "list[Log]":
        last[:] = read()
        return last

    def until(found: "Sequence[Diagnosis]") -> bool:
        nonlocal stopped
        stopped = options.until_finding and any(one.findings for one in found)
        return stopped

    if not any(exists(Path(name)) or _may_come(Path(name)) for name in options.names):
        kept()  # a run, or a wrong name: say so at once
    with contextlib.suppress(KeyboardInterrupt), interruptible(SIGINT, SIGTERM):
        follow(kept, lambda line: put(harmless(f"backflip: {line}"), file=sys.stderr), until)
    try:
        return [going_on(log) for log in read()] if stopped else read()
    except UserFacingError as error:
        if not last:
            raise
        put(harmless(f"backflip: the diagnosis is of the last log seen: {error}"), file=sys.stderr)
        return last


def _may_come(path: Path) -> bool:
    """Return whether a path that does not exist is a log of a program that starts later."""
    return len(path.parts) > 1 and is_folder(path.parent)


def _prove(
    options: argparse.Namespace, found: "list[Diagnosis]", mapping: dict[str, str]
) -> "Proof":
    """Repeat the training run of the diagnosis with most findings."""
    from backflip.doctor.proving import probe_of, prove, repetition_of
    from backflip.doctor.repeating_program import repetition_of_program
    from runshelf.cli.recording import say
    from runshelf.store.run import open_run

    worst = max(found, key=lambda one: len(one.findings))
    probe = None if options.probe is None else _probe(options.probe)
    if worst.log.run is None and options.repeated is None and probe is None:
        raise UsageError(
            "`--prove` repeats runs of `train`; for another program add --command, as "
            "--command 'python train.py --lr {learning_rate} --seed {seed}', or --probe"
        )
    if not worst.causes:
        raise UsageError("nothing wrong was seen: there is nothing to prove")
    if options.repeated is not None:
        of_program = repetition_of_program(options.repeated, worst.log, mapping, home(options), say)
        return prove(worst, *of_program, progress_lines(), probe)
    if worst.log.run is None:
        return prove(worst, None, on_progress=progress_lines(), probe=probe)
    run = open_run(Path(worst.log.run))
    repeat = repetition_of(run, home(options))
    return prove(worst, repeat, on_progress=progress_lines(), probe=probe or probe_of(run))


def _probe(factory: str) -> "Probe":
    """Return a function that puts the learner of another library through the probes.

    Raises:
        UsageError: it is not a `module:factory`.
    """
    from backflip.doctor.probing.others import probe_other

    if ":" not in factory:
        raise UsageError(f"`--probe {factory}` is not MODULE:FACTORY; try --probe my_file:make")
    return lambda on_progress: probe_other(factory, on_progress=on_progress)


def _mapping(texts: Sequence[str]) -> dict[str, str]:
    """Return our names by logged names, as --map has them.

    Raises:
        UsageError: a text has no name, or two have the same logged name or the same signal.
    """
    pairs = dict.fromkeys(_pair("--map", text) for text in texts)
    for names in zip(*pairs, strict=True):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UsageError(f"`{twice}` is in two --map: each name and each signal can have one")
    return dict(pairs.keys())


def _pair(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.rpartition("=")
    if not equals or not name or not value:
        example = "train/ent=entropy" if option == "--map" else "algorithm=ppo"
        raise UsageError(f"`{option} {text}` has no name or no value; try {option} {example}")
    return name, value


def _write_page(path: Path, found: "list[Diagnosis]") -> None:
    from backflip.doctor.page import page

    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"`{path}` must end in .html; try diagnosis.html")
    with disk_errors(path):
        path.write_text(page(found), encoding="utf-8", errors="replace")
