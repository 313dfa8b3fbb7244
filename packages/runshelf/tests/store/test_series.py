"""Metrics as curves, buckets and summaries, each compared with its definition."""

import json
import math
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runshelf.errors import UsageError
from runshelf.store import compacting, logged_media, series, summary
from runshelf.store.records import to_json


def write(folder, writer, *records):
    with (folder / f"metrics-{writer}.jsonl").open("a") as file:
        file.writelines(json.dumps(to_json(record)) + "\n" for record in records)


def points(folder, metric, axis):
    """Return one metric as lists by seed."""
    found = series.read_series(folder, [metric], axis)[metric]
    return {seed: (s.x.tolist(), s.y.tolist()) for seed, s in found.items()}


@pytest.fixture(params=["lines", "columns", "both"])
def stored(request, tmp_path):
    """A function that stores a run as lines, as columns, and as both."""

    def store(*records, writer="log-1-a"):
        half = len(records) // 2
        if request.param == "both":
            write(tmp_path, writer, *records[:half])
            compacting.compact(tmp_path)
            write(tmp_path, writer, *records[half:])
        else:
            write(tmp_path, writer, *records)
            if request.param == "columns":
                compacting.compact(tmp_path)
        return tmp_path

    return store


def test_a_curve_per_seed_ordered_by_x_then_by_position(stored):
    folder = stored(
        *({"step": step, "seed": seed, "loss": step / 10} for seed in (3, 1) for step in range(20)),
        {"step": 5, "seed": 1, "loss": -1.0},
        {"step": 5, "seed": 1, "loss": -2.0},
    )
    found = points(folder, "loss", "step")
    assert list(found) == [1, 3]
    assert found[3] == ([float(n) for n in range(20)], [n / 10 for n in range(20)])
    assert found[1][0] == sorted([*range(20), 5, 5])
    assert found[1][1][5:8] == [0.5, -1.0, -2.0]


@pytest.mark.parametrize("seed", [math.nan, math.inf, -math.inf])
def test_a_seed_that_is_not_finite_counts_as_no_seed(stored, seed):
    folder = stored(
        *({"step": step, "seed": 2, "loss": 1.0} for step in range(9)),
        {"step": 0, "seed": seed, "loss": 3.0},
        {"step": 1, "loss": 4.0},
    )
    found = points(folder, "loss", "step")
    assert list(found) == [2, None]
    assert found[None] == ([0.0, 1.0], [3.0, 4.0])


def test_records_without_a_seed_and_with_text_are_a_curve_too(stored):
    folder = stored(
        *({"step": n, "loss": float(n)} for n in range(10)),
        {"step": 10, "loss": 10, "note": "text"},
        {"step": 11, "loss": "text"},
        {"step": 12, "loss": math.nan},
        {"step": 13, "loss": True},
        {"step": 14, "loss": 10**400},
        {"step": 15, "other": [1]},
    )
    x, y = points(folder, "loss", "step")[None]
    assert x == [*range(11), 12, 13, 14]
    assert y[:11] == list(range(11))
    assert math.isnan(y[11])
    assert y[12:] == [1.0, math.inf]


def test_steps_fall_back_to_env_steps_updates_and_position(stored):
    folder = stored(
        *({"env_steps": n * 256, "updates": n, "a": n} for n in range(8)),
        *({"updates": n, "b": n} for n in range(8)),
        *({"c": n} for n in range(8)),
        {"step": 1, "updates": 77, "d": 1},
        {"updates": 78, "d": 2},
    )
    assert points(folder, "a", "step")[None][0] == [n * 256 for n in range(8)]
    assert points(folder, "b", "step")[None][0] == list(range(8))
    assert points(folder, "c", "step")[None] == (list(range(8)), list(range(8)))
    assert points(folder, "d", "step")[None][0] == [77, 78], "one axis for the whole curve"


def test_another_axis_leaves_out_the_records_that_lack_it(stored):
    folder = stored(*({"step": n, "a": n} for n in range(9)), {"frames": 7, "step": 99, "a": 5})
    assert points(folder, "a", "frames")[None] == ([7], [5])
    assert points(folder, "a", "episodes") == {}
    assert points(folder, "absent", "step") == {}


