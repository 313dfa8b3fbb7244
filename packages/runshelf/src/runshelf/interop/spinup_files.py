"""Recognises the files of Spinning Up, and reads the settings beside them.

A run is a folder with `progress.txt`, cells separated by tabs, and `config.json`.
"""

from pathlib import Path
from typing import Any

from runshelf.errors import UserFacingError
from runshelf.interop.csv_files import read_csv
from runshelf.interop.metric_names import library_of
from runshelf.received_json import parse_record

PROGRESS, CONFIG = "progress.txt", "config.json"
LARGEST = 2**20  # bytes of `config.json`
# Settings in our names, by theirs. `epochs` are not ours, which are passes over a rollout.
_NAMES = {
    **{name: name for name in ("gamma", "seed", "exp_name", "batch_size")},
    "lam": "gae_lambda",
    "clip_ratio": "clip_range",
    "update_after": "learning_starts",
    "pi_lr": "learning_rate",
    "lr": "learning_rate",
    "q_lr": "q_lr",
    "replay_size": "buffer_size",
    "max_ep_len": "max_episode_steps",
}


def is_spinup(path: Path) -> bool:
    """Return whether a `progress.txt` is the log of a run: other programs use the name, too."""
    try:
        return library_of(read_csv(path).names) == "spinup"
    except UserFacingError:
        return False


def spinup_settings(folder: Path) -> dict[str, Any]:
    """Return the settings in `config.json`; empty if it cannot be read.

    `total_timesteps` are the planned env steps.
    """
    kept = _config(folder / CONFIG)
    found = {ours: kept[name] for name, ours in _NAMES.items() if _is_scalar(kept.get(name))}
    epochs, each = kept.get("epochs"), kept.get("steps_per_epoch")
    if type(epochs) is int and type(each) is int:
        found["total_timesteps"] = epochs * each
    if isinstance(kept.get("polyak"), float):
        found["tau"] = 1.0 - kept["polyak"]
    return found


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | int | float)


def _config(path: Path) -> dict[str, Any]:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST:
            return {}
        return parse_record(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
