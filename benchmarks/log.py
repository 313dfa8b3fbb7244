"""Compare logging libraries: speed, size on disk, and rows lost by a kill -9.

    python benchmarks/log.py --seconds 3

Rows of ten random numbers and single numbers, from one process. The libraries run in turn. The last
line is a plain `write` of the bytes that ours writes.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from runshelf.interop.event_files import read_entries
from runshelf.interop.tfrecord import TornFile
from runshelf.store.compacting import compact
from runshelf.store.metrics import read_metrics

ROOT = Path(__file__).parents[1]
PEERS = ROOT / "benchmarks" / "peers"
LIBRARIES = ("backflip", "tensorboard", "mlflow", "wandb", "write")
TITLES = {
    "backflip": "backflip",
    "tensorboard": "tensorboardX 2.6.5",
    "mlflow": "MLflow 3.17.2, SQLite",
    "wandb": "W&B 0.31.0, offline",
    "write": "limit: bare write of our bytes",
}


@dataclass(frozen=True)
class Measured:
    """The result of one library and form.

    Attributes:
        points_per_second: logged numbers per second of the calls.
        flushed_per_second: the same, including the time to close everything.
        bytes_per_point: bytes on disk at the end; ours after conversion to columns.
    """

    points_per_second: float
    flushed_per_second: float
    bytes_per_point: float


def start(library: str, form: str, seconds: float, folder: Path, *more: str) -> subprocess.Popen:
    """Start one library in its environment."""
    ours = library in ("backflip", "write")
    python = sys.executable if ours else ROOT / ".cache" / "peers" / "loggers" / "bin" / "python"
    # Without proxies no library can reach the network.
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "BACKFLIP_HOME": str(folder)}
    return subprocess.Popen(
        [python, PEERS / "loggers.py", library, form, str(seconds), folder, *more],
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )


def measure(library: str, form: str, seconds: float) -> Measured:
    """Run one library to its end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        process = start(library, form, seconds, folder)
        said, errors = process.communicate()
        if process.returncode:
            sys.exit(f"error: {library}: {errors}")
        found = json.loads(said.splitlines()[-1])
        points = found["rows"] * found["names"]
        for run in folder.glob("runs/0*"):
            compact(run)
        kept = folder.glob("runs/*/metrics-*") if library == "backflip" else data_of(folder)
        size = sum(path.stat().st_size for path in kept)
        return Measured(points / found["seconds"], points / found["flushed"], size / points)


def data_of(folder: Path) -> list[Path]:
    """Return the files with a peer's numbers."""
    patterns = ("*tfevents*", "mlflow.db", "wandb/*/*.wandb", "lines")
    return [path for pattern in patterns for path in folder.glob(pattern)]


def lost(library: str, seconds: float) -> str:
    """Return how many rows, acknowledged before a kill -9, cannot be read afterwards."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        process = start(library, "rows", 600, folder, "say")
        first = process.stdout.readline()
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGKILL)
        said = (first + process.stdout.read()).splitlines(keepends=True)
        process.communicate()
        acknowledged = {
            int(line) for line in said if line.endswith("\n") and line.strip().isdigit()
        }
        return f"{len(acknowledged - read_back(library, folder))} of {len(acknowledged)}"


def read_back(library: str, folder: Path) -> set[int]:
    """Return the steps whose numbers are all present."""
    if library == "backflip":
        (run,) = folder.glob("runs/0*")
        return {record["step"] for record in read_metrics(run).records}
    if library == "tensorboard":
        steps: dict[int, int] = {}
        for path in folder.glob("*tfevents*"):
            try:
                for entry in read_entries(path):
                    steps[entry.step] = steps.get(entry.step, 0) + 1
            except TornFile:
                continue
        return {step for step, count in steps.items() if count == 10}
    python = ROOT / ".cache" / "peers" / "loggers" / "bin" / "python"
    done = subprocess.run(
        [python, PEERS / "loggers_read.py", library, folder],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--only", choices=LIBRARIES, action="append")
    arguments = parser.parse_args()
    subprocess.run([sys.executable, PEERS / "install.py", "loggers"], check=True)
    grid = Table(title="one process, random doubles", title_justify="left")
    for heading in ("", "form", "points/s", "until closed", "bytes/point", "lost on kill -9"):
        grid.add_column(heading, justify="left" if heading in ("", "form") else "right")
    for library in arguments.only or LIBRARIES:
        for form in ("rows", "single"):
            print(f"{library}, {form} ...", file=sys.stderr, flush=True)
            found = measure(library, form, arguments.seconds)
            grid.add_row(
                TITLES[library],
                "rows of 10" if form == "rows" else "single",
                f"{found.points_per_second:,.0f}",
                f"{found.flushed_per_second:,.0f}",
                f"{found.bytes_per_point:.1f}",
                lost(library, 3.0) if form == "rows" and library != "write" else "",
            )
    Console(width=120).print(grid)


if __name__ == "__main__":
    main()
