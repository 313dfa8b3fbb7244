"""Finds the folders of reruns that were killed, and so could not remove them."""

import time
from pathlib import Path

from runshelf.cleanup.trash import folders_in, without_links
from runshelf.store.home import RERUNS, old_shared, shared
from runshelf.store.run import Run, is_locked
from runshelf.store.run_ids import is_ulid

# A newer folder with another name may be one that is being prepared.
_PREPARING_SECONDS = 3600.0


def left_reruns(home: Path) -> list[Path]:
    """Return the folders of reruns in which neither `rerun` nor its program is running."""
    tops = [without_links(home, place(home, RERUNS)) for place in (shared, old_shared)]
    return [top / name for top in tops for name in folders_in(top) if _is_left(top / name)]


def _is_left(folder: Path) -> bool:
    if is_ulid(folder.name) and (folder / "lock").exists():
        return not is_locked(Run(folder, {}))
    return time.time() - folder.lstat().st_mtime > _PREPARING_SECONDS
