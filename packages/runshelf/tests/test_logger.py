"""`runshelf.log` in real programs: nothing lost, nothing raised, nothing in the way."""

import asyncio
import hashlib
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.coroutines import finished

import runshelf
from runshelf.errors import UsageError
from runshelf.logger import lazy, line_file, names
from runshelf.logger import log as logger
from runshelf.logger.line_file import LineFile
from runshelf.logger.problems import Problems
from runshelf.store import logged_media, media, series
from runshelf.store.compacting import compact
from runshelf.store.finding import find_run, list_runs
from runshelf.store.metrics import SEED, read_metrics
from runshelf.store.state import state_of

LOGGER = Path(logger.__file__).parents[2]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The folder of a run that this process logs into, with a fresh logger."""
    (tmp_path / "run.json").write_text('{"ulid": "0"}')
    monkeypatch.setenv("BACKFLIP_RUN", str(tmp_path))
    monkeypatch.delenv("BACKFLIP_STRICT", raising=False)
    fresh: dict[str, object] = {"_windows": {}, "names": {}, "rows": {}, "problems": Problems()}
    fresh["_file"] = file = LineFile(before_end=logger._flush_rates)
    for module in (logger, names, line_file):
        for name in fresh.keys() & vars(module).keys():
            monkeypatch.setattr(module, name, fresh[name])
    yield tmp_path
    file.pause_syncing()
    file.close()


def records(folder):
    """Return all records without their times."""
    lines = read_metrics(folder)
    assert lines.torn == 0
    return [{k: v for k, v in record.items() if k != "time"} for record in lines.records]


def values(folder):
    return [{k: v for k, v in record.items() if k != "step"} for record in records(folder)]


def python(program, home, *arguments, **environ):
    """Run a program that logs, with its own home."""
    environ = {"BACKFLIP_HOME": str(home), **environ}
    kept = {k: v for k, v in os.environ.items() if not k.startswith("BACKFLIP_")}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *map(str, arguments)],
        env=kept | environ,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def the_run(home):
    (ulid,) = list_runs(home)
    return find_run(home, ulid)


def test_default_steps(run):
    runshelf.log("a", 1.0)
    runshelf.log("b", 2)
    runshelf.log("a", 3.0)
    runshelf.log({"a": 4.0, "b": 5.0})
    runshelf.log({"b": 6.0, "a": 7.0})
    assert records(run) == [
        {"step": 0, "a": 1.0},
        {"step": 0, "b": 2},
        {"step": 1, "a": 3.0},
        {"step": 2, "a": 4.0, "b": 5.0},
        {"step": 1, "b": 6.0, "a": 7.0},
    ]


def test_given_steps_and_axes_are_kept_in_any_order(run):
    for step in (5, 3, 3, -1, 0.5, 2**60):
        runshelf.log("a", 1.0, step=step)
    runshelf.log("a", 1.0, 9)
    runshelf.log({"a": 1.0}, step=np.int64(7), env_steps=np.int32(2), seed=3, frames=1.5)
    runshelf.log("a", 1.0, env_steps=4)
    runshelf.log({"a": 1.0, "env_steps": 6, "step": 8})
    assert [record["step"] for record in records(run)] == [5, 3, 3, -1, 0.5, 2**60, 9, 7, 0, 8]
    assert records(run)[7] == {"step": 7, "env_steps": 2, "seed": 3, "frames": 1.5, "a": 1.0}
    assert [r.get("env_steps") for r in records(run)[-2:]] == [4, 6]


def test_every_record_has_its_time(run):
    before = time.time()
    runshelf.log("a", 1.0)
    runshelf.log("a", 1.0, time=5.0)
    first, second = (record["time"] for record in read_metrics(run).records)
    assert before - 1e-5 <= first <= time.time() + 1e-5
    assert second == 5.0


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.1, 0.1),
        (10**30, 10**30),
        (True, True),
        (np.float64(0.1), 0.1),
        (np.float32(0.5), 0.5),
        (np.float16("nan"), math.nan),
        (np.int8(-3), -3),
        (np.uint64(2**63), 2**63),
        (np.bool_(True), True),
        (np.array(2.5), 2.5),
        (np.longdouble(0.5), 0.5),
        (math.nan, math.nan),
        (math.inf, math.inf),
        (-math.inf, -math.inf),
        (Decimal("0.5"), 0.5),
        ("text, [even] {this} \n", "text, [even] {this} \n"),
        ("é\U0001f600", "é\U0001f600"),
    ],
)
@pytest.mark.parametrize("form", ["single", "known", "row"])
def test_values_are_kept_exactly(run, value, expected, form):
    runshelf.log("b", 1.0)
    if form == "row":
        runshelf.log({"b": 0.5, "a": value})
    else:
        if form == "known":
            runshelf.log("a", value)
        runshelf.log("a", value)
    found = read_metrics(run).records[-1]["a"]
    assert repr(found) == repr(expected)


def test_scalars_of_jax_are_numbers(run):
    jnp = pytest.importorskip("jax.numpy")
    runshelf.log("a", jnp.float32(0.5))
    runshelf.log({"a": jnp.int32(3), "b": jnp.array(1.5, jnp.bfloat16)})
    runshelf.log("a", jnp.array([1.0, 3.0], jnp.bfloat16))
    assert values(run)[:2] == [{"a": 0.5}, {"a": 3, "b": 1.5}]
    assert values(run)[2]["a/mean"] == 2.0


def test_a_tensor_with_a_gradient_is_detached(run):
    class Tensor:  # as PyTorch's: refuses numpy until it is detached
        shape = (2,)
        dtype = "float32"

        def detach(self):
            return self

        def cpu(self):
            return np.array([1.0, 2.0])

        def __array__(self, *_, **__):
            raise RuntimeError("call detach first")

    runshelf.log("a", Tensor())
    assert values(run)[0]["a/max"] == 2.0


@pytest.mark.parametrize(
    "array", [[1.0, 2.0, 4.0], (1, 2, 4), np.array([[1, 2, 4]]), np.array([1, 2, 4], np.uint8)]
)
def test_arrays_become_statistics(run, array):
    runshelf.log("a", array)
    (found,) = values(run)
    mean = 7 / 3
    std = math.sqrt(sum((x - mean) ** 2 for x in (1, 2, 4)) / 3)
    assert found.pop("a/std") == pytest.approx(std)
    assert found.pop("a/mean") == pytest.approx(mean)
    assert found == {"a/min": 1.0, "a/max": 4.0, "a/n": 3}


def test_statistics_ignore_nan_and_count_it(run):
    runshelf.log({"a": np.array([np.nan, 2.0, np.nan]), "b": np.zeros((0, 3)), "c": [np.nan]})
    assert values(run) == [
        {
            "a/min": 2.0,
            "a/max": 2.0,
            "a/mean": 2.0,
            "a/std": 0.0,
            "a/n": 3,
            "a/nans": 2,
            "b/n": 0,
            "c/n": 1,
            "c/nans": 1,
        }
    ]


@pytest.mark.parametrize("shape", [(8, 9), (8, 9, 3), (8, 9, 4)])
@pytest.mark.parametrize("how", ["log", "row", "image"])
def test_images_are_stored_as_png(run, shape, how):
    pixels = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    for _ in range(2):
        if how == "image":
            runshelf.image("picture", pixels, step=4, env_steps=2)
        else:
            runshelf.log(*[("picture", pixels), ({"picture": pixels},)][how == "row"], step=4)
    found = logged_media.media(run)
    assert [(m.key, m.kind, m.x["step"]) for m in found] == [("picture", "image", 4.0)] * 2
    (file,) = (run / "media").iterdir()
    assert file == found[0].path
    assert hashlib.sha256(file.read_bytes()).hexdigest() == file.stem
    with Image.open(file) as picture:
        np.testing.assert_array_equal(np.asarray(picture), pixels)


@pytest.mark.parametrize("shape", [(5, 8, 9), (5, 8, 9, 3), (5, 8, 9, 4)])
@pytest.mark.parametrize("how", ["log", "clip", "list"])
def test_clips_are_stored_as_lossless_webp(run, shape, how):
    # From 1: what is wholly transparent has no colour in WebP.
    frames = np.random.default_rng(0).integers(1, 256, shape).astype(np.uint8)
    if how == "log":
        runshelf.log("film", frames)
    else:
        runshelf.clip("film", list(frames) if how == "list" else frames, fps=20)
    (found,) = logged_media.media(run)
    assert (found.key, found.kind) == ("film", "clip")
    with Image.open(found.path) as film:
        assert film.n_frames == 5
        for index, frame in enumerate(frames):
            film.seek(index)
            shown = np.asarray(film.convert("RGBA" if frame.shape[2:] == (4,) else "RGB"))
            expected = frame if frame.ndim == 3 else np.stack([frame] * 3, -1)
            np.testing.assert_array_equal(shown, expected)
        assert film.info["duration"] == (33 if how == "log" else 50)
    assert records(run)[0]["film"]["frames"] == 5


def test_pillow_images_and_float_images(run):
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4)
    runshelf.log("a", Image.fromarray(pixels))
    runshelf.image("b", pixels / 255)
    runshelf.image("c", Image.fromarray(pixels).convert("P"))
    first, second, third = logged_media.media(run)
    assert first.path == second.path
    with Image.open(third.path) as picture:
        assert picture.mode == "RGBA"


WRONG = [
    (("a", None), {}, "None"),
    (("a", object()), {}, "object"),
    (("a", b"bytes"), {}, "bytes"),
    (("a", {"b": 1}), {}, "'b': 1"),
    (("a", 1j), {}, "1j"),
    (("a", [[1], [2, 3]]), {}, "cannot be logged"),
    (("a", ["x"]), {}, "cannot be logged"),
    (("a", np.array(["2020"], "M8[D]")), {}, "cannot be logged"),
    (("a", "x" * 10_000_000), {}, "10000000 characters"),
    (("a", 10**5000), {}, "4300"),
    ((None, 1.0), {}, "None"),
    ((b"a", 1.0), {}, "b'a'"),
    ((3, 1.0), {}, "`3`"),
    (("", 1.0), {}, "0 characters"),
    (("a\nb", 1.0), {}, "printable"),
    (("\ud800", 1.0), {}, "printable"),
    (("a" * 10_000_000, 1.0), {}, "10000000 characters"),
    (([], 1.0), {}, "`[]` is not a name: give text"),
    (({"a": 1.0}, 1.0), {}, "a row, `{'a': 1.0}`, and a second value"),
    (({"a": 1.0}, {"b": 2.0}), {}, "a row, `{'a': 1.0}`, and a second value"),
    (({"a": {"b": 2.0}},), {}, "`a`: a mapping as a value, `{'b': 2.0}`, cannot be logged"),
    (("a", np.ma.masked), {}, "`a`: a masked number"),
    (("a",), {}, "`'a'` has no value"),
    ((3,), {}, "`3` has no value"),
    (("step", 1.0), {}, "axes"),
    (({"env_steps": 3},), {}, "axes"),
    (("a", 1.0), {"env_step": 3}, "did you mean `env_steps`"),
    (("a", 1.0), {"step": "x"}, "`step='x'`: an axis needs a finite number"),
    (("a", 1.0), {"step": math.nan}, "`step=nan`: an axis needs a finite number"),
    (("a", 1.0), {"env_steps": [1]}, "`env_steps=[1]`: an axis needs a finite number"),
]


@pytest.mark.medium
@pytest.mark.parametrize(("arguments", "settings", "said"), WRONG)
def test_invalid_values_are_reported_once_and_raised_only_in_strict_mode(
    run, capsys, monkeypatch, arguments, settings, said
):
    for _ in range(3):
        runshelf.log(*arguments, **settings)
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert len(line) < 500
    assert not [r for r in records(run) if r.keys() - {"step"}]
    logger.problems.sum_up()
    assert capsys.readouterr().err.startswith("runshelf: 3 values could not be logged")
    monkeypatch.setenv("BACKFLIP_STRICT", "1")
    with pytest.raises(UsageError, match=re.escape(said)):
        runshelf.log(*arguments, **settings)


def test_invalid_values_are_counted_by_kind(run, capsys):
    for _ in range(2):
        runshelf.log({"a": None, "b": 1j, "c": b"x", "d": [1, "x"], "e": {"x": 1}, "f": 1.0})
    said = capsys.readouterr().err.splitlines()
    for name, what in zip(
        "abcde", ("None", "complex", "bytes", "a list", "a mapping"), strict=True
    ):
        assert sum(f"`{name}`: " in line and what in line for line in said) == 1
    assert len(said) == 5
    logger.problems.sum_up()
    assert "2 x None" in capsys.readouterr().err
    assert values(run) == [{"f": 1.0}] * 2


def test_statistics_ignore_masked_values(run):
    masked = np.ma.masked_array([1.0, 2.0, 1e9], [False, False, True])
    runshelf.log("a", masked)
    runshelf.log({"b": np.ma.masked_array([1, 2])})
    runshelf.log("c", np.ma.masked_array(3.0))
    assert [list(value.values()) for value in values(run)] == [
        [1.0, 2.0, 1.5, 0.5, 2],
        [1.0, 2.0, 1.5, 0.5, 2],
        [3.0],
    ]


def test_the_valid_part_of_a_row_is_logged(run, capsys):
    for _ in range(2):
        runshelf.log({"a": 1.0, None: 2.0, "b": object(), "c": math.nan, "x\0": 1.0})
    assert "not logged" in capsys.readouterr().err
    assert [sorted(r) for r in values(run)] == [["a", "c"]] * 2
    assert [r["step"] for r in records(run)] == [0, 1]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: runshelf.image("a", np.zeros((2, 2, 2), np.uint8)), "an image is"),
        (lambda: runshelf.image("a", np.full((2, 2), 7.0)), "from 0 to 1"),
        (lambda: runshelf.image("a", np.zeros((0, 2), np.uint8)), "an image is"),
        (lambda: runshelf.image("", np.zeros((2, 2), np.uint8)), "`''` has 0 characters"),
        (lambda: runshelf.clip("a", []), "a clip is"),
        (lambda: runshelf.clip("a", [np.zeros((2, 2)), np.zeros((3, 2))]), "same shape"),
        (lambda: runshelf.clip("a", np.zeros((2, 2, 2), np.uint8), fps=0), "frames per second"),
    ],
)
def test_invalid_images_and_clips_are_reported(run, capsys, call, said):
    call()
    assert said in capsys.readouterr().err
    assert records(run) == []


def test_too_many_names_are_refused(run, capsys, monkeypatch):
    monkeypatch.setattr(names, "MOST_NAMES", 100)
    for n in range(300):
        runshelf.log(f"m{n}", 1.0)
    runshelf.log("m5", 2.0)
    assert len(records(run)) == 101
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_rate_is_events_per_second_of_a_window(run, monkeypatch):
    clock = iter([10.0, 10.4, 10.9, 11.25, 12.0, 12.5])
    monkeypatch.setattr(logger.time, "perf_counter", lambda: next(clock))
    for n in (100, 1, 2, 2, 3, 7):
        runshelf.rate("frames", n)
    assert values(run) == [
        {"frames/second": (1 + 2 + 2) / 1.25},
        {"frames/second": (3 + 7) / 1.25},
    ]
    logger._flush_rates()
    assert len(values(run)) == 2, "nothing came after"


def test_the_last_window_ends_at_the_last_call(run, monkeypatch):
    clock = iter([10.0, 10.1, 10.25, 10.0, 10.04])
    monkeypatch.setattr(logger.time, "perf_counter", lambda: next(clock))
    for key, n in (("a", 9), ("a", 2), ("a", 3), ("b", 9), ("b", 9)):
        runshelf.rate(key, n)
    for _ in range(2):
        logger._flush_rates()
    assert values(run) == [{"a/second": (2 + 3) / 0.25}]


@pytest.mark.medium
@pytest.mark.parametrize(
    "first",
    [
        pytest.param("", marks=pytest.mark.slow),
        "runshelf.log('x', 1)",
        pytest.param("runshelf.rate('y')", marks=pytest.mark.slow),
    ],
)
def test_a_short_program_logs_its_rates(tmp_path, first):
    rates = "[(time.sleep(0.03), runshelf.rate('frames', 8)) for _ in range(5)]"
    done = python(f"import runshelf, time\n{first}\n{rates}\n{first}", tmp_path)
    run = the_run(tmp_path)
    assert "not logged" not in done.stderr
    (value,) = [v for v in values(run.folder) if "frames/second" in v]
    assert value["frames/second"] > 0
    assert state_of(run).name == "finished"


def test_timed_blocks_and_functions(run, monkeypatch):
    clock = iter([1.0, 3.5, 10.0, 20.0, 20.5, 50.0, 100.0, 101.0])
    monkeypatch.setattr(logger.time, "perf_counter", lambda: next(clock))
    with runshelf.timed("a"):
        pass

    @runshelf.timed("b")
    def function(depth: int) -> int:
        """Say something."""
        return function(depth - 1) + 1 if depth else 0

    assert function(1) == 1
    assert (function.__name__, function.__doc__) == ("function", "Say something.")

    @runshelf.timed("c")
    async def coroutine(x):
        await asyncio.sleep(0)
        return x

    assert finished(coroutine(5)) == 5
    assert values(run) == [
        {"a/seconds": 2.5},
        {"b/seconds": 0.5},
        {"b/seconds": 40.0},
        {"c/seconds": 1.0},
    ]


def test_a_timed_block_that_raises_is_logged(run):
    @runshelf.timed("a")
    def fails():
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        fails()
    assert list(values(run)[0]) == ["a/seconds"]


def test_a_call_is_one_write_of_one_line(run, monkeypatch):
    runshelf.log("a", 1.0)
    written = []
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: written.append(bytes(data)) or real(fd, data))
    runshelf.log("a", 2.0)
    runshelf.log({"a": 1.0, "b": [1, 2], "c": "x\n"})
    runshelf.log("a", math.nan)
    assert len(written) == 3
    assert all(line.count(b"\n") == 1 and line.endswith(b"}\n") for line in written)


def test_a_full_disk_is_reported_once_and_loses_only_refused_lines(run, capsys, monkeypatch):
    runshelf.log("a", 0)
    real = os.write
    answers = iter([lambda fd, data: real(fd, data[:7]), "full", "full"])

    def filling(fd, data):
        answer = next(answers, real)
        if answer == "full":
            raise OSError(28, "No space left on device")
        return answer(fd, data)

    monkeypatch.setattr(os, "write", filling)
    for n in range(1, 6):
        runshelf.log("a", n)
    monkeypatch.undo()
    assert "No space left" in capsys.readouterr().err
    lines = read_metrics(run)
    assert [record["a"] for record in lines.records] == [0, 3, 4, 5]
    assert lines.torn == 1


def test_closing_the_file_during_a_sync_reports_nothing(run, capsys, monkeypatch):
    def closing(descriptor):
        logger._file.close()
        return fsync(descriptor)

    runshelf.log("a", 0)
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", closing)
    logger._file._sync_once()
    runshelf.log("a", 1)
    assert "not logged" not in capsys.readouterr().err
    assert sorted(record["a"] for record in read_metrics(run).records) == [0, 1]


@pytest.mark.medium
def test_a_signal_handler_may_log_during_logging(run):
    def handler(*_):
        runshelf.log("signal", 1.0)

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        for n in range(20_000):
            runshelf.log("a", n)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    found = records(run)
    assert [r["a"] for r in found if "a" in r] == list(range(20_000))
    assert any("signal" in r for r in found)


INTERRUPTED = """
import signal
import runshelf

