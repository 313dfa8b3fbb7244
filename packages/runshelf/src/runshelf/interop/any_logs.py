"""Reads logs of any kind into a temporary home, where they are runs like others."""

from collections.abc import Sequence
from pathlib import Path

from runshelf.errors import UsageError, UserFacingError
from runshelf.interop.import_logs import import_path
from runshelf.interop.import_tables import import_tables, nothing_to_read
from runshelf.store.run import RunInfo


def read_logs(home: Path, path: Path, argv: Sequence[str]) -> list[str]:
    """Make runs of all logs at or below a path, or of one file; return what was skipped, in words.

    Args:
        home: the home of the runs.
        path: event files of TensorBoard, files of Stable-Baselines3, W&B or CSV, or a folder.
        argv: the command line.

    Raises:
        UsageError: there is no log.
        UserFacingError: no log can be read.
    """
    notes: list[str] = []
    made = import_tables(home, path, argv=argv, say=notes.append)
    try:
        import_path(home, path, info=RunInfo(), argv=argv, say=lambda _: None)
    except UsageError as error:
        if not made:
            raise nothing_to_read(path, notes) from error
    except UserFacingError as error:
        if not made:
            raise
        notes.append(str(error))
    return notes
