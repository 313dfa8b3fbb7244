"""The command serve: the pages of all runs, or the labelling page of one."""

import argparse
from typing import Any

from runshelf.cli.arguments import RUN, add_output, home, sentence, share
from runshelf.cli.page_options import add_server_options, page_opener, printed_address
from runshelf.terminal_text import put


def add(commands: Any) -> None:
    """Add the command to a parser."""
    about = "serve the pages of all runs, or the labelling page of one without training"
    parser = commands.add_parser("serve", help=about, description=sentence(about))
    parser.add_argument(
        "run", metavar="RUN", nargs="?", help=f"whose clips to label: {RUN}; default: all runs"
    )
    overlap = "share of the pairs that a second person answers, too, from 0 to 1; default 0"
    parser.add_argument("--overlap", type=share, default=0.0, metavar="SHARE", help=overlap)
    add_server_options(parser, "the labelling page")
    add_output(parser)
    parser.set_defaults(act=_serve)


def _serve(options: argparse.Namespace) -> None:
    from backflip.labelling.page_server import serve
    from runshelf.cli.pages import serve_runs
    from runshelf.store.finding import find_run

    open_page = page_opener(options, "see all runs" if options.run is None else "compare clips")

    def announce(place: Any) -> None:
        put(open_page(printed_address(place)), flush=True)

    if options.run is None:
        from backflip.doctor.run_tab import TAB

        serve_runs(options, announce, [TAB])
        return
    run = find_run(home(options), options.run)
    serve(
        run.folder, host=options.host, port=options.port, overlap=options.overlap, announce=announce
    )
