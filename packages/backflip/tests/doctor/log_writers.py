"""Writes logs as other libraries do."""

import csv
from pathlib import Path
from typing import Any

from runshelf.interop.event_files import scalar_event, version_event

POINTS = 60


def rows_of(points: int = POINTS, **columns: Any) -> list[dict[str, Any]]:
    """Return rows of columns; a column is a number, or a function of the share of the run."""
    found = list[dict[str, Any]]()
    for at in range(1, points + 1):
        share = at / points
        found.append({name: y(share) if callable(y) else y for name, y in columns.items()})
    return found


def write_csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write a CSV file, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def sb3(folder: Path, **columns: Any) -> Path:
    """Write `progress.csv` of Stable-Baselines3 in a folder, and return the folder."""
    named = {"time/total_timesteps": lambda share: round(share * 1_000_000)}
    named |= {"time/fps": 1000.0, "rollout/ep_rew_mean": lambda share: 100 * share}
    write_csv(folder / "progress.csv", rows_of(**(named | columns)))
    return folder


def cleanrl(folder: Path, **columns: Any) -> Path:
    """Write an event file of CleanRL in a folder, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    data = version_event(1.6e9)
    for at, row in enumerate(rows_of(**({"charts/SPS": 1000.0} | columns)), 1):
        data += scalar_event(1.6e9 + at, at * 10_000, list(row.items()))
    (folder / "events.out.tfevents.1.host").write_bytes(data)
    return folder
