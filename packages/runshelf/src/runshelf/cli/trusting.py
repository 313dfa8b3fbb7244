"""The command `trust`, and the question before code is imported that a received run names."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runshelf.cli.arguments import RUN, add_command, add_output, home
from runshelf.errors import UsageError
from runshelf.formatting import plural
from runshelf.terminal_text import harmless, put

if TYPE_CHECKING:
    from runshelf.store.run import Run

_SHOWN = 3


def add(commands: Any) -> None:
    """Add the command."""
    about = "trust runs that were not made here: the code that they name may be imported"
    parser = add_command(commands, "trust", _trust, about)
    parser.add_argument("run", nargs="*", metavar="RUN", help=RUN)
    parser.add_argument("--all", action="store_true", help="trust all runs of the home")
    add_output(parser)


def ask_to_import(run: "Run", names: Sequence[str], options: argparse.Namespace) -> None:
    """Ask on a terminal whether the code that a received run names may be imported.

    Without a terminal nothing is asked, and the import is refused later.

    Raises:
        UsageError: the answer is not yes.
    """
    from runshelf.store.trust import is_trusted, trust

    is_asked = not options.json and sys.stdin.isatty() and sys.stderr.isatty()
    if not names or not is_asked or is_trusted(run.folder):
        return
    listed = ", ".join(f"`{harmless(name)}`" for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    put(f"run {run.short} was not made here. It imports {listed}{more} from", file=sys.stderr)
    put(f"`{Path.cwd()}` or an installed package, and calls it.", file=sys.stderr)
    put("Import it, now and later? Type yes or no: ", file=sys.stderr, end="", flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError(f"nothing of run `{run.short}` was imported")
    trust(run.folder)


def _trust(options: argparse.Namespace) -> dict[str, Any] | None:
    from runshelf.store.finding import find_run, list_runs
    from runshelf.store.trust import is_trusted, trust

    if bool(options.run) == options.all:
        raise UsageError("name the runs to trust, or give --all for all runs of the home")
    names = list_runs(home(options)) if options.all else options.run
    runs = [find_run(home(options), name) for name in names]
    new = [run for run in runs if not is_trusted(run.folder)]
    for run in new:
        trust(run.folder)
    if options.json:
        return {"trusted": [run.ulid for run in new]}
    put(f"{plural(len(new), 'run')} trusted; {len(runs) - len(new)} were before")
    return None