def test_time_counts_from_the_first_record_of_the_run(stored):
    folder = stored({"time": 1000.5, "other": 1}, *({"time": 1001.0 + n, "a": n} for n in range(9)))
    assert points(folder, "a", "time")[None][0] == [n + 0.5 for n in range(9)]
    assert points(folder, "a", "seconds")[None][0] == [n + 0.5 for n in range(9)]


def test_seconds_stand_in_for_time(stored):
    folder = stored(*({"seconds": n * 2.0, "a": n} for n in range(9)))
    assert points(folder, "a", "time")[None][0] == [n * 2.0 for n in range(9)]


def test_records_repeated_by_a_resume_count_once(stored):
    old = [{"seed": s, "updates": u, "x": 1.0} for u in range(10) for s in (0, 1)]
    new = [{"seed": 0, "updates": u, "x": 2.0} for u in (8, 9, 10)]
    more = [{"seed": 1, "updates": 9, "x": 3.0, "y": 1.0}]
    folder = stored(*old, *new, *more, writer="train")
    assert points(folder, "x", "updates") == {
        0: (list(range(11)), [1.0] * 8 + [2.0] * 3),
        1: (list(range(10)), [1.0] * 9 + [3.0]),
    }
    assert points(folder, "y", "updates") == {1: ([9], [1])}


def test_logged_records_of_one_update_are_all_kept(stored):
    folder = stored(*({"seed": 0, "updates": 1, "x": float(n)} for n in range(20)))
    assert points(folder, "x", "updates")[0][1] == list(range(20))


def test_all_writers_belong_to_one_series(tmp_path):
    write(tmp_path, "log-2-b", *({"step": n, "a": 2} for n in range(3)))
    write(tmp_path, "log-1-a", *({"step": n, "a": 1} for n in range(3)))
    assert points(tmp_path, "a", "step")[None] == ([0, 0, 1, 1, 2, 2], [1, 2] * 3)


def test_names_and_axes(stored):
    folder = stored(
        *({"step": n, "seed": 1, "loss": n} for n in range(9)),
        {"time": 1.0, "note": "text", "flag": True, "z/a": math.inf},
    )
    assert series.metric_names(folder) == ["flag", "loss", "z/a"]
    assert series.axes(folder) == ["step", "time"]


def test_an_unknown_axis_raises_one_line(tmp_path):
    with pytest.raises(UsageError, match="did you mean `step`"):
        series.read_series(tmp_path, ["a"], "steps")


def slow_buckets(x, y, buckets):
    """Compute every bucket by its definition."""
    found = {}
    for at, value in zip(x, y, strict=True):
        span = x[-1] / 2 - x[0] / 2
        share = (at / 2 - x[0] / 2) / span if span else 0.0
        found.setdefault(min(int(share * buckets), buckets - 1), []).append((at, value))
    rows = []
    for _, inside in sorted(found.items()):
        known = [value for _, value in inside if not math.isnan(value)]
        rows.append(
            (
                sum(at for at, _ in inside) / len(inside),
                *(f(known) if known else math.nan for f in (min, max, lambda v: sum(v) / len(v))),
                known[-1] if known else math.nan,
                len(known),
                len(inside) - len(known),
            )
        )
    return rows


VALUES = st.floats(-1e6, 1e6) | st.just(math.nan)


@pytest.mark.medium
@given(
    st.lists(st.tuples(st.integers(-50, 50) | st.floats(-1e3, 1e3), VALUES), max_size=60),
    st.integers(1, 20),
)
def test_buckets_match_their_definition(values, buckets):
    values = sorted(values, key=lambda pair: pair[0])
    x, y = ([float(pair[n]) for pair in values] for n in (0, 1))
    found = series.bucket(series.Series(np.array(x), np.array(y)), buckets)
    columns = (found.x, found.minimum, found.maximum, found.mean, found.last)
    rows = list(zip(*columns, found.count, found.nans, strict=True))
    expected = slow_buckets(x, y, buckets)
    assert len(rows) == len(expected)
    np.testing.assert_allclose(rows, expected or rows, rtol=1e-9, atol=1e-9)


