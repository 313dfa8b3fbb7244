"""The file that keeps the port and the secret of a page."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from packages.runshelf.tests.attacks.commands import no_hang
from tests.attack_figures import Tried

from runshelf.web.serving.address import LOOPBACK, bind_endpoint, saved_port

IN_ITS_PLACE: dict[str, Callable[[Path], object]] = {
    "a link": lambda file: file.symlink_to(file.rename(file.with_name("other"))),
    "a pipe": lambda file: (file.unlink(), os.mkfifo(file)),
    "a folder": lambda file: (file.unlink(), file.mkdir()),
    "a list": lambda file: file.write_text("[1]"),
    "deep JSON": lambda file: file.write_text("[" * 100_000),
    "more than it can have": lambda file: file.write_text(" " * 5_000 + file.read_text()),
    "no UTF-8": lambda file: file.write_bytes(b"{\xff}"),
}


@pytest.mark.attack
@pytest.mark.parametrize("what", IN_ITS_PLACE)
def test_only_a_sound_regular_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, tried: Tried
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    listener, endpoint = bind_endpoint(tmp_path, LOOPBACK, 0)
    listener.close()
    assert saved_port(tmp_path) == endpoint.port
    (file,) = (tmp_path / "cache").rglob("page.json")
    IN_ITS_PLACE[what](file)
    with no_hang():
        assert saved_port(tmp_path) is None
    tried(1, "files in the place of the file with a page's secret")
