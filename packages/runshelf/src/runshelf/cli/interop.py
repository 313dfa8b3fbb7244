"""The commands that exchange metrics with other programs: `import` and `export`."""

import argparse
import sys
from pathlib import Path
from typing import Any

from runshelf.cli.arguments import RUN, add_command, add_output, home
from runshelf.terminal_text import harmless, put


def add(commands: Any) -> None:
    """Add the commands."""
    parser = add_command(
        commands,
        "import",
        _import,
        "create runs from the logs of other libraries",
        "Create a run from each folder that has event files of TensorBoard (CleanRL "
        "writes them too), progress.csv or monitor.csv of Stable-Baselines3, or progress.txt of "
        "Spinning Up. Files that were imported before are skipped.",
    )
    parser.add_argument("path", metavar="PATH", help="a folder of logs, or one such file")
    parser.add_argument("--name", metavar="NAME", help="a name for the run")
    parser.add_argument("--group", metavar="NAME", help="the group of the run")
    parser.add_argument(
        "--tag", action="append", default=[], metavar="WORD", help="a tag to find the run by"
    )
    add_output(parser)
    parser = add_command(
        commands,
        "export",
        _export,
        "write a run's metrics for other programs",
        "Write the metrics of a run as event files of TensorBoard in a new folder, or "
        "as one file if PATH ends in .csv or .jsonl.",
    )
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument("path", metavar="PATH", help="the folder or file to write")
    add_output(parser)


def _import(options: argparse.Namespace) -> dict[str, Any] | None:
    from runshelf.interop.import_logs import import_path
    from runshelf.store.run import RunInfo

    info = RunInfo(name=options.name, group=options.group, tags=tuple(options.tag))
    done = import_path(
        home(options),
        Path(options.path),
        info=info,
        argv=options.argv,
        say=lambda line: put(harmless(line), file=sys.stderr if options.json else sys.stdout),
    )
    if not options.json:
        return None
    return {
        "runs": [
            {
                "run": one.run,
                "folder": str(one.folder),
                "from": str(one.source),
                "new": one.is_new,
                "kind": one.kind,
                "values": one.values,
                "notes": one.notes,
            }
            for one in done.runs
        ],
        "skipped": [{"file": str(file.path), "why": file.why} for file in done.skipped],
    }


def _export(options: argparse.Namespace) -> dict[str, Any]:
    from runshelf.interop.export_run import export_run
    from runshelf.store.finding import find_run

    run = find_run(home(options), options.run)
    records = export_run(run, Path(options.path))
    return {"run": run.ulid, "path": options.path, "records": records}
