"""The command `register`: write the analysis of an experiment before its first run."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runshelf.cli.arguments import add_command, add_output, home, integer
from runshelf.errors import UsageError, shown
from runshelf.terminal_text import harmless, put

if TYPE_CHECKING:
    from runshelf.registrations.kept import Kept

_LARGEST = 1 << 20  # bytes of a file with a registration
_QUESTIONS = {
    "question": "What is the question?",
    "hypotheses": "A hypothesis, as NAME=PREDICTION (an empty line ends them):",
    "metric": "Which metric is compared?",
    "n": "How many seeds of each group?",
}


def add(commands: Any) -> None:
    """Add `register`."""
    parser = add_command(
        commands,
        "register",
        _register,
        "register the analysis of an experiment before its runs",
        "Write down question, hypotheses, metric, number of seeds, test and stopping rule, with "
        "their hash, before the first run. What is missing is asked in the terminal. A "
        "registration cannot be changed, only superseded with a reason.",
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="the name of the registration")
    _add_content(parser)
    doing = parser.add_argument_group("other actions")
    doing.add_argument("--show", action="store_true", help="show the registration")
    doing.add_argument("--list", action="store_true", help="list all registrations of the home")
    doing.add_argument(
        "--supersede", action="store_true", help="replace the registration, which is kept"
    )
    doing.add_argument("--reason", metavar="TEXT", help="why it is superseded")
    add_output(parser)


def _add_content(parser: argparse.ArgumentParser) -> None:
    content = parser.add_argument_group("what is registered")
    content.add_argument("--from", dest="file", metavar="FILE", help="read it from a JSON file")
    content.add_argument("--question", metavar="TEXT", help="what the experiment is to answer")
    content.add_argument(
        "--hypothesis",
        action="append",
        dest="hypotheses",
        metavar="NAME=PREDICTION",
        help="a hypothesis and what it predicts; repeatable",
    )
    content.add_argument("--metric", metavar="NAME", help="the metric that is compared")
    content.add_argument(
        "--n", metavar="N", help="seeds of each group; with --looks, at the last look"
    )
    content.add_argument("--test", metavar="TEST", help="permutation (the default) or welch")
    content.add_argument("--alpha", metavar="P", help="level of the test; default 0.05")
    content.add_argument(
        "--looks", metavar="N", help="looks of a sequential test (AdaStop); default 1: fixed"
    )
    content.add_argument(
        "--window",
        metavar="PERCENT",
        help="the value of a seed is the mean over this last part of its curve; default 10",
    )
    content.add_argument("--threshold", metavar="X", help="a seed above it counts as a success")
    content.add_argument(
        "--failure-value",
        metavar="X",
        help="what a seed that fails counts as, such as the return of a random policy",
    )
    content.add_argument("--first-seed", metavar="SEED", help="first seed of each group; default 0")
    content.add_argument(
        "--command",
        action="append",
        dest="commands",
        metavar="GROUP=CMD",
        help="the command that runs one seed of a group, with {seed}; repeatable",
    )


def _register(options: argparse.Namespace) -> dict[str, Any] | None:
    from runshelf.registrations.kept import find, register
    from runshelf.registrations.registration import check_name, registration_of

    if options.list:
        return _list(options)
    if not options.name:
        raise UsageError("name the registration: runshelf register NAME, or --list for all")
    if options.show:
        return _shown(find(home(options), options.name), options)
    check_name(options.name)
    if options.supersede != bool(options.reason):
        raise UsageError("--supersede needs --reason 'why', and --reason needs --supersede")
    _refuse_taken(options)
    registration = registration_of(_content(options))
    kept = register(home(options), options.name, registration, reason=options.reason or "")
    return _shown(kept, options)


def _refuse_taken(options: argparse.Namespace) -> None:
    """Say that a name is taken before anything is asked.

    Raises:
        UsageError: it is, and nothing is superseded.
    """
    from runshelf.registrations.kept import versions

    if versions(home(options), options.name) and not options.supersede:
        raise UsageError(
            f"`{options.name}` is registered already, and a registration cannot be changed: add "
            "--supersede --reason 'why', or choose another name"
        )


def _content(options: argparse.Namespace) -> dict[str, Any]:
    """Return what is registered, from a file, from options, and asked in the terminal."""
    found: dict[str, Any] = _read(Path(options.file)) if options.file else {}
    found |= _given(options)
    asks = not options.json and sys.stdin.isatty() and sys.stderr.isatty()
    missing = [name for name in _QUESTIONS if not found.get(name)]
    return found | (_asked(missing) if asks else {})


def _given(options: argparse.Namespace) -> dict[str, Any]:
    readers: Mapping[str, Callable[[str], Any]] = {
        **dict.fromkeys(("question", "metric", "test"), str),
        **dict.fromkeys(("n", "looks", "window", "first_seed"), _whole),
        **dict.fromkeys(("alpha", "threshold", "failure_value"), _number),
    }
    texts = {name: getattr(options, name) for name in readers}
    found = {name: readers[name](text) for name, text in texts.items() if text is not None}
    if options.hypotheses:
        found["hypotheses"] = [_hypothesis(text) for text in options.hypotheses]
    if options.commands:
        found["commands"] = dict(_pair(text, "--command", "GROUP=CMD") for text in options.commands)
    return found


def _asked(missing: Sequence[str]) -> dict[str, Any]:
    """Ask for what is missing, one question after the other."""
    found: dict[str, Any] = {}
    for name in missing:
        lines = _lines() if name == "hypotheses" else [_answer(_QUESTIONS[name])]
        match name:
            case "hypotheses":
                found[name] = [_hypothesis(line) for line in lines]
            case "n":
                found[name] = _whole(lines[0])
            case _:
                found[name] = lines[0]
    return found


def _lines() -> list[str]:
    found: list[str] = []
    while line := _answer(_QUESTIONS["hypotheses"]):
        found.append(line)
    return found


def _answer(question: str) -> str:
    put(f"{question} ", file=sys.stderr, end="", flush=True)
    line = sys.stdin.readline()
    if not line:
        raise UsageError("nothing was registered: the input ended")
    return line.strip()


def _hypothesis(text: str) -> dict[str, str]:
    name, predicts = _pair(text, "--hypothesis", "NAME=PREDICTION")
    return {"name": name, "predicts": predicts}


def _pair(text: str, option: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise UsageError(f"{option} must be {form}, got `{text}`")
    return name.strip(), value.strip()


def _whole(text: str) -> int | str:
    """Return a whole number, or the text, which is then refused by its name."""
    number = integer(text)
    return text if number is None else number


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _read(path: Path) -> dict[str, Any]:
    from runshelf.received_json import parse_record
    from runshelf.store.files import disk_errors

    with disk_errors(path):
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"`{path}` has more than 1 MiB: it is not a registration")
        data = path.read_bytes()
    try:
        return parse_record(data)
    except ValueError as error:
        raise UsageError(f"`{path}` is not a JSON object ({shown(str(error))})") from error


def _list(options: argparse.Namespace) -> dict[str, Any] | None:
    from runshelf.cli.tables import print_table
    from runshelf.registrations.kept import find, names

    kept = [find(home(options), name) for name in names(home(options))]
    if options.json:
        return {"registrations": [document(one) for one in kept]}
    if not kept:
        put("there are no registrations; runshelf register NAME makes one")
        return None
    print_table(
        {
            "name": [one.name for one in kept],
            "version": [one.version for one in kept],
            "registered": [one.created[:16].replace("T", " ") for one in kept],
            "metric": [one.registration.metric for one in kept],
            "n": [one.registration.n for one in kept],
            "hash": [one.sha256[:12] for one in kept],
            "question": [one.registration.question for one in kept],
            "": [one.changed for one in kept],
        },
        right=("version", "n"),
    )
    return None


def _shown(kept: "Kept", options: argparse.Namespace) -> dict[str, Any] | None:
    if options.json:
        return document(kept)
    for line in lines_of(kept):
        put(harmless(line))
    return None


def document(kept: "Kept") -> dict[str, Any]:
    """Return a registration as JSON."""
    from runshelf.registrations.registration import values_of

    about = {"reason": kept.reason, "changed": kept.changed}
    return {**kept.carried(), **about, "registered": values_of(kept.registration)}


def lines_of(kept: "Kept") -> list[str]:
    """Return a registration as lines of text."""
    one = kept.registration
    when = kept.created[:16].replace("T", " ")
    lines = [
        f"{kept.name}, version {kept.version}, registered {when} UTC",
        f"question    {one.question}",
        *(f"hypothesis  {h.name}: {h.predicts}" for h in one.hypotheses),
        f"metric      {one.metric}, mean of the last {one.window} % of a curve",
        f"test        {one.test}, alpha {one.alpha:g}",
        f"stopping    {one.stopping}",
        f"seeds       from {one.first_seed}",
    ]
    if one.threshold is not None:
        lines.append(f"threshold   {one.threshold:g}")
    if one.failure_value is not None:
        lines.append(f"failure     counts as {one.failure_value:g}")
    lines += [f"command     {group}: {command}" for group, command in one.commands.items()]
    lines += [f"supersedes version {kept.version - 1}: {kept.reason}"] if kept.reason else []
    lines.append(f"SHA-256     {kept.sha256}")
    return [*lines, f"attention: {kept.changed}"] if kept.changed else lines