calls = 0

def handler(*_):
    global calls
    calls += 1
    runshelf.log("signal", 1.0)
    with runshelf.timed("handled"):
        pass

signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for n in range(100):
    runshelf.log("a", n)
signal.setitimer(signal.ITIMER_REAL, 0)
print(calls)
"""


@pytest.mark.slow
def test_a_signal_handler_may_log_while_the_logger_is_loaded(tmp_path):
    done = python(INTERRUPTED, tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
    found = values(the_run(tmp_path).folder)
    assert [v["a"] for v in found if "a" in v] == list(range(100))


@pytest.mark.slow
def test_calls_dropped_while_loading_are_reported(tmp_path):
    program = (
        "import runshelf, sys, _thread\n"
        "from runshelf.logger import lazy\n"
        "lazy._loading.append(_thread.get_ident())\n"
        "runshelf.log('a', 1)\n"
        "with runshelf.timed('a'): pass\n"
        "runshelf.timed('a')(int)\n"
        "lazy._loading.clear()\n"
        "runshelf.log('a', 2)"
    )
    done = python(program, tmp_path)
    assert "was used while it was being loaded (reported once" in done.stderr
    assert "3 values could not be logged: 3 x reentrant" in done.stderr
    assert values(the_run(tmp_path).folder) == [{"a": 2}]


class EmptiedByLen(list):
    """Loses its items when its length is read, as if a signal handler had taken them."""

    def __len__(self):
        found = super().__len__()
        self.clear()
        return found


def test_a_signal_handler_may_note_dropped_calls_concurrently(monkeypatch, run):
    monkeypatch.setattr(lazy, "_dropped", EmptiedByLen(["log"]))
    assert lazy.logging_function("log", {}) is runshelf.log


@pytest.mark.medium
def test_importing_and_logging_numbers_load_nothing_heavy(run):
    program = (
        "import runshelf, sys; runshelf.log('a', 1.0); runshelf.log({'a': 2, 'b': float('nan')}); "
        "heavy = {'numpy', 'jax', 'PIL', 'rich'} & set(sys.modules); assert not heavy, heavy"
    )
    done = python(program, run, BACKFLIP_RUN=str(run))
    assert (done.returncode, done.stderr) == (0, "")
    assert len(records(run)) == 2


@pytest.mark.medium
def test_the_first_call_creates_a_run_that_ends_with_the_program(tmp_path):
    program = "import runshelf; runshelf.log('loss', 0.5); print('done')"
    done = python(program, tmp_path, "--lr", "1e-3", "--seed=7", "--api-key", "hunter2hunter2")
    assert done.returncode == 0
    assert done.stdout == "done\n"
    run = the_run(tmp_path)
    assert f"logging to `{run.folder}`" in done.stderr
    assert run.manifest["command"] == "script"
    assert run.config["lr"] == 0.001
    assert run.seeds == [7]
    assert run.manifest["argv"][0] == sys.executable
    assert run.manifest["argv"][-5:-1] == ["--lr", "1e-3", "--seed=7", "--api-key"]
    assert "hunter2" not in (run.folder / "run.json").read_text()
    assert state_of(run).name == "finished"
    assert values(run.folder) == [{"loss": 0.5}]


@pytest.mark.medium
@pytest.mark.parametrize(
    ("ending", "state", "note"),
    [
        ("raise ValueError('broken')", "failed", "ValueError: broken"),
        ("raise KeyboardInterrupt", "interrupted", ""),
        ("import os; os.kill(os.getpid(), 9)", "lost", "its process is gone"),
        pytest.param("sys.exit(3)", "failed", "exit status 3", marks=pytest.mark.slow),
        pytest.param(
            "sys.exit('no  such\\nfile')", "failed", "no such file", marks=pytest.mark.slow
        ),
        ("sys.exit()", "finished", ""),
        pytest.param("raise SystemExit", "finished", "", marks=pytest.mark.slow),
    ],
)
def test_how_the_program_ended(tmp_path, ending, state, note):
    check_how_the_program_ended(tmp_path, ending, state, note)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "state", "note"),
    [
        ("sys.exit(256)", "finished", ""),
        ("with runshelf.timed('t'): sys.exit(4)", "failed", "exit status 4"),
        ("raise SystemExit(3)", "failed", "exit status 3"),
        ("def main(): return 6\nraise SystemExit(main())", "failed", "exit status 6"),
        ("raise SystemExit('no such file')", "failed", "no such file"),
        ("class Mine(SystemExit): pass\nraise Mine(8)", "failed", "exit status 8"),
        ("try: raise SystemExit(3)\nexcept SystemExit as e: assert e.code == 3", "finished", ""),
        ("try: sys.exit(3)\nexcept SystemExit: pass\nrunshelf.log('a', 2)", "finished", ""),
        (
            "import threading as t\nt = t.Thread(target=sys.exit, args=[3])\nt.start(); t.join()",
            "finished",
            "",
        ),
        (
            "import atexit\natexit.register(runshelf.log, 'a', 2)\nsys.exit(5)",
            "failed",
            "exit status 5",
        ),
        ("sys.excepthook = lambda *_: None\n1 / 0", "failed", "ZeroDivisionError"),
        ("sys.exit(2 * (sys.exit.__name__ == 'exit'))", "failed", "exit status 2"),
        ("sys.ps1 = '>>> '; sys.excepthook(ValueError, ValueError('x'), None)", "finished", ""),
    ],
)
def test_how_the_program_ended_otherwise(tmp_path, ending, state, note):
    check_how_the_program_ended(tmp_path, ending, state, note)


def check_how_the_program_ended(tmp_path, ending, state, note):
    program = f"import runshelf, sys\nrunshelf.log('a', 1)\n{ending}"
    done = python(program, tmp_path)
    found = state_of(the_run(tmp_path))
    assert (found.name, note in found.note) == (state, True)
    if "ValueError: broken" in note:
        assert "Traceback" in done.stderr, "the program's own words come first"


CHILDREN = """
import multiprocessing, os, subprocess, sys
import runshelf

