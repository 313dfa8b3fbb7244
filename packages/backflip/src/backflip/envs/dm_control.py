"""The tasks of the DeepMind Control Suite as Gymnasium environments.

`dm_control:cheetah-run` is the domain `cheetah` with the task `run`. The suite's observation is
several named arrays; here it is one vector, the flattened arrays in the order of the task. Rewards
are in [0, 1] and episodes have 1,000 env steps, except in `lqr`, whose rewards are not bounded and
whose goal state terminates.

Source: Tassa et al. 2018, arXiv:1801.00690.
"""

import functools
import logging
from importlib.metadata import version
from typing import Any, final

import gymnasium
import numpy as np
from dm_control import suite
from gymnasium import spaces
from jaxtyping import Float

from runshelf.errors import UsageError, did_you_mean

EPISODE_STEPS = 1_000
ENDING_DOMAIN = "lqr"
TARGET = "target"  # part of the name of objects that a task moves in every episode

# The suite logs warnings about deprecated elements in its own models.
logging.getLogger("absl").setLevel(logging.ERROR)

# The package has no types.
_suite: Any = suite


@final
class ControlTask(gymnasium.Env[np.ndarray, np.ndarray]):
    """One task of the suite.

    The model does not depend on the seed: `lqr` draws its springs in the constructor, here always
    from seed 0, so that all environments of a batch have the same task. The seed of a reset
    determines the initial states of the following episodes.

    Args:
        name: domain and task, such as `cheetah-run`.
        max_episode_steps: the time limit in env steps.

    Raises:
        UsageError: the task does not exist, or MuJoCo's version does not suit dm_control.
    """

    def __init__(self, name: str, max_episode_steps: int = EPISODE_STEPS) -> None:
        self._env, self._limit, self._age = load(name), max_episode_steps, 0
        self.physics: Any = self._env.physics
        self.seconds: float = self._env.control_timestep()
        action = self._env.action_spec()
        self.action_space = spaces.Box(action.minimum, action.maximum, dtype=np.float64)
        size = _joined(self._env.reset().observation).size
        self.observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float[np.ndarray, " O"], dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed, options=options)
        if seed is not None:
            self._env.task.random.seed(np.random.SeedSequence(seed).generate_state(4))
        self._age = 0
        return _joined(self._env.reset().observation), {}

    def step(
        self, action: Float[np.ndarray, " A"]
    ) -> tuple[Float[np.ndarray, " O"], float, bool, bool, dict[str, Any]]:
        """Step the task: a discount of 0 terminates it, the time limit truncates it."""
        step = self._env.step(action)
        self._age += 1
        terminated = step.last() and step.discount == 0.0
        truncated = self._age >= self._limit and not terminated
        return _joined(step.observation), float(step.reward), terminated, truncated, {}

    def drawing_state(self) -> Float[np.ndarray, " S"]:
        """Return positions, velocities and target positions."""
        data = self.physics.data
        return np.concatenate([data.qpos, data.qvel, *self.targets])

    def draw(self, state: Float[np.ndarray, " S"], height: int, width: int) -> np.ndarray:
        """Return a picture, uint8 (height, width, 3), of a `drawing_state`."""
        model, data = self.physics.model, self.physics.data
        data.qpos[:], data.qvel[:], targets = np.split(state, [model.nq, model.nq + model.nv])
        for place, target in zip(self.targets, targets.reshape(-1, 3), strict=True):
            place[:] = target
        self.physics.forward()
        camera = 0 if model.ncam else -1
        return self.physics.render(height, width, camera_id=camera)

    def close(self) -> None:
        """Free the simulator and its renderer."""
        self._env.close()
        self.physics.free()

    @functools.cached_property
    def targets(self) -> list[Float[np.ndarray, "3"]]:
        """Writable views of the positions of all targets in the model."""
        model = self.physics.model
        return [
            places[number]
            for kind, places in (
                ("geom", model.geom_pos),
                ("site", model.site_pos),
                ("body", model.body_pos),
            )
            for number in range(len(places))
            if TARGET in (model.id2name(number, kind) or "")
        ]


def terminates(name: str) -> bool:
    """Return whether a state of the task can terminate an episode."""
    return name.partition("-")[0] == ENDING_DOMAIN


def load(name: str) -> Any:
    """Return a task of `dm_control.suite` without a time limit.

    Raises:
        UsageError: the task does not exist, or MuJoCo's version does not suit dm_control.
    """
    known = {f"{domain}-{task}": (domain, task) for domain, task in _suite.ALL_TASKS}
    if name not in known:
        raise UsageError(
            f"unknown dm_control task `{name}`{did_you_mean(name, known)} "
            "(write domain-task, as in dm_control:cheetah-run)"
        )
    try:
        return _suite.load(*known[name], task_kwargs={"random": 0, "time_limit": float("inf")})
    except AttributeError as error:  # a dm_control release supports one MuJoCo version only
        if getattr(error.obj, "__class__", object).__module__.partition(".")[0] != "mujoco":
            raise
        raise UsageError(
            f"dm_control {version('dm_control')} does not work with MuJoCo {version('mujoco')}; "
            "try: pip install 'backflip[dm_control]'"
        ) from error


def _joined(observation: dict[str, Any]) -> Float[np.ndarray, " O"]:
    return np.concatenate([np.ravel(part) for part in observation.values()])
