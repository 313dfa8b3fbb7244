"""Write groups and runs that are finished through the store, with chosen curves, for benchmarks."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from runshelf.store.columns import Batch, Column
from runshelf.store.compacting import compact
from runshelf.store.metrics import MetricsWriter
from runshelf.store.packed import to_npz
from runshelf.store.run import RunInfo, RunWriter, create_run
from runshelf.store.writing import replace_file

METRIC = "episode_return_mean"
Curve = Callable[[int, int], np.ndarray]


def write_group(
    home: Path, group: str, env: str, seeds: Sequence[int], curve: Curve, *, every: int = 1
) -> None:
    """Write one finished run for each seed.

    Args:
        home: the home.
        group: the name of the group.
        env: the environment's id.
        seeds: the seeds.
        curve: returns the values of a seed: called with its place in `seeds`, and the seed.
        every: env steps between two values.
    """
    for place, seed in enumerate(seeds):
        values = curve(place, seed)
        with _created(home, group, env, [seed]) as writer:
            if len(values) > 1000:
                _write_columns(writer.folder, seed, values, every)
            else:
                _write_lines(writer.folder, seed, values, every)
            compact(writer.folder)


def write_run(home: Path, group: str, env: str, seeds: Sequence[int], curve: Curve) -> None:
    """Write one finished run of all seeds, as `train --seeds` does; arguments as above."""
    with _created(home, group, env, seeds) as writer:
        for place, seed in enumerate(seeds):
            _write_lines(writer.folder, seed, curve(place, seed), 1)
        compact(writer.folder)


def _created(home: Path, group: str, env: str, seeds: Sequence[int]) -> RunWriter:
    return create_run(
        home,
        command="train",
        config={"learning_rate": 1e-3, "seed": seeds[0]},
        seeds=list(seeds),
        env=env,
        algorithm=group.partition(" ")[0],
        argv=["backflip", "train", group, env, "--seed", str(seeds[0])],
        info=RunInfo(group=group),
    )


def _write_lines(folder: Path, seed: int, values: np.ndarray, every: int) -> None:
    with MetricsWriter(folder, "train") as file:
        for n, value in enumerate(values.tolist(), 1):
            file.write({"seed": seed, "env_steps": n * every, "updates": n, METRIC: value})


def _write_columns(folder: Path, seed: int, values: np.ndarray, every: int) -> None:
    """Write what `compact` makes of as many lines, without writing the lines first."""
    rows = np.arange(len(values))
    columns = {
        "seed": Column(rows, np.full(len(rows), seed)),
        "env_steps": Column(rows, (rows + 1) * every),
        "updates": Column(rows, rows + 1),
        METRIC: Column(rows, values.astype(np.float64)),
    }
    data = to_npz(Batch(len(rows), columns, {}), b"")
    assert data is not None
    replace_file(folder, "metrics-train.npz", data, synced=False)
