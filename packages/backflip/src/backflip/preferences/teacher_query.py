"""A query as a teacher that is a program sees it: two clips, and nothing else."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np
from jaxtyping import Bool, Float, Shaped, UInt8

from backflip.core.spec import shown_actions
from backflip.preferences.clips import Clip
from backflip.preferences.drawer import Drawer


@final
@dataclass(frozen=True, eq=False)
class ShownClip:
    """One clip of L env steps. All arrays are read-only.

    Attributes:
        env: the environment's id.
        observations: the observation before each env step; the newest of stacked frames.
        actions: the action of each env step; of a space of several choices, one column for each.
        next_observations: the observation after each env step.
        rewards: the true reward of each env step; 0 after the episode's end.
        alive: False after the episode's end.
        info: empty, because the environment's `info` is not recorded.
    """

    env: str
    observations: Shaped[np.ndarray, "L ..."]
    actions: Shaped[np.ndarray, "L ..."]
    next_observations: Shaped[np.ndarray, "L ..."]
    rewards: Float[np.ndarray, " L"]
    alive: Bool[np.ndarray, " L"]
    _draw: Callable[[], UInt8[np.ndarray, "L H W 3"]] = field(repr=False)
    info: Mapping[str, Any] = field(default_factory=dict)

    def frames(self) -> UInt8[np.ndarray, "L H W 3"]:
        """Draw and return a colour picture of the moment before each env step.

        After the episode's end the last picture is repeated, darkened.
        """
        return self._draw()


class TeacherQuery(NamedTuple):
    """Two clips side by side."""

    left: ShownClip
    right: ShownClip


def shown_clip(clip: Clip, env: str, drawer: Drawer) -> ShownClip:
    """Return a clip as a teacher sees it."""
    return ShownClip(
        env=env,
        observations=_read_only(clip.obs),
        actions=_read_only(shown_actions(drawer.spec, clip.action)),
        next_observations=_read_only(clip.next_obs),
        rewards=_read_only(clip.reward),
        alive=_read_only(clip.alive),
        _draw=partial(drawer.frames, clip),
    )


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view
