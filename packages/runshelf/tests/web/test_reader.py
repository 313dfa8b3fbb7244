"""The reader before the first refresh of the index."""

from pathlib import Path

from packages.runshelf.tests.web.runs import begin
from tests.coroutines import finished

from runshelf.index.run_index import open_index
from runshelf.web.reader import Reader


def test_the_summary_before_the_first_refresh_is_not_cached(tmp_path: Path) -> None:
    """Otherwise the headline would be older than the table of the same page."""

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