def test_a_spike_survives_any_bucket():
    y = np.zeros(100_000)
    y[77_777] = 1e9
    found = series.bucket(series.Series(np.arange(100_000.0), y), 100)
    assert len(found.x) == 100
    assert found.maximum.max() == 1e9


def test_buckets_of_extreme_and_missing_x():
    huge = series.Series(np.array([-1.7e308, 0.0, 1.7e308]), np.array([1.0, 2.0, 3.0]))
    assert series.bucket(huge, 2).count.tolist() == [1, 2]
    lost = series.Series(np.array([1.0, math.nan, math.inf]), np.ones(3))
    assert series.bucket(lost, 4).count.tolist() == [1]
    infinite = series.Series(np.arange(2.0), np.array([math.inf, -math.inf]))
    found = series.bucket(infinite, 1)
    assert (found.maximum[0], found.minimum[0]) == (math.inf, -math.inf)


def test_a_summary_matches_its_definition(stored):
    folder = stored(
        *({"step": n, "seed": s, "a": float(n + s)} for s in (0, 10) for n in range(10)),
        *({"step": n, "nan": math.nan} for n in range(9)),
        {"step": 3, "late": 1.0},
        {"step": 2, "late": 5.0},
    )
    found = summary.summarise(folder)
    assert found["a"] == summary.Summary(14.0, 0.0, 19.0, 9.5, 20)
    assert found["late"] == summary.Summary(1.0, 1.0, 5.0, 3.0, 2)
    assert found["nan"].count == 9
    assert math.isnan(found["nan"].last)
    assert math.isnan(found["nan"].maximum)


def test_an_outdated_summary_is_computed_again(tmp_path):
    write(tmp_path, "log-1-a", {"step": 0, "a": 1.0}, {"step": 1, "a": math.inf})
    compacting.compact(tmp_path)
    assert json.loads((tmp_path / "summary.json").read_text())["metrics"]["a"] == {
        "last": "Infinity",
        "min": 1.0,
        "max": "Infinity",
        "mean": "Infinity",
        "n": 2,
    }
    computed = summary.summarise(tmp_path)
    fields = json.loads((tmp_path / "summary.json").read_text())
    fields["metrics"]["a"]["last"] = 77.0
    (tmp_path / "summary.json").write_text(json.dumps(fields))
    assert summary.summarise(tmp_path)["a"].last == 77.0
    write(tmp_path, "log-1-a", {"step": 2, "a": 2.0})
    # The time of the file must not matter: a copied run has others.
    os.utime(tmp_path / "summary.json")
    assert summary.summarise(tmp_path)["a"] == summary.Summary(2.0, 1.0, math.inf, math.inf, 3)
    assert computed["a"].last == math.inf


@pytest.mark.parametrize("text", ["", "[]", '{"files": {}}', '{"metrics": 3, "files": {}}'])
def test_a_damaged_summary_is_computed_again(tmp_path, text):
    (tmp_path / "summary.json").write_text(text)
    assert summary.summarise(tmp_path) == {}


def test_media_are_found_only_inside_the_run(stored):
    name = f"media/{'0a' * 32}.png"
    folder = stored(
        {"step": 3, "seed": 1, "picture": {"image": name}},
        {"env_steps": 4, "film": {"clip": name.replace("png", "webp"), "fps": 30}},
        *({"step": 1, "evil": {"image": path}} for path in ("../../x.png", "/etc/passwd", 3)),
        {"step": 1, "evil": {"image": f"media/../{'0a' * 32}.png"}, "other": {"a": 1}},
    )
    found = logged_media.media(folder)
    assert found == [
        logged_media.Media("picture", "image", folder / name, {"step": 3.0}, 1),
        logged_media.Media(
            "film", "clip", folder / name.replace("png", "webp"), {"env_steps": 4.0}, None
        ),
    ]
