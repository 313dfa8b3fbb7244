"""Pages of large runs: a process of their own makes them, so that other pages never wait for them.

Reading a large run takes the interpreter for seconds. In the process of the server, whatever the
number of threads, all other pages would wait.
"""

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import final

from starlette.requests import Request
from starlette.responses import Response

from runshelf.index.rows import Outline
from runshelf.web.pages.run_tabs import RunTab
from runshelf.web.serving.worker_process import WorkerProcess

# Of all files that a page may parse. A page of less takes the interpreter for at most about 0.2 s.
LARGE_BYTES = 2**20
PAGE_SECONDS = 60.0
_PARSED = (".json", ".jsonl", ".npz")
_OF_METRICS = "metrics-"
_PROGRAM = "runshelf.web.serving.page_worker"


def are_large(outlines: Iterable[Outline]) -> bool:
    """Return whether reading these runs takes so long that a process of its own must do it."""
    rest = LARGE_BYTES
    for outline in outlines:
        rest -= parsed_bytes(outline.folder)
        if rest < 0:
            return True
    return False


def parsed_bytes(folder: Path) -> int:
    """Return the size of the files of a run that pages parse."""
    total = 0
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _is_parsed(entry.name) and entry.is_file(follow_symlinks=False):
                total += entry.stat(follow_symlinks=False).st_size
    return total


def _is_parsed(name: str) -> bool:
    return name.endswith(_PARSED[:2]) or (name.startswith(_OF_METRICS) and name.endswith(_PARSED))


@final
class LargeRuns:
    """Makes the pages of large runs of a home.

    Args:
        home: the folder whose `runs/` holds runs.
        tabs: tabs that the program adds to the pages of a run; they are named on each page.
    """

    def __init__(self, home: Path, tabs: Sequence[RunTab] = ()) -> None:
        self._tabs = [list(tab) for tab in tabs]
        self._worker = WorkerProcess(_PROGRAM, home, "that shows large runs", PAGE_SECONDS)

    async def page(self, request: Request) -> Response:
        """Return the page that a request asks for.

        Raises:
            Busy: too many requests are waiting.
            UserFacingError: the page cannot be made.
        """
        query: bytes = request.scope["query_string"]
        answer = await self._worker.ask(
            {
                "path": request.scope["path"],
                "query": query.decode("latin-1"),
                "tabs": self._tabs,
            }
        )
        response = Response(answer.body, answer.fields["status"])
        for name, value in answer.fields["headers"]:
            response.headers[name] = value
        return response

    async def close(self) -> None:
        """End the process."""
        await self._worker.close()
