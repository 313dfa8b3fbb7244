"""Makes a sweep, or finds one that was made before."""

from pathlib import Path

from runshelf.errors import UsageError, UserFacingError
from runshelf.store.files import is_disk_full
from runshelf.store.home import make_shared, shared
from runshelf.store.paths import is_file, is_folder
from runshelf.store.writing import rename_file, write_once
from runshelf.sweeps.definition import (
    SWEEP,
    Definition,
    Sweep,
    check_definition,
    read_sweep,
    text_of,
    to_json,
)
from runshelf.sweeps.results import BLOCKS, done_name, read_results

SWEEPS = "sweeps"


def folder_of(home: Path, name: str) -> Path:
    """Return the folder of a sweep: a path, or a name within the home.

    Raises:
        UsageError: the name is empty, or begins with a dot.
    """
    if "/" in name or is_file(Path(name) / SWEEP):
        return Path(name)
    if not name or name.startswith((".", "-")) or not name.isprintable() or len(name) > 100:
        raise UsageError(f"`{name[:100]}` is not a name of a sweep; try lr-sweep, or ./{name[:50]}")
    return shared(home, SWEEPS) / name


def make_sweep(folder: Path, home: Path, definition: Definition) -> Sweep:
    """Make a sweep, or return the one in `folder` if it is the same.

    Raises:
        UsageError: the definition is invalid, or another sweep is in the folder.
        UserFacingError: the folder cannot be written.
    """
    check_definition(definition)
    _make_folder(folder, home)
    folder = folder.resolve()
    write_once(folder, SWEEP, text_of(definition))
    sweep = read_sweep(folder)
    before, now = to_json(sweep.definition), to_json(definition)
    different = [name for name in now if before[name] != now[name]]
    if different:
        raise UsageError(
            f"`{folder}` holds another sweep, made with other `{'`, `'.join(different)}`: give "
            "this one another name, or go on with that one by its name alone"
        )
    return sweep


def _make_folder(folder: Path, home: Path) -> None:
    try:
        if folder.parent == shared(home, SWEEPS):
            make_shared(home, SWEEPS)
        (folder / BLOCKS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if is_disk_full(error):
            raise UserFacingError(f"no space left on the disk to make `{folder}`") from error
        raise UsageError(
            f"cannot make the folder `{folder}` of the sweep ({error.strerror}): give another "
            "path, as in ./my-sweep"
        ) from error


def list_sweeps(home: Path) -> list[str]:
    """Return the names of the sweeps in a home."""
    folder = shared(home, SWEEPS)
    if not is_folder(folder):
        return []
    return sorted(entry.name for entry in folder.iterdir() if (entry / SWEEP).is_file())


def open_failed(sweep: Sweep) -> int:
    """Open the blocks that failed, so that they run again; return their number.

    Raises:
        UserFacingError: the folder cannot be written.
    """
    failed = [n for n, one in read_results(sweep.folder, {}).items() if one.state == "failed"]
    for name in failed:
        rename_file(sweep.folder, done_name(name), f"{name}.failed")
    return len(failed)
