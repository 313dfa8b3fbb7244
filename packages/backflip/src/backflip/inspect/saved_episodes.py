"""The episodes of a game as a `.npz` file of trajectories, which `teach` reads.

`backflip.preferences.trajectory_file` describes the fields. The last episode may be unfinished; its
last step is then marked as truncated. The file is also written after episodes, so that a game that
is killed loses little.
"""

import io
import time
from pathlib import Path
from typing import Any, final

import numpy as np

from backflip.core import spaces
from backflip.core.spec import EnvSpec, newest_frame
from backflip.preferences.trajectory_file import ENVIRONMENT, SUFFIX
from runshelf.errors import UsageError
from runshelf.store.paths import is_folder
from runshelf.store.writing import write_whole

WRITING_SHARE = 0.02  # of the time of a game; each file has all of its episodes


@final
class SavedEpisodes:
    """The env steps of a game.

    Args:
        spec: the environment's spec.
        path: the file that has them after each episode.
    """

    def __init__(self, spec: EnvSpec, path: Path) -> None:
        self._spec, self._path = spec, path
        self._next_at = 0.0  # on the monotonic clock: when the file is written next
        self._rows: dict[str, list[Any]] = {
            name: []
            for name in (
                "observations",
                "actions",
                "next_observations",
                "rewards",
                "terminations",
                "truncations",
            )
        }

    def add(
        self,
        obs: np.ndarray,
        action: np.ndarray,
        next_obs: np.ndarray,
        reward: float,
        *,
        terminated: bool,
        truncated: bool,
    ) -> None:
        """Add one env step.

        Args:
            obs: the observation before it, as an algorithm learns from it.
            action: the action, as an algorithm chooses it.
            next_obs: the observation after it.
            reward: its reward.
            terminated: whether it ended the episode by the task's own rule.
            truncated: whether something else ended it.
        """
        own = self._spec.own_spaces.take(action[None])
        if isinstance(self._spec.own_spaces.action, spaces.Group):
            own = spaces.flattened(self._spec.own_spaces.action, own, "`action`")[0]
        before, after = (newest_frame(self._spec, x).copy() for x in (obs, next_obs))
        row = (before, own[0], after, reward, terminated, truncated)
        for values, value in zip(self._rows.values(), row, strict=True):
            values.append(value)

    def cut(self) -> None:
        """Mark the end of an episode that was left before its end."""
        if self._rows["truncations"] and not self._rows["terminations"][-1]:
            self._rows["truncations"][-1] = True

    def end_episode(self) -> None:
        """Write the file after an episode, unless that takes too large a share of the time.

        Raises:
            UserFacingError: the file cannot be written.
        """
        began = time.monotonic()
        if began < self._next_at:
            return
        self.save()
        now = time.monotonic()
        self._next_at = now + (now - began) / WRITING_SHARE

    def save(self) -> int:
        """Write the file and return its number of env steps; without any, no file is written.

        Raises:
            UserFacingError: the file cannot be written.
        """
        self.cut()
        steps = len(self._rows["rewards"])
        if steps:
            file = io.BytesIO()
            arrays = {name: np.stack(values) for name, values in self._rows.items()}
            arrays[ENVIRONMENT] = np.array(self._spec.id)
            np.savez_compressed(file, allow_pickle=False, **arrays)
            write_whole(self._path, file.getvalue())
        return steps


def checked_path(text: str) -> Path:
    """Return the path of a file to save episodes in.

    Raises:
        UsageError: it does not end in `.npz`, or its folder does not exist.
    """
    path = Path(text)
    if path.suffix != SUFFIX:
        raise UsageError(f"--save must end in `{SUFFIX}`, got `{path}`; try {path.stem}{SUFFIX}")
    if not is_folder(path.parent):
        raise UsageError(f"--save: the folder `{path.parent}` does not exist; make it first")
    return path
