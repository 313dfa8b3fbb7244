"""How much of what a training run has saved is not needed to act."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

MIB = 2**20
DEEPEST = 2  # folders below that of the log
MOST = 1_000  # files that are looked at
MOST_LISTED = 2**20  # bytes of an archive's list of contents: a hostile one could fill the memory
END = 2**16 + 42  # bytes: the last record with its comment, and what locates that of ZIP64
REPLAY = "replay_buffer"  # in the names of Stable-Baselines3's `CheckpointCallback`


def unneeded_mib(folder: Path) -> float | None:
    """Return the MiB of optimisers' states and replays in the models saved below a folder.

    Models are those of Stable-Baselines3: archives, of which only the lists of contents are read,
    and replays beside them. None if there is no such file.
    """
    sizes = [size for path in _files(folder) for size in _unneeded(path)]
    return sum(sizes) / MIB if sizes else None


def of_checkpoint(checkpoint: Path, policy: Path) -> float | None:
    """Return the MiB of a run's checkpoint beyond its policy; None if either is missing."""
    try:
        return max(0, checkpoint.stat().st_size - policy.stat().st_size) / MIB
    except OSError:
        return None


def _files(folder: Path) -> Iterator[Path]:
    """Yield files at most `DEEPEST` folders below; links are not followed."""
    seen, level = 0, [folder]
    for _ in range(DEEPEST + 1):
        below = list[Path]()
        for path in (path for one in level for path in _entries(one)):
            seen += 1
            if seen > MOST:
                return
            if path.is_symlink():
                continue
            if path.is_dir():
                below.append(path)
            elif path.is_file():
                yield path
        level = below


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _unneeded(path: Path) -> list[int]:
    """Return the sizes of what acting does not need, in bytes; empty if it is not a saved model."""
    try:
        if path.suffix == ".pkl" and REPLAY in path.name:
            return [path.stat().st_size]
        if path.suffix != ".zip" or not _is_small_list(path):
            return []
        with zipfile.ZipFile(path) as archive:
            parts = [one for one in archive.infolist() if one.filename.endswith(".pth")]
    except (OSError, ValueError, OverflowError, NotImplementedError, zipfile.BadZipFile):
        return []
    return [one.compress_size for one in parts if "optimizer" in one.filename]


def _is_small_list(path: Path) -> bool:
    """Return whether the end of a ZIP archive says that its list of contents is small."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - END))
        tail = file.read(END)
    at = tail.rfind(b"PK\x05\x06")
    size = int.from_bytes(tail[at + 12 : at + 16], "little")
    return at >= 0 and b"PK\x06\x07" not in tail and size <= MOST_LISTED  # of ZIP64: elsewhere
