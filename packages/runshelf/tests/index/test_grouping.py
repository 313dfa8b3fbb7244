"""Independent samples: each seed of a group counts once, in every table and mean."""

import math
from pathlib import Path

import numpy as np
import pytest
from packages.runshelf.tests.index.homes import make_run, ulid
from scipy import stats

from runshelf.index.grouping import samples
from runshelf.index.rows import Estimate, Repeat
from runshelf.index.run_index import open_index

STOPPED = [{"status": "stopped", "time": "2026-11-21T11:00:00+00:00"}]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    return tmp_path


def add(home: Path, number: int, seeds: list[int], values: dict[int | None, float], **fields):
    """Add a run of group `g` that logged one score per seed."""
    records = [
        {"step": 0, "score": value} | ({} if seed is None else {"seed": seed})
        for seed, value in values.items()
    ]
    day = {"created": f"2026-11-{number:02d}T00:00:00+00:00"}
    make_run(home, number, **({"group": "g", "seeds": seeds} | day | fields), records=records)


def the_group(home: Path, *columns: str, filter: str = ""):
    with open_index(home) as index:
        assert index.refresh() == []
        (row,) = index.groups(filter, columns=columns).rows
        return row


def counted(home: Path):
    """Return the counted (run, seed) pairs of the group, by number."""
    with open_index(home) as index:
        index.refresh()
        found = samples(index.members("g"))
    return sorted((int(row.ulid[-1], 32), seed) for row, seed in found.counted)


def test_a_rerun_of_a_seed_counts_once_in_the_newest_finished_run(home: Path) -> None:
    add(home, 1, [7], {7: 1.0})
    add(home, 2, [7], {7: 2.0})
    add(home, 3, [7], {7: 9.0}, events=STOPPED)
    row = the_group(home, "score")
    assert (row.runs, row.n, row.seeds) == (3, 1, [7])
    assert row.values["score"] == 2.0
    assert row.repeats == [Repeat(ulid(1), 7, ulid(2), "seed"), Repeat(ulid(3), 7, ulid(2), "seed")]
    assert counted(home) == [(2, 7)]


def test_without_a_finished_run_the_newest_counts(home: Path) -> None:
    add(home, 1, [7], {7: 1.0}, events=STOPPED)
    add(home, 2, [7], {7: 2.0}, events=STOPPED)
    assert the_group(home, "score").values["score"] == 2.0


def test_overlapping_runs_of_several_seeds_count_each_seed_once(home: Path) -> None:
    add(home, 1, [0, 1, 2], {0: 10.0, 1: 20.0, 2: 30.0})
    add(home, 2, [2, 3], {2: 33.0, 3: 40.0})
    row = the_group(home, "score", "score.min")
    assert (row.n, row.seeds) == (4, [0, 1, 2, 3])
    assert row.values == {"score": 25.75, "score.min": 25.75}
    assert row.repeats == [Repeat(ulid(1), 2, ulid(2), "seed")]
    low, high = stats.t.interval(0.95, 3, np.mean([10, 20, 33, 40]), stats.sem([10, 20, 33, 40]))
    one = row.estimates["score"]
    assert (one.n, one.mean) == (4, 25.75)
    assert (one.low, one.high) == pytest.approx((low, high))
    assert counted(home) == [(1, 0), (1, 1), (2, 2), (2, 3)]


def test_only_runs_that_match_the_filter_count(home: Path) -> None:
    add(home, 1, [7], {7: 1.0})
    add(home, 2, [7], {7: 2.0})
    row = the_group(home, "score", filter="score<2")
    assert (row.n, row.values["score"], row.repeats) == (1, 1.0, [])
    assert row.estimates["score"] == Estimate(1, 1.0, None, None)


def test_runs_without_seeds_count_once_if_all_values_are_identical(home: Path) -> None:
    for number, (loss, seconds) in enumerate([(0.5, 3.0), (0.5, 4.0), (0.25, 3.0)], 1):
        make_run(
            home,
            number,
            group="g",
            created=f"2026-11-{number:02d}T00:00:00+00:00",
            records=[{"step": 0, "loss": loss, "update/seconds": seconds, "system/cpu": seconds}],
        )
    row = the_group(home)
    assert (row.runs, row.n, row.seeds) == (3, 2, [])
    assert row.repeats == [Repeat(ulid(1), None, ulid(2), "values")]


def test_a_run_without_a_seed_is_no_sample_beside_a_seed_with_its_values(home: Path) -> None:
    add(home, 1, [4], {4: 1.0})
    add(home, 2, [], {None: 1.0})
    add(home, 3, [5], {5: 1.0})
    row = the_group(home)
    assert (row.n, row.seeds) == (2, [4, 5])
    assert [(one.run, one.why) for one in row.repeats] == [(ulid(2), "values")]


def test_runs_without_any_value_are_not_known_to_be_repeats(home: Path) -> None:
    add(home, 1, [], {})
    add(home, 2, [], {})
    assert the_group(home).n == 2


def test_a_folder_that_was_imported_again_counts_once(home: Path) -> None:
    for number in (1, 2):
        imported = {"from": "/logs/a", "kind": "sb3"}
        add(home, number, [], {None: float(number)}, command="import", imported=imported)
    add(home, 3, [], {None: 3.0}, command="import", imported={"from": "/logs/b", "kind": "sb3"})
    row = the_group(home, "score")
    assert (row.n, row.values["score"]) == (2, 2.5)
    assert row.repeats == [Repeat(ulid(1), None, ulid(2), "source")]


def test_seeds_that_only_the_metrics_name_count(home: Path) -> None:
    add(home, 1, [], {4: 1.0, 5: 3.0})
    add(home, 2, [], {5: 8.0})
    row = the_group(home, "score")
    assert (row.seeds, row.n, row.values["score"]) == ([4, 5], 2, 4.5)


def test_groups_are_sorted_by_the_mean_over_samples(home: Path) -> None:
    add(home, 1, [0], {0: 100.0}, group="repeated")
    add(home, 2, [0], {0: 1.0}, group="repeated")
    add(home, 3, [0], {0: 10.0}, group="single")
    add(home, 4, [0], {0: math.nan}, group="wrong")
    make_run(home, 5, group="without")
    with open_index(home) as index:
        index.refresh()
        names = [row.group for row in index.groups(sort="score").rows]
        back = [row.group for row in index.groups(sort="-score").rows]
    assert names == ["repeated", "single", "wrong", "without"]
    assert back == ["single", "repeated", "wrong", "without"]
