"""Plants links, pipes and other traps in the folder of a run, as a received folder may have."""

import os
import shutil
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

SECONDS = 20.0  # a command that takes longer hangs


class Seen(NamedTuple):
    """What an attack may not change of a file outside: kind, content, target, mode and time."""

    mode: int
    content: bytes
    modified: int


def plant_link(path: Path, outside: Path) -> None:
    """Move the file out, and leave a link to it: everything that a command reads stays valid."""
    path.symlink_to(_moved_out(path, outside))


def plant_dangling_link(path: Path, outside: Path) -> None:
    _away(path)
    path.symlink_to(outside / "created")


def plant_link_to_a_folder(path: Path, outside: Path) -> None:
    _away(path)
    path.symlink_to(outside)


def plant_link_to_a_device(path: Path, outside: Path) -> None:
    _away(path)
    path.symlink_to("/dev/zero")


def plant_hard_link(path: Path, outside: Path) -> None:
    path.hardlink_to(_moved_out(path, outside))


def plant_pipe(path: Path, outside: Path) -> None:
    _away(path)
    os.mkfifo(path)


def plant_socket(path: Path, outside: Path) -> None:
    _away(path)
    with socket.socket(socket.AF_UNIX) as bound:
        before = Path.cwd()
        os.chdir(path.parent)  # the address of a socket must be short
        try:
            bound.bind(path.name)
        finally:
            os.chdir(before)


def plant_folder(path: Path, outside: Path) -> None:
    _away(path)
    path.mkdir()


TRAPS: tuple[Callable[[Path, Path], None], ...] = (
    plant_link,
    plant_dangling_link,
    plant_link_to_a_folder,
    plant_link_to_a_device,
    plant_hard_link,
    plant_pipe,
    plant_socket,
    plant_folder,
)


def seen(folder: Path) -> dict[str, Seen]:
    """Return everything in a folder, to compare it after an attack."""
    found: dict[str, Seen] = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path.relative_to(folder))] = Seen(status.st_mode, content, status.st_mtime_ns)
    return found


@contextmanager
def must_end() -> Generator[None, None, None]:
    """Fail if the block hangs, as a command does that opens a pipe."""

    def hangs(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"hangs for {SECONDS:g} s")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _moved_out(path: Path, outside: Path) -> Path:
    """Move a file out of its folder, or create one there if it is missing."""
    target = outside / path.name
    if path.is_file():
        path.rename(target)
    else:
        _away(path)
        target.write_bytes(b"victim\n")
    return target


def _away(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
