"""A run with pairs, and a real server process."""

from collections.abc import Generator
from pathlib import Path

import pytest
from packages.backflip.tests.labelling.web.pool import Server, ask, serving, tell


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run that asks 12 pairs."""
    tell(tmp_path)
    ask(tmp_path, 12)
    return tmp_path


@pytest.fixture
def server(folder: Path) -> Generator[Server, None, None]:
    with serving(folder) as server:
        yield server
