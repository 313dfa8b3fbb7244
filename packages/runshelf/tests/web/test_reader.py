"""Tests of what pages are told while the home is still being read."""

from pathlib import Path

from packages.runshelf.tests.web.runs import begin
from tests.coroutines import finished

from runshelf.index.run_index import open_index
from runshelf.web.reader import Reader


def test_what_is_said_of_now_before_the_home_is_read_is_not_kept(tmp_path: Path) -> None:
    """The table and the headline of one page are of the same moment."""

    async def running() -> tuple[int, int]:
        reader = await Reader.open(tmp_path)
        before = await reader.summary()
        with open_index(tmp_path) as index:
            index.refresh()
        after = await reader.summary()
        await reader.close()
        return before.running_total, after.running_total

    with begin(tmp_path):
        assert finished(running()) == (0, 1)
