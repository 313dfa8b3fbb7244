"""Creates homes with groups of runs for tests of comparisons."""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runshelf.store.metrics import MetricsWriter
from runshelf.store.run import RunInfo, RunWriter, create_run
from runshelf.store.summary import write_summary

METRIC = "episode_return_mean"


def make_group(
    home: Path,
    group: str,
    values: Sequence[float],
    *,
    env: str | None = "CartPole-v1",
    first: int = 0,
    points: int = 20,
    metric: str = METRIC,
    config: Mapping[str, Any] | None = None,
    status: str = "finished",
    manifest: Mapping[str, Any] | None = None,
    **info: Any,
) -> list[Path]:
    """Create one run for each value: a curve that rises from 0, and ends with the value."""
    return [
        make_run(
            home,
            group,
            value,
            first + place,
            env=env,
            points=points,
            metric=metric,
            config=config,
            **{"status": status, "manifest": manifest, **info},
        )
        for place, value in enumerate(values)
    ]


def make_run(
    home: Path,
    group: str,
    value: float,
    seed: int,
    *,
    env: str | None = "CartPole-v1",
    points: int = 20,
    metric: str = METRIC,
    config: Mapping[str, Any] | None = None,
    status: str = "finished",
    manifest: Mapping[str, Any] | None = None,
    **info: Any,
) -> Path:
    """Create a run with a curve of one seed; return its folder."""
    more = dict(manifest or {})
    writer: RunWriter = create_run(
        home,
        command="train",
        config={"learning_rate": 0.001, **(config or {}), "seed": seed},
        seeds=[seed],
        env=env,
        algorithm=group.split()[0],
        argv=["backflip", "train", group.split()[0], str(env), "--seed", str(seed)],
        info=RunInfo(group=group, **info),
        capture=lambda folder, cwd: more,
    )
    with MetricsWriter(writer.folder, "train") as file:
        for n in range(1, points + 1):
            # The last tenth of the curve is flat.
            share = min(1.0, n / (0.85 * points))
            y = value if share == 1.0 or not math.isfinite(value) else value * share
            file.write({"seed": seed, "env_steps": n * 100, "updates": n, metric: y})
    writer.record(status)  # pyright: ignore[reportArgumentType]
    writer.close()
    write_summary(writer.folder)
    return writer.folder


def change_manifest(folder: Path, **fields: Any) -> None:
    """Change fields of the manifest of a run that is not indexed yet."""
    path = folder / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def moment(unix: float) -> str:
    return datetime.fromtimestamp(unix, UTC).isoformat(timespec="milliseconds")
