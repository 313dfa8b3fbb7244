"""The folder in which the tests of backflip run."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def empty_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run the tests in an empty folder.

    A run archives the code around the current folder. Here that would be this repository: half a
    second for each of hundreds of runs.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("current"))
        yield
