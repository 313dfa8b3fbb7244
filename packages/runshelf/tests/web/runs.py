"""Creates runs for tests of the pages."""

import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from runshelf.store.metrics import MetricsWriter
from runshelf.store.run import RunInfo, RunWriter, create_run


def learning(seed: int, best: float = 200.0, fast: float = 1.0) -> Callable[[float], float]:
    """Return a curve that rises to `best` like episode returns, for x from 0 to 1."""
    rng = np.random.default_rng(seed)
    late, noise = rng.uniform(0.2, 0.4) / fast, rng.normal(size=4096)

    def at(x: float) -> float:
        rise = 1 / (1 + math.exp(-14 * (x - late)))
        return best * rise * (1 + 0.05 * rng.normal()) + 8 + 4 * noise[int(x * 4095)]

    return at


def begin(
    home: Path,
    *,
    seed: int | None = 0,
    env: str | None = "CartPole-v1",
    algorithm: str | None = "ppo",
    command: str = "train",
    config: Mapping[str, Any] | None = None,
    argv: Sequence[str] = ("runshelf", "train", "ppo", "CartPole-v1"),
    manifest: Mapping[str, Any] | None = None,
    **info: Any,
) -> RunWriter:
    """Create a run that is running until its writer is closed."""
    more = dict(manifest or {})
    return create_run(
        home,
        command=command,
        config=config if config is not None else {"learning_rate": 0.001, "seed": seed},
        seeds=[] if seed is None else [seed],
        env=env,
        algorithm=algorithm,
        argv=argv,
        info=RunInfo(**info),
        capture=lambda folder, cwd: more,
    )


def log(
    writer: RunWriter,
    points: int = 200,
    *,
    seed: int | None = 0,
    first: int = 0,
    of: int | None = None,
    every: int = 256,
    pace: float = 0.05,
    **metrics: Callable[[float], float],
) -> None:
    """Write metric records of a run: `points` records from number `first` of `of`."""
    metrics = metrics or {"episode_return_mean": learning(seed or 0)}
    with MetricsWriter(writer.folder, "train") as file:
        for n in range(first, first + points):
            x = n / max(1, (of or points) - 1)
            record: dict[str, Any] = {} if seed is None else {"seed": seed}
            record |= {"env_steps": (n + 1) * every, "updates": n + 1, "seconds": pace * (n + 1)}
            file.write(record | {name: curve(x) for name, curve in metrics.items()})


def finish(writer: RunWriter, status: Any = "finished", **details: Any) -> Path:
    """End a run; return its folder."""
    writer.record(status, **details)
    writer.close()
    return writer.folder


def done(home: Path, seed: int = 0, points: int = 200, **info: Any) -> Path:
    """Create a finished run with a curve; return its folder."""
    curves = info.pop("curves", {})
    writer = begin(home, seed=seed, **info)
    log(writer, points, seed=seed, **curves)
    return finish(writer)


def print_to(folder: Path, lines: Sequence[tuple[str, str]], seconds: float = 0.0) -> None:
    """Write output of a run in the recorder's format, from pairs of stream and text."""
    ends = {"out": 0, "err": 0}
    with (folder / "output.log").open("ab") as file:
        for n, (stream, text) in enumerate(lines):
            data = text.encode("utf-8", "surrogateescape")
            ends[stream] += len(data) + 1
            file.write(
                b"%.3f\t%s\t%d\t%s\n" % (seconds + 0.01 * n, stream.encode(), ends[stream], data)
            )


def backdate(folder: Path, seconds: float) -> None:
    """Move the creation time of a run that is not indexed yet into the past."""
    path = folder / "run.json"
    manifest = json.loads(path.read_text())
    created = datetime.fromtimestamp(time.time() - seconds, UTC)
    manifest["created"] = created.isoformat(timespec="milliseconds")
    path.write_text(json.dumps(manifest))
    os.utime(folder)
