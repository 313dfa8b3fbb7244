"""The command labels: write the labels of a run to a file, or add those of a file to a run."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runshelf.cli.arguments import RUN, Parser, add_output, home, sentence
from runshelf.errors import UsageError

if TYPE_CHECKING:
    from runshelf.store.run import Run


def add(commands: Any) -> None:
    """Add the command to a parser."""
    about = "export labels from a run, or import labels into a run"
    parser = commands.add_parser("labels", help=about, description=sentence(about))
    actions = parser.add_subparsers(
        title="actions", dest="action", metavar="ACTION", required=True, parser_class=Parser
    )
    for name, act, what in (
        ("export", _export, "write all answers, with their clips, to a file"),
        ("import", _import, "add the answers of a file to a run; resume the run to use them"),
    ):
        action = actions.add_parser(name, help=what, description=sentence(what))
        action.add_argument("run", metavar="RUN", help=RUN)
        action.add_argument("file", metavar="FILE", help="ends in .jsonl or .csv")
        if name == "export":
            incomplete = "write the labels that are left if some are lost, instead of stopping"
            action.add_argument("--incomplete", action="store_true", help=incomplete)
        add_output(action)
        action.set_defaults(act=act)


def _export(options: argparse.Namespace) -> dict[str, Any]:
    from backflip.preferences.exchange import export_labels
    from backflip.preferences.labels import LabelStore
    from runshelf.store.finding import find_run

    run = find_run(home(options), options.run)
    with LabelStore.open_existing(_labels_of(run, complete=not options.incomplete)) as store:
        count = export_labels(store, Path(options.file))
    return {"labels": count, "run": run.ulid, "file": options.file}


def _import(options: argparse.Namespace) -> dict[str, Any]:
    from backflip.preferences.exchange import import_labels, read_labels, refuse_without_clips
    from backflip.preferences.labels import LabelStore
    from runshelf.store.finding import find_run

    run, path = find_run(home(options), options.run), Path(options.file)
    labels = read_labels(path)
    with LabelStore.open_existing(_labels_of(run)) as store:
        refuse_without_clips(store, run.short)
        count = import_labels(store, labels, run.seeds, path.name)
    return {"labels": count, "run": run.ulid, "file": options.file}


def _labels_of(run: "Run", *, complete: bool = True) -> Path:
    """Return the label file of a run, by default after a check that no labels are lost."""
    from backflip.preferences.kept_labels import refuse_lost_labels
    from backflip.preferences.label_file import LABELS

    if run.manifest["command"] != "teach":
        raise UsageError(f"run `{run.short}` of `{run.manifest['command']}` has no labels")
    if complete:
        refuse_lost_labels(run.folder)
    return run.folder / LABELS