def work(n):
    runshelf.log("child", n)

if __name__ == "__main__":
    runshelf.log("parent", 0)
    for kind in ("fork", "spawn"):
        context = multiprocessing.get_context(kind)
        processes = [context.Process(target=work, args=(n,)) for n in range(2)]
        [p.start() for p in processes]
        [p.join() for p in processes]
        assert [p.exitcode for p in processes] == [0, 0]
    subprocess.run([sys.executable, "-c", "import runshelf; runshelf.log('other', 1)"], check=True)
    if os.fork() == 0:
        runshelf.log("forked", 1)
        sys.exit(0)
    os.wait()
    runshelf.log("parent", 1)
"""


@pytest.mark.medium
def test_every_process_logs_into_the_run_of_the_first(tmp_path):
    (tmp_path / "main.py").write_text(CHILDREN)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("BACKFLIP_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "main.py"],
        cwd=tmp_path,
        env=kept,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("runshelf:") == 1, done.stderr
    run = the_run(tmp_path)
    assert len(list(run.folder.glob("metrics-log-*.jsonl"))) == 7
    names = [next(iter(value)) for value in values(run.folder)]
    assert sorted(names) == ["child"] * 4 + ["forked", "other", "parent", "parent"]
    statuses = [event["status"] for event in run.events()]
    assert statuses == ["started", "finished"], "the forked process ends nothing"


@pytest.mark.medium
@pytest.mark.parametrize("kind", ["vanished", pytest.param("foreign", marks=pytest.mark.slow)])
def test_an_invalid_run_is_reported_and_a_new_one_created(tmp_path, kind):
    named = tmp_path / "named"
    if kind == "foreign":
        named.mkdir()
        (named / "run.json").write_text("[]")
    program = "import runshelf; runshelf.log('a', 1); runshelf.log('a', 2)"
    done = python(program, tmp_path, BACKFLIP_RUN=str(named))
    assert done.stderr.count("is not a run folder") == 1
    assert len(records(the_run(tmp_path).folder)) == 2


@pytest.mark.slow
def test_a_home_that_cannot_be_written_breaks_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    program = (
        "import runshelf\nfor n in range(1000): runshelf.log('a', n)\n"
        "runshelf.log({'a': [1, 2]}); runshelf.rate('x'); print('done')"
    )
    done = python(program, tmp_path, BACKFLIP_HOME=str(tmp_path / "file"))
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert done.stderr.count("not logged: cannot write runs in") == 1
    assert "1001 values could not be logged" in done.stderr
    strict = python(program, tmp_path, BACKFLIP_HOME=str(tmp_path / "file"), BACKFLIP_STRICT="1")
    assert "UsageError: cannot write runs in" in strict.stderr


@pytest.mark.medium
def test_without_stderr_nothing_breaks(run):
    program = (
        "import sys, runshelf\nsys.stderr = None\nrunshelf.log(None, 1)\n"
        "import io\nsys.stderr = io.StringIO(); sys.stderr.close()\nrunshelf.log('a', None)\n"
        "runshelf.log('a', 1)"
    )
    done = python(program, run, BACKFLIP_RUN=str(run))
    assert done.returncode == 0
    assert values(run) == [{"a": 1}]


def test_a_closed_descriptor_loses_nothing(run):
    runshelf.log("a", 1)
    os.close(logger._file._file.number)
    runshelf.log("a", 2)
    runshelf.log("a", 3)
    assert sorted(v["a"] for v in values(run)) == [1, 2, 3]


def test_nothing_is_written_into_a_file_that_has_our_number(run):
    runshelf.log("a", 1)
    taken = logger._file._file.number
    with (run / "mine").open("w+") as mine:
        os.dup2(mine.fileno(), taken)  # closes ours
        runshelf.log("a", 2)
        logger._file.close()
        assert mine.read() == ""
    os.close(taken)
    assert sorted(v["a"] for v in values(run)) == [1, 2]


def test_a_daemon_that_closes_all_descriptors_keeps_its_files(tmp_path):
    program = (
        "import os, runshelf\nrunshelf.log('a', 1)\nos.closerange(3, 256)\n"
        "mine = [open(f'mine{n}', 'w+') for n in range(9)]\nrunshelf.log('a', 2)\n"
        "for file in mine: print('x', end='', file=file)"
    )
    done = python(program, tmp_path)
    assert done.returncode == 0
    assert "Error" not in done.stderr
    assert {path.read_text() for path in tmp_path.glob("mine*")} == {"x"}
    run = the_run(tmp_path)
    assert sorted(v["a"] for v in values(run.folder)) == [1, 2]
    assert [event["status"] for event in run.events()] == ["started", "finished"]


def test_lines_are_synced_and_a_removed_run_is_noticed(run, capsys, monkeypatch):
    synced = []
    monkeypatch.setattr(line_file, "SYNC_SECONDS", 0.01)
    monkeypatch.setattr(os, "fsync", synced.append)
    runshelf.log("a", 1)
    deadline = time.monotonic() + 20
    while not synced and time.monotonic() < deadline:
        time.sleep(0.01)
    assert synced == [logger._file._file.number]
    time.sleep(0.1)
    assert len(synced) == 1, "nothing written, nothing to sync"
    for path in run.glob("metrics-*"):
        path.unlink()
    while logger._file._file and time.monotonic() < deadline:
        runshelf.log("a", 2)
        time.sleep(0.01)
    assert "was removed" in capsys.readouterr().err
    runshelf.log("a", 3)
    assert records(run)[-1]["a"] == 3


def test_a_file_that_is_being_written_stays_lines(run):
    for n in range(20):
        runshelf.log("a", n)
    compact(run)
    runshelf.log("a", 20)
    assert [value["a"] for value in values(run)] == list(range(21))


KILLED = """
import os, sys, threading
import runshelf
counts = {}
def work(name):
    n = 0
    while True:
        runshelf.log({name: n, "x": 0.5} if n % 2 else {name: n}, step=n)
        os.write(1, b"%s %d\\n" % (name.encode(), n))
        n += 1
