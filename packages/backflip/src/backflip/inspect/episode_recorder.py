"""Records the beginning of the episode in the first row of a batch, for a clip."""

from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np
from jaxtyping import Float, Shaped

from backflip.envs.pictures import are_pictures, packed
from backflip.envs.spec import HostEnv, HostStep
from backflip.inspect.open_env import scene_of

MAX_RECORDED_STEPS = 300  # env steps of an episode that are recorded for a clip
NO_SCENE: Float[np.ndarray, " 0"] = np.zeros(0, np.float32)


class EpisodeRecording(NamedTuple):
    """The first L env steps of one episode.

    Attributes:
        obs: observations acted on, with all stacked frames.
        next_obs: the next observations.
        scene: what the environment recorded for drawing, (L, S), or (L + 1, S) with the state after
            the episode's end, or (0,).
        reward: rewards.
    """

    obs: Shaped[np.ndarray, "L ..."]
    next_obs: Shaped[np.ndarray, "L ..."]
    scene: Shaped[np.ndarray, "..."]
    reward: Float[np.ndarray, " L"]


@final
class EpisodeRecorder:
    """Records one episode of row 0.

    Args:
        env: the batch. If it draws itself, its row 0 is drawn.
        most: env steps that are recorded at most.
    """

    def __init__(self, env: HostEnv, most: int = MAX_RECORDED_STEPS) -> None:
        self._env, self._most = env, most
        self._scenes: list[np.ndarray] = []
        self._steps: list[tuple[Any, Any, float]] = []
        self._over = False

    def before_step(self) -> None:
        """Record the scene of the current state. Called before each env step of the batch."""
        if not self._over:
            self._scenes.append(scene_of(self._env))

    def after_step(self, obs: np.ndarray, step: HostStep) -> None:
        """Record what the env step did with row 0, whose observation was `obs`."""
        if self._over:
            return
        self._steps.append((obs[0], step.next_obs[0], float(step.reward[0])))
        ended = bool(step.terminated[0] or step.truncated[0])
        if ended:  # the batch resets in an env step of its own, which has not happened yet
            self._scenes.append(scene_of(self._env))
        self._over = ended or len(self._steps) == self._most

    def recording(self) -> EpisodeRecording:
        """Return the recording."""
        obs, next_obs, reward = zip(*self._steps, strict=True)
        scene = joined(self._scenes)
        return EpisodeRecording(np.stack(obs), np.stack(next_obs), scene, np.array(reward))


def joined(scenes: Sequence[np.ndarray]) -> Shaped[np.ndarray, "..."]:
    """Return scenes of `scene_of` as one scene of a clip; (0,) if a picture is missing."""
    scene = np.concatenate(scenes)
    if not are_pictures(scene):
        return scene
    pictures = packed(scene.tolist())
    return NO_SCENE if pictures is None else pictures
