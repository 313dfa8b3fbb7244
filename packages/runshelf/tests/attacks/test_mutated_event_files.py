"""Mutated TensorBoard event files: all sound records are imported, and a line names the damage."""

import random
from pathlib import Path

import pytest
from packages.runshelf.tests.attacks.commands import no_hang, said_by
from tests.attack_figures import Tried

from runshelf.cli.main import main
from runshelf.interop.event_files import scalar_event, version_event
from runshelf.store.metrics import read_metrics

pytestmark = pytest.mark.attack

RECORDS = [version_event(1.0), *(scalar_event(2.0 + n, n, [("loss", n / 2)]) for n in range(12))]
ENDS = [sum(map(len, RECORDS[: n + 1])) for n in range(len(RECORDS))]
WHOLE = b"".join(RECORDS)


def imported(place: Path, data: bytes) -> tuple[int, list[float], str]:
    """Import an event file; return the exit status, the values, and what was printed."""
    (place / "logs").mkdir(parents=True)
    (place / "logs" / "events.out.tfevents.1.host").write_bytes(data)
    status, printed, noted = said_by(main, "import", str(place / "logs"), f"--home={place}")
    said = printed + noted
    assert status in (0, 1), said
    assert "Traceback" not in said
    assert "unexpected" not in said
    runs = list(place.glob("runs/0*"))
    records = [record for run in runs for record in read_metrics(run).records]
    return status, [record["loss"] for record in records if "loss" in record], said


def complete(cut: int) -> int:
    """Return how many records of values end before a byte."""
    return sum(end <= cut for end in ENDS[1:])


@pytest.mark.medium
def test_flipped_bytes_are_named_and_spoil_only_their_record(tmp_path: Path, tried: Tried) -> None:
    rng, count = random.Random(20261123), 60
    for number in range(count):
        data, at = bytearray(WHOLE), rng.randrange(len(WHOLE))
        data[at] ^= 1 << rng.randrange(8)
        status, values, said = imported(tmp_path / str(number), bytes(data))
        # The first record has no values.
        assert values == [n / 2 for n in range(12) if n != complete(at) or at < ENDS[0]], said
        assert status == 0, (at, said)
        assert "1 damaged record skipped" in said, (at, said)
    tried(count, "mutated event files")


@pytest.mark.medium
def test_cut_files_are_imported_up_to_the_cut(tmp_path: Path, tried: Tried) -> None:
    rng, count = random.Random(1), 30
    for number in range(count):
        cut = rng.randrange(ENDS[0], len(WHOLE))
        _, values, said = imported(tmp_path / str(number), WHOLE[:cut])
        assert values == [n / 2 for n in range(complete(cut))]
        assert ("torn" in said) == (cut not in ENDS), (cut, said)
    tried(count, "mutated event files")


@pytest.mark.medium
def test_repeated_and_moved_records_are_kept(tmp_path: Path, tried: Tried) -> None:
    rng, count = random.Random(2), 20
    for number in range(count):
        records = list(range(12))
        records += [rng.choice(records) for _ in range(rng.choice((1, 12)))]
        rng.shuffle(records)
        data = b"".join([RECORDS[0], *(RECORDS[n + 1] for n in records)])
        status, values, _ = imported(tmp_path / str(number), data)
        assert (status, sorted(values)) == (0, sorted(n / 2 for n in records))
    tried(count, "mutated event files")


@pytest.mark.medium
def test_files_that_are_no_event_files_are_named(tmp_path: Path, tried: Tried) -> None:
    rng = random.Random(3)
    junk = [b"", b"\0" * 5_000, b"\xff" * 5_000, WHOLE[::-1], rng.randbytes(5_000)]
    for number, data in enumerate(junk):
        with no_hang():
            status, values, said = imported(tmp_path / str(number), data)
        assert (status, values) == (1, [])
        assert "events.out.tfevents" in said
    without_begin = imported(tmp_path / "begin", WHOLE[1:])
    assert without_begin[:2] == (0, [n / 2 for n in range(12)])
    tried(len(junk) + 1, "mutated event files")