threads = [threading.Thread(target=work, args=(name,)) for name in ("a", "b", "c")]
[t.start() for t in threads]
"""


@pytest.mark.medium
def test_kill_9_loses_no_record_that_a_call_returned_from(run):
    chance = random.Random(0)
    for _ in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED],
            env=os.environ | {"BACKFLIP_RUN": str(run)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        with process:
            first = process.stdout.readline()
            time.sleep(chance.uniform(0, 0.1))
            process.kill()
            lines = (first + process.stdout.read()).splitlines(keepends=True)
        acknowledged = {line.decode().strip() for line in lines if line.endswith(b"\n")}
        path = next(run.glob(f"metrics-log-{process.pid}-*.jsonl"))
        name = path.name.removeprefix("metrics-").removesuffix(".jsonl")
        found = read_metrics(run, name)
        known = {f"{k} {v}" for r in found.records for k, v in r.items() if k in ("a", "b", "c")}
        assert len(acknowledged) > 0
        assert acknowledged <= known
        assert found.torn <= 1


WRITERS = """
import sys, time
import runshelf
number, seconds = int(sys.argv[1]), float(sys.argv[2])
end, n = time.monotonic() + seconds, 0
while time.monotonic() < end:
    runshelf.log("n", n, step=n)
    n += 1
    if n % 50 == 0:
        time.sleep(0.02)
