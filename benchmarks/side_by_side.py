"""Shared code of the benchmarks: run programs in turn, print a table of ratios."""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from runshelf.statistics.intervals import mean_interval

ROOT = Path(__file__).parents[1]
BACKFLIP = Path(sys.executable).with_name("backflip")
DRIVEN = ROOT / "benchmarks" / "driven.py"
PEERS = ROOT / "benchmarks" / "peers"


@dataclass(frozen=True)
class Timed:
    """The result of a process.

    Attributes:
        seconds: wall time of the whole process, interpreter start and imports included.
        cpu_seconds: CPU time of all threads.
        output: the JSON document on its last line of stdout.
    """

    seconds: float
    cpu_seconds: float
    output: dict[str, Any]


def run(command: Sequence[str | Path]) -> Timed:
    """Run `command` and parse the JSON on its last line."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    result = subprocess.run(
        [str(part) for part in command], stdout=subprocess.PIPE, text=True, cwd=ROOT, check=False
    )
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if result.returncode != 0:
        sys.exit(f"error: {' '.join(map(str, command))} exited with {result.returncode}")
    try:
        output = json.loads(result.stdout)
    except json.JSONDecodeError:  # a peer prints other lines before its result
        output = json.loads(result.stdout.strip().splitlines()[-1])
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Timed(seconds, cpu, output)


def peer(name: str, script: str, *arguments: object) -> Timed:
    """Run `peers/script` in the environment of peer `name`; create the environment if needed."""
    subprocess.run([sys.executable, PEERS / "install.py", name], check=True)
    python = ROOT / ".cache" / "peers" / name / "bin" / "python"
    return run([python, PEERS / script, *map(str, arguments)])


def train(
    algorithm: str,
    env: str,
    *,
    seeds: int,
    first: int,
    settings: Mapping[str, Any],
    env_args: Mapping[str, Any] | None = None,
) -> Timed:
    """Run our whole process: train, then evaluate every seed; discard the run."""
    options = ["--seeds", str(seeds), "--seed", str(first), "--json", *pairs_of("--set", settings)]
    options += pairs_of("--env-arg", env_args or {})
    return ours("train", algorithm, env, *options)


def ours(*words: str) -> Timed:
    """Run a `backflip` command with `--json` in a temporary home."""
    with tempfile.TemporaryDirectory() as home:
        return run([BACKFLIP, *words, "--home", home])


def driven(algorithm: str, env: str, settings: Mapping[str, Any], *more: object) -> dict[str, Any]:
    """Run one of our drivers alone with `driven.py` in its own process."""
    options = [*pairs_of("--set", settings), *map(str, more)]
    return run([sys.executable, DRIVEN, algorithm, env, *options]).output


def pairs_of(option: str, values: Mapping[str, Any]) -> list[str]:
    """Return command-line options: option KEY=VALUE ..."""
    return [part for name, x in values.items() for part in (option, f"{name}={_written(x)}")]


def _written(x: Any) -> str:
    if isinstance(x, tuple | list):
        return ",".join(map(str, x))
    return str(x).lower() if isinstance(x, bool) else str(x)


def rate(output: Mapping[str, Any], warm_up: int = 0) -> float:
    """Return env steps per second of training after the warm-up, all seeds, without compilation."""
    return len(output["seeds"]) * (output["env_steps"] - warm_up) / output["seconds"]["train"]


def in_turn(pairs: int, *programs: Callable[[], Any]) -> list[tuple[Any, ...]]:
    """Measure the programs in turn, `pairs` times, so that other load affects all equally."""
    measured: list[tuple[Any, ...]] = []
    for pair in range(pairs):
        print(f"pair {pair + 1} of {pairs} ...", file=sys.stderr, flush=True)
        measured.append(tuple(program() for program in programs))
    return measured


@dataclass(frozen=True)
class Row:
    """One row of the table: a quantity of both programs, for each pair.

    Attributes:
        what: the quantity, with its unit.
        ours: one figure per pair.
        theirs: one figure per pair.
        limit: the maximum that the machine allows, in the same unit; None if unknown.
        bar: the required ratio; None if there is none.
        floor: the required value of ours, in the same unit; None if there is none.
    """

    what: str
    ours: Sequence[float]
    theirs: Sequence[float]
    limit: float | None = None
    bar: float | None = None
    floor: float | None = None


def table(title: str, rows: Sequence[Row]) -> None:
    """Print `rows` with the median ratio ours / theirs, its range, the bar and the limit.

    The last column is the share of the limit that ours reaches, and the ratio of a program at the
    limit.
    """
    grid = Table(title=title, title_justify="left")
    for heading in ("", "ours", "theirs", "ours / theirs", "range", "bar", "share of limit"):
        grid.add_column(heading, justify="left" if heading == "" else "right")
    for row in rows:
        ratios = [a / b for a, b in zip(row.ours, row.theirs, strict=True)]
        grid.add_row(
            row.what,
            figure(statistics.median(row.ours)),
            figure(statistics.median(row.theirs)),
            f"{statistics.median(ratios):.3g}",
            f"{min(ratios):.3g} .. {max(ratios):.3g}",
            _bar(row, statistics.median(ratios)),
            _share(row),
        )
    Console(width=170).print(grid)


def _bar(row: Row, ratio: float) -> str:
    if row.floor is not None:
        met = statistics.median(row.ours) >= row.floor
        return f"ours >= {figure(row.floor)} {'met' if met else 'MISSED'}"
    if row.bar is None:
        return "-"
    return f">= {row.bar:g} {'met' if ratio >= row.bar else 'MISSED'}"


def _share(row: Row) -> str:
    if row.limit is None:
        return "-"
    share, most = statistics.median(row.ours) / row.limit, row.limit / statistics.median(row.theirs)
    return f"{share:.1%} of {figure(row.limit)} (ratio {figure(most)})"


def returns_in_words(who: str, returns: Sequence[float]) -> str:
    """Return the mean over seeds with Student's 95 % interval, and the range."""
    found = mean_interval(np.array(returns, float)[:, None])
    interval = f" [{found.low[0]:.1f}, {found.high[0]:.1f}]" if len(returns) > 1 else ""
    seeds = f"{len(returns)} seed{'s' * (len(returns) > 1)}"
    extremes = f", {min(returns):.1f} to {max(returns):.1f}" if len(returns) > 1 else ""
    return f"returns, {who}: {found.centre[0]:.1f}{interval} ({seeds}{extremes})"


def figure(x: float) -> str:
    """Return `x` with three digits or a thousands separator."""
    return f"{x:,.0f}" if abs(x) >= 100 else f"{x:.3g}"


def matmul_flops(size: int = 512, seconds: float = 2.0) -> float:
    """Return multiplications and additions per second of float32 matrix products on all cores."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, size, size)).astype(np.float32)
    best = 0.0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(10):
            a @ b
        best = max(best, 10 * 2 * size**3 / (time.perf_counter() - start))
    return best


def best_seconds(call: Callable[[], object], seconds: float) -> float:
    """Return the shortest time of one `call` in about `seconds`, after three warm-up calls."""
    for _ in range(3):
        call()
    best = float("inf")
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best
