"""The command `lint`."""

import argparse
from pathlib import Path
from typing import Any

from backflip.cli.progress_lines import progress_lines
from runshelf.cli.arguments import add_output, sentence
from runshelf.cli.command_line import Reported
from runshelf.errors import UsageError
from runshelf.terminal_text import put

FOUND = 1  # exit status if there are findings, or files that cannot be read
EPILOG = "A line with `# rl: ignore[L01] reason` is left out by this rule."


def add(commands: Any) -> None:
    """Add the command to the parser."""
    about = "find mistakes of reinforcement learning in programs, without running them"
    parser = commands.add_parser("lint", help=about, description=sentence(about), epilog=EPILOG)
    parser.add_argument("files", nargs="*", metavar="FILE", help="programs, or folders of them")
    for name, what in (("select", "use only this rule"), ("ignore", "leave this rule out")):
        parser.add_argument(
            f"--{name}", action="append", default=[], metavar="RULE", help=f"{what}; repeatable"
        )
    parser.add_argument("--list", action="store_true", help="print all rules, and check nothing")
    add_output(parser)
    parser.set_defaults(act=_lint)


def _lint(options: argparse.Namespace) -> Reported:
    from backflip.doctor.lint.files import chosen_rules, lint
    from backflip.doctor.lint.report import in_words, rules_in_words, to_json

    rules = chosen_rules(options.select, options.ignore)
    if options.list:
        titles = {"rules": {rule.id: rule.title for rule in rules}}
        return Reported(titles, lambda: put(rules_in_words(rules)))
    if not options.files:
        raise UsageError("missing: FILE; try backflip lint train.py")
    linted = lint([Path(name) for name in options.files], rules, progress_lines())
    options.exit_status = FOUND if linted.findings or linted.unread else 0
    return Reported(to_json(linted), lambda: put(in_words(linted)))