print(n)
"""


def write_together(home, processes, seconds, environ):
    """Log from many processes at once; return how many records each has logged."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("BACKFLIP_")}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WRITERS, str(n), str(seconds)],
            env=kept | {"BACKFLIP_HOME": str(home)} | environ,
            cwd=home,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(processes)
    ]
    ended = [process.communicate(timeout=seconds * 10 + 300) for process in started]
    assert [process.returncode for process in started] == [0] * processes
    assert not [said for _, said in ended if "not logged" in said or "Traceback" in said]
    return [int(said) for said, _ in ended]


def check_together(home, processes, seconds):
    counts = write_together(home, processes, seconds, {})
    ulids = list_runs(home)
    assert len(ulids) == processes
    assert all(state_of(find_run(home, ulid)).name == "finished" for ulid in ulids)
    found = [[r["n"] for r in records(home / "runs" / ulid)] for ulid in ulids]
    assert sorted(map(len, found)) == sorted(counts)
    assert all(numbers == list(range(len(numbers))) for numbers in found)
    folder = home / "runs" / ulids[0]
    before = len(records(folder))
    counts = write_together(home, processes, seconds, {"BACKFLIP_RUN": str(folder)})
    compact(folder)
    assert len(records(folder)) == before + sum(counts)


@pytest.mark.slow
def test_8_processes_log_to_one_home_and_into_one_run(tmp_path):
    check_together(tmp_path, 8, 3)


@pytest.mark.slow
def test_50_processes_log_to_one_home_and_into_one_run(tmp_path):
    check_together(tmp_path, 50, 60)


def test_the_axes_are_those_of_series():
    assert set(series.AXES) | {SEED} == logger.AXES


def test_statistics_of_large_values_do_not_warn():
    found = media.statistics(np.array([1e308, 1e308, np.inf]))
    assert found["max"] == math.inf


def test_a_jsonl_line_is_plain_json(run):
    runshelf.log({"a": 1.0, "é": 2})
    (path,) = run.glob("metrics-log-*.jsonl")
    assert list(json.loads(path.read_text())) == ["step", "time", "a", "é"]
