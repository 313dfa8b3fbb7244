"""What the benchmarks share: running programs in turn, and a table of ratios."""

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
PEERS = ROOT / "benchmarks" / "peers"


@dataclass(frozen=True)
class Timed:
    """One finished process.

    Attributes:
        seconds: wall time of the whole process, interpreter start and imports included.
        cpu_seconds: of all its threads.
        output: the JSON document on its last line of stdout.
    """

    seconds: float
    cpu_seconds: float
    output: dict[str, Any]


def run(command: Sequence[str | Path]) -> Timed:
    """Run `command` to its end and read the JSON it prints last."""
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
    except json.JSONDecodeError:  # a peer that says more than its result says that last
        output = json.loads(result.stdout.strip().splitlines()[-1])
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Timed(seconds, cpu, output)


def peer(name: str, script: str, *arguments: object) -> Timed:
    """Run `peers/script` in the environment of peer `name`, made if it is not there yet."""
    subprocess.run([sys.executable, PEERS / "install.py", name], check=True)
    python = ROOT / ".cache" / "peers" / name / "bin" / "python"
    return run([python, PEERS / script, *map(str, arguments)])


def in_turn(
    pairs: int, ours: Callable[[], Any], theirs: Callable[[], Any]
) -> list[tuple[Any, Any]]:
    """Measure ours, theirs, ours, theirs, ...: what else the machine does hits both alike."""
    measured: list[tuple[Any, Any]] = []
    for pair in range(pairs):
        print(f"pair {pair + 1} of {pairs} ...", file=sys.stderr, flush=True)
        measured.append((ours(), theirs()))
    return measured


@dataclass(frozen=True)
class Row:
    """One line of the table: the same quantity measured of both, pair by pair.

    Attributes:
        what: the quantity, with its unit.
        ours: one figure per pair.
        theirs: one figure per pair.
        limit: what the machine allows at most, in the same unit; None where none was named.
    """

    what: str
    ours: Sequence[float]
    theirs: Sequence[float]
    limit: float | None = None


def table(title: str, rows: Sequence[Row]) -> None:
    """Print `rows` with the median ratio ours / theirs, its range, and the share of the limit."""
    grid = Table(title=title, title_justify="left")
    for heading in ("", "ours", "theirs", "ours / theirs", "range over pairs", "share of limit"):
        grid.add_column(heading, justify="left" if heading == "" else "right")
    for row in rows:
        ratios = [a / b for a, b in zip(row.ours, row.theirs, strict=True)]
        ours = statistics.median(row.ours)
        grid.add_row(
            row.what,
            figure(ours),
            figure(statistics.median(row.theirs)),
            f"{statistics.median(ratios):.3g}",
            f"{min(ratios):.3g} .. {max(ratios):.3g}",
            "-" if row.limit is None else f"{ours / row.limit:.1%} of {figure(row.limit)}",
        )
    Console(width=150).print(grid)


def figure(x: float) -> str:
    """`x` with three digits, thousands apart."""
    return f"{x:,.0f}" if abs(x) >= 100 else f"{x:.3g}"


def matmul_flops(size: int = 512, seconds: float = 2.0) -> float:
    """Multiplications and additions per second of float32 matrix products on all cores."""
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
    """The least time of one `call` over about `seconds` of them, after three to warm up."""
    for _ in range(3):
        call()
    best = float("inf")
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best
