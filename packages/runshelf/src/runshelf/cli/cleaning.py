"""The commands `rm`, `restore`, `gc` and `du`."""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from runshelf.cli.arguments import RUN, add_command, add_output, home, whole
from runshelf.cli.progress import ProgressLine
from runshelf.cli.tables import print_table, size_of
from runshelf.formatting import plural
from runshelf.store.run_ids import short_id
from runshelf.terminal_text import harmless, put

if TYPE_CHECKING:
    from runshelf.cleanup.garbage import Garbage

    Outcome = dict[str, Any] | None

_SHOWN_PROBLEMS = 1


def add(commands: Any) -> None:
    """Add the commands."""
    remove = add_command(commands, "rm", _rm, "move runs to the trash")
    remove.add_argument("run", nargs="+", metavar="RUN", help=RUN)
    about = "move runs back from the trash"
    restore = add_command(commands, "restore", _restore, about)
    restore.add_argument("run", nargs="*", metavar="RUN", help="the beginning or end of a run's id")
    collect = add_command(commands, "gc", _gc, "list unneeded files, and remove them with --yes")
    collect.add_argument("--yes", action="store_true", help="remove the files")
    collect.add_argument(
        "--trash",
        type=whole(0, 36_500, 30),
        default=30,
        metavar="DAYS",
        help="delete runs that have been in the trash for this many days",
    )
    usage = add_command(commands, "du", _du, "show how much disk space runs take")
    usage.add_argument(
        "--limit", type=whole(1, 1_000_000, 50), default=20, metavar="N", help="most rows to show"
    )
    for parser in (remove, restore, collect, usage):
        add_output(parser)


def _rm(options: argparse.Namespace) -> "Outcome":
    from runshelf.cleanup.trash import remove
    from runshelf.store.finding import find_run

    # Find all runs before moving the first one: a mistyped name must change nothing.
    found = [find_run(home(options), name) for name in options.run]
    runs = {run.ulid: run for run in found}
    for run in runs.values():
        remove(home(options), run)
        put(f"run {run.short} is in the trash; runshelf restore {run.short} brings it back")
    return {"removed": list(runs)} if options.json else None


def _restore(options: argparse.Namespace) -> "Outcome":
    from runshelf.cleanup.trash import restore, trashed

    if not options.run:
        known = trashed(home(options))
        if options.json:
            return {"trash": known}
        put("\n".join(map(short_id, known)) or "the trash is empty")
        return None
    runs = [restore(home(options), name) for name in options.run]
    for run in runs:
        put(f"run {run.short} is back in {harmless(run.folder)}")
    return {"restored": [run.ulid for run in runs]} if options.json else None


def _gc(options: argparse.Namespace) -> "Outcome":
    from runshelf.cleanup.garbage import collect, find_garbage

    failed: list[str] = []
    if options.yes:
        show = ProgressLine("compacting")
        garbage = collect(home(options), float(options.trash), show, failed.append)
    else:
        garbage = find_garbage(home(options), float(options.trash))
    if failed:
        options.exit_status = 1
        _print_failures(failed)
    if options.json:
        return {"done": options.yes and not failed, "failed": failed} | _fields_of(garbage)
    _print_garbage(garbage)
    if garbage.is_empty:
        put("nothing was removed" if failed else "there is nothing to remove")
    elif options.yes:
        put("removed and compacted")
    else:
        put("nothing has been changed; runshelf gc --yes does it and cannot be undone")
    return None


def _fields_of(garbage: "Garbage") -> dict[str, Any]:
    return {
        "objects": len(garbage.objects),
        "object_bytes": garbage.object_bytes,
        "trashed": garbage.trashed,
        "trashed_bytes": garbage.trashed_bytes,
        "leftovers": garbage.leftovers,
        "reruns": [folder.name for folder in garbage.reruns],
        "compactable": garbage.compactable,
        "lines_bytes": garbage.lines_bytes,
        "old_index": [str(path) for path in garbage.old_index],
        "kept": [{"file": str(one.path), "line": one.line} for one in garbage.kept],
    }


def _print_garbage(garbage: "Garbage") -> None:
    compactable = len(garbage.compactable), "run", "with metrics to compact"
    lines = [
        (len(garbage.trashed), "old run", "in the trash", size_of(garbage.trashed_bytes)),
        (len(garbage.objects), "code file", "without a run", size_of(garbage.object_bytes)),
        (len(garbage.leftovers), "folder", "of runs that never started", ""),
        (len(garbage.reruns), "folder", "of reruns that were killed", ""),
        (len(garbage.old_index), "file", "of an index that is no longer used", ""),
        (*compactable, f"{size_of(garbage.lines_bytes)} now"),
    ]
    for count, what, which, size in lines:
        if count:
            put(f"  {plural(count, what)} {which}{f', {size}' if size else ''}")
    for one in garbage.kept:
        put(f"{harmless(str(one.path))} is not compacted: line {one.line} is not a metric record")


def _print_failures(failed: Sequence[str]) -> None:
    for message in failed[:_SHOWN_PROBLEMS]:
        put(f"runshelf: {harmless(message)}", file=sys.stderr)
    if len(failed) > _SHOWN_PROBLEMS:
        put(f"runshelf: and {len(failed) - _SHOWN_PROBLEMS} more", file=sys.stderr)


def _du(options: argparse.Namespace) -> "Outcome":
    from runshelf.cleanup.garbage import disk_usage

    usage = disk_usage(home(options))
    sums = {
        "runs": usage.runs_bytes,
        "objects": usage.objects_bytes,
        "trash": usage.trash_bytes,
        "index": usage.index_bytes,
        "total": usage.total_bytes,
    }
    if options.json:
        return {"bytes": sums, "runs": [row._asdict() for row in usage.runs]}
    rows = usage.runs[: options.limit]
    if rows:
        columns = {
            "run": [short_id(row.run) for row in rows],
            "own": [size_of(row.bytes) for row in rows],
            "code, shared": [size_of(row.code_bytes) for row in rows],
            "": ["in the trash" if row.is_trashed else "" for row in rows],
        }
        print_table(columns, right=("own", "code, shared"))
    if len(rows) < len(usage.runs):
        put(f"{len(rows)} of {len(usage.runs)}; --limit shows more", file=sys.stderr)
    names = {"objects": "code of all runs, each file once", "runs": "files of runs"}
    for name, count in sums.items():
        put(f"{size_of(count):>10}  {names.get(name, name)}")
    return None
