"""Tabs that a program adds to the pages of a run. A process of its own makes each."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, final

from runshelf.web.serving.worker_process import WorkerProcess

SECONDS = 60.0


@final
class RunTab(NamedTuple):
    """A tab beside the curves, the output and the code of a run.

    Attributes:
        name: the last part of its address.
        label: what the page calls it.
        program: a module that calls `worker_loop.answer_requests`. A request holds the `folder` of
            a run; the body of the answer is HTML, in which every text is escaped.
    """

    name: str
    label: str
    program: str


@final
class RunTabs:
    """Makes the contents of tabs.

    Args:
        home: the folder whose `runs/` holds runs.
        tabs: the tabs, in the order of the page.
    """

    def __init__(self, home: Path, tabs: Sequence[RunTab] = ()) -> None:
        self.tabs = tuple(tabs)
        self._workers = {
            tab.name: WorkerProcess(tab.program, home, f"that makes the tab {tab.label}", SECONDS)
            for tab in tabs
        }

    async def content(self, name: str, folder: Path) -> str:
        """Return the content of a tab for a run, as HTML.

        Raises:
            Busy: too many requests are waiting.
            UserFacingError: the run cannot be read.
        """
        answer = await self._workers[name].ask({"folder": str(folder)})
        return answer.body.decode("utf-8", "replace")

    async def close(self) -> None:
        """End the processes."""
        for worker in self._workers.values():
            await worker.close()
