"""A run with pairs, and a real server process."""

from collections.abc import Generator
from pathlib import Path

import pytest
from packages.backflip.tests.labelling.page.prepared_run import (
    Server,
    add_pairs,
    serving,
    set_status,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run with 12 pairs."""
    set_status(tmp_path)
    add_pairs(tmp_path, 12)
    return tmp_path


@pytest.fixture
def server(folder: Path) -> Generator[Server, None, None]:
    with serving(folder) as server:
        yield server
