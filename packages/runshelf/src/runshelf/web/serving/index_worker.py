"""The process that reads run folders into the index, so that pages never wait for it.

Each request is for one refresh; an argument names the home.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from runshelf.index.refresh import Progress
from runshelf.index.run_index import Index, open_index
from runshelf.web.serving.worker_loop import Answer, Say, answer_requests

PROGRAM = "runshelf.web.serving.index_worker"
_SHORT = 500  # folders, read in about a second


@final
class Refresher:
    """Refreshes the index of a home.

    Args:
        home: the folder whose `runs/` holds runs.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._index: Index | None = None

    def refresh(self, _: Mapping[str, Any], say: Say) -> Answer:
        """Refresh the index; say how far it is."""
        self._index = self._index or open_index(self._home)
        self._index.refresh(lambda progress: say(in_words(progress)))
        return Answer({})


def in_words(progress: Progress) -> str:
    """Return the progress of a long refresh in words; empty for a short one."""
    if progress.total <= _SHORT:
        return ""
    return f"reading run folders: {progress.done} of {progress.total}"


if __name__ == "__main__":
    answer_requests(Refresher(Path(sys.argv[1])).refresh)
