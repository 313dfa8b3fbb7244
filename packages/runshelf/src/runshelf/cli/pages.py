"""The commands `serve` (web pages of all runs) and `report` (one HTML file)."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runshelf.cli.arguments import RUN, add_command, add_output, home
from runshelf.cli.page_options import add_server_options, page_opener, printed_address
from runshelf.errors import UsageError, UserFacingError
from runshelf.terminal_text import put

if TYPE_CHECKING:
    from runshelf.index.run_index import Index
    from runshelf.web.pages.run_tabs import RunTab
    from runshelf.web.serving.address import Endpoint
    from runshelf.web.subjects import Runs


def add_serve(commands: Any) -> None:
    """Add `serve`."""
    parser = add_command(commands, "serve", _serve, "serve web pages of all runs")
    add_server_options(parser, "the server")
    add_output(parser)


def add_report(commands: Any) -> None:
    """Add `report`."""
    about = "write runs or groups into one self-contained HTML file"
    parser = add_command(commands, "report", _report, about)
    parser.add_argument(
        "names", metavar="RUN|GROUP", nargs="+", help=f"{RUN}, or the name of a group"
    )
    parser.add_argument("file", metavar="FILE", help="must end in .html")
    drawing = parser.add_argument_group("curves")
    drawing.add_argument(
        "--along",
        metavar="AXIS",
        default="",
        help="env_steps, updates or seconds; default: the first of these that the run has",
    )
    drawing.add_argument(
        "--iqm",
        action="store_true",
        help="draw interquartile means with bootstrap intervals instead of means",
    )
    drawing.add_argument("--log", action="store_true", help="draw a logarithmic y-axis")
    add_output(parser)


def _serve(options: argparse.Namespace) -> None:
    open_page = page_opener(options, "see all runs")
    serve_runs(options, lambda place: put(open_page(printed_address(place)), flush=True))


def serve_runs(
    options: argparse.Namespace,
    announce: "Callable[[Endpoint], None]",
    tabs: "Sequence[RunTab]" = (),
) -> None:
    """Serve the pages of all runs of the home, with tabs that the program adds to those of runs."""
    from runshelf.web.serving.server import serve_home

    serve_home(home(options), host=options.host, port=options.port, announce=announce, tabs=tabs)


def _report(options: argparse.Namespace) -> dict[str, Any]:
    from runshelf.index.run_index import open_index
    from runshelf.store.series import AXES
    from runshelf.web.cache import Cache
    from runshelf.web.pages.report import report
    from runshelf.web.parameters import ChartView

    path = Path(options.file)
    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"`{options.file}` must end in .html; try report.html")
    if options.along and options.along not in AXES:
        raise UsageError(f"`--along` must be env_steps, updates or seconds, got `{options.along}`")
    with open_index(home(options)) as index:
        index.refresh()
        found = [_find(index, name) for name in options.names]
    kinds, runs = [kind for kind, _ in found], [of for _, of in found]
    view = ChartView(axis=options.along, centre="iqm" if options.iqm else "mean", log=options.log)
    text = report(home(options), runs, kinds, view, Cache())
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise UserFacingError(f"cannot write `{path}` ({error.strerror})") from error
    return {
        "file": str(path),
        "runs": sum(len(of.rows) for of in runs),
        "bytes": path.stat().st_size,
    }


def _find(index: "Index", name: str) -> "tuple[str, Runs]":
    """Return the group with a name if there is one, else the run."""
    from runshelf.web.subjects import Runs, runs_of_group

    try:
        return "group", runs_of_group(index, name)
    except UsageError:
        return "run", Runs([index.find(name)])
