"""Observations, rewards and termination of Gymnasium's MuJoCo tasks, version 5, for batches.

Each formula is written so that it rounds as Gymnasium's does for one environment. Only the reward
of InvertedDoublePendulum may differ in its last bit, because NumPy squares arrays differently from
scalars. q and v are the simulator's positions and velocities, a is the action, x a position along
the track, Δt the duration of an env step, and `bonus` the reward of a healthy state, else 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from jaxtyping import Bool, Float

from backflip.envs.mujoco.simulators import Simulators

_mujoco: Any = mujoco  # the bindings are only partly typed
Numbers = Float[np.ndarray, " N"]
Start = tuple[Float[np.ndarray, " Q"], Float[np.ndarray, " V"]]


@dataclass(frozen=True)
class Task:
    """One of Gymnasium's tasks.

    Attributes:
        file: the model's file name in Gymnasium's assets.
        frame_skip: simulator steps per env step.
        start: (simulators, generator) -> initial positions and velocities, drawn as in Gymnasium.
        observe: (simulators) -> (N, D) observations, float64.
        reward: (simulators, x before the step, actions float32, bonus of each row) -> rewards.
        place: (simulators) -> the positions x.
        healthy: (simulators) -> whether the episode continues; None if every state is healthy.
        bonus: reward of a healthy state.
        contacts: whether contact forces are needed.
        smooth: (simulators, x before the step) -> rewards of the task with a smooth penalty, for
            fixed horizons; None if every state is healthy.
        smooth_steps: env steps of an episode of that task; None for Gymnasium's time limit.
    """

    file: str
    frame_skip: int
    start: Callable[[Simulators, np.random.Generator], Start]
    observe: Callable[[Simulators], Float[np.ndarray, "N D"]]
    reward: Callable[[Simulators, Numbers, Float[np.ndarray, "N A"], Numbers], Numbers]
    place: Callable[[Simulators], Numbers]
    healthy: Callable[[Simulators], Bool[np.ndarray, " N"]] | None = None
    bonus: float = 0.0
    contacts: bool = False
    smooth: Callable[[Simulators, Numbers], Numbers] | None = None
    smooth_steps: int | None = None


# Starts


def _uniform(noise: float) -> Callable[[Simulators, np.random.Generator], Start]:
    """Return a function that draws q and v uniformly within ±noise of the model's defaults."""

    def start(simulators: Simulators, rng: np.random.Generator) -> Start:
        model = simulators.model
        positions = model.qpos0 + rng.uniform(-noise, noise, model.nq)
        return positions, rng.uniform(-noise, noise, model.nv)

    return start


def _normal(noise: float) -> Callable[[Simulators, np.random.Generator], Start]:
    """Return a function that draws q uniformly within ±noise of the default, and v normally."""

    def start(simulators: Simulators, rng: np.random.Generator) -> Start:
        model = simulators.model
        positions = model.qpos0 + rng.uniform(-noise, noise, model.nq)
        return positions, noise * rng.standard_normal(model.nv)

    return start


def _with_target(simulators: Simulators, rng: np.random.Generator) -> Start:
    """Return Reacher's initial state; the target, the last two positions, is within 0.2 m."""
    model = simulators.model
    positions = rng.uniform(-0.1, 0.1, model.nq) + model.qpos0
    target = rng.uniform(-0.2, 0.2, 2)
    while np.linalg.norm(target) >= 0.2:
        target = rng.uniform(-0.2, 0.2, 2)
    positions[-2:] = target
    velocities = rng.uniform(-0.005, 0.005, model.nv)
    velocities[-2:] = 0
    return positions, velocities


# Shared by several tasks


def _joined(*parts: np.ndarray) -> Float[np.ndarray, "N D"]:
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def _squares(values: np.ndarray) -> np.ndarray:
    """Return the sum of squares of each row, in the precision of `values`."""
    return np.square(values.reshape(len(values), -1)).sum(axis=1)


def _x(simulators: Simulators) -> Numbers:
    return simulators.read("qpos")[:, 0]


def _speed(simulators: Simulators, before: Numbers, place: Callable[..., Numbers]) -> Numbers:
    return (place(simulators) - before) / simulators.seconds


def _run(control_cost: float) -> Callable[..., Numbers]:
    """Return the reward function (x' - x) / Δt + bonus - control_cost Σ a²."""

    def reward(simulators: Simulators, before: Numbers, action: Any, bonus: Numbers) -> Numbers:
        return _speed(simulators, before, _x) + bonus - control_cost * _squares(action)

    return reward


def _clipped(simulators: Simulators) -> Float[np.ndarray, "N D"]:
    """Return q without x, and v clipped to ±10."""
    velocities = np.clip(simulators.read("qvel"), -10, 10)
    return _joined(simulators.read("qpos")[:, 1:], velocities)


def _standing(
    place: Callable[[Simulators], Numbers], column: int, least: float, speed: float, height: float
) -> Callable[[Simulators, Numbers], Numbers]:
    """Return the reward function speed (x' - x) / Δt + height (z - least), z in a column of q."""

    def reward(simulators: Simulators, before: Numbers) -> Numbers:
        z = simulators.read("qpos")[:, column]
        return speed * _speed(simulators, before, place) + height * (z - least)

    return reward


# HalfCheetah, Swimmer


def _half_cheetah_obs(simulators: Simulators) -> Float[np.ndarray, "N D"]:
    return _joined(simulators.read("qpos")[:, 1:], simulators.read("qvel"))


def _swimmer_obs(simulators: Simulators) -> Float[np.ndarray, "N D"]:
    return _joined(simulators.read("qpos")[:, 2:], simulators.read("qvel"))


# Hopper, Walker2d


def _hopper_healthy(simulators: Simulators) -> Bool[np.ndarray, " N"]:
    """Return whether the robot is upright within 0.2 rad, above 0.7 m, and all else within ±100."""
    positions = simulators.read("qpos")
    rest = np.abs(_joined(positions[:, 2:], simulators.read("qvel"))) < 100
    return rest.all(axis=1) & (positions[:, 1] > 0.7) & (np.abs(positions[:, 2]) < 0.2)


def _walker_healthy(simulators: Simulators) -> Bool[np.ndarray, " N"]:
    """Return whether the robot is upright within 1 rad, and between 0.8 m and 2 m high."""
    _, height, angle = simulators.read("qpos")[:, :3].T
    return (height > 0.8) & (height < 2.0) & (np.abs(angle) < 1.0)


# Pendulums


def _pendulum_obs(simulators: Simulators) -> Float[np.ndarray, "N D"]:
    return _joined(simulators.read("qpos"), simulators.read("qvel"))


def _pendulum_reward(_: Simulators, __: Numbers, ___: Any, bonus: Numbers) -> Numbers:
    return bonus


def _pendulum_healthy(simulators: Simulators) -> Bool[np.ndarray, " N"]:
    """Return whether the pole is upright within 0.2 rad, and all numbers are finite."""
    state = _pendulum_obs(simulators)
    return np.isfinite(state).all(axis=1) & (np.abs(state[:, 1]) <= 0.2)


def _pendulum_smooth(simulators: Simulators, _: Numbers) -> Numbers:
    """Return -angle²."""
    return -np.square(simulators.read("qpos")[:, 1])


def _double_pendulum_obs(simulators: Simulators) -> Float[np.ndarray, "N D"]:
    positions, velocities = simulators.read("qpos"), np.clip(simulators.read("qvel"), -10, 10)
    force = np.clip(simulators.read("qfrc_constraint"), -10, 10)[:, :1]
    angles = positions[:, 1:]
    return _joined(positions[:, :1], np.sin(angles), np.cos(angles), velocities, force)


def _double_pendulum_reward(simulators: Simulators, _: Numbers, __: Any, bonus: Numbers) -> Numbers:
    """Return bonus - 0.01 x² - (y - 2)² - 0.001 v₁² - 0.005 v₂², with the tip at (x, y)."""
    x, _y, y = simulators.read("site_xpos")[:, 0].T
    _, first, second = simulators.read("qvel").T
    distance = 0.01 * x**2 + (y - 2) ** 2
    return bonus - distance - (1e-3 * first**2 + 5e-3 * second**2)


def _double_pendulum_healthy(simulators: Simulators) -> Bool[np.ndarray, " N"]:
    """Return whether the tip is above 1 m."""
    return simulators.read("site_xpos")[:, 0, 2] > 1


def _double_pendulum_smooth(simulators: Simulators, _: Numbers) -> Numbers:
    """Return 10 (y - 1), with the tip at height y."""
    return 10.0 * (simulators.read("site_xpos")[:, 0, 2] - 1.0)


# Reacher


def _to_target(simulators: Simulators) -> Float[np.ndarray, "N 3"]:
    model, places = simulators.model, simulators.read("xpos")
    return places[:, model.body("fingertip").id] - places[:, model.body("target").id]


def _reacher_obs(simulators: Simulators) -> Float[np.ndarray, "N D"]:
    positions = simulators.read("qpos")
    angles, vector = positions[:, :2], _to_target(simulators)[:, :2]
    velocities = simulators.read("qvel")[:, :2]
    return _joined(np.cos(angles), np.sin(angles), positions[:, 2:], velocities, vector)


def _reacher_reward(simulators: Simulators, _: Numbers, action: Any, __: Numbers) -> Numbers:
    """Return -|fingertip - target| - Σ a²."""
    vector = _to_target(simulators)
    return -np.sqrt(np.vecdot(vector, vector)) - _squares(action)


# Ant


def _ant_x(simulators: Simulators) -> Numbers:
    return simulators.read("xpos")[:, 1, 0]


def _ant_forces(simulators: Simulators) -> Float[np.ndarray, "N B 6"]:
    return np.clip(simulators.read("cfrc_ext"), -1.0, 1.0)


def _ant_obs(simulators: Simulators) -> Float[np.ndarray, "N D"]:
    places = simulators.read("qpos")[:, 2:]
    return _joined(places, simulators.read("qvel"), _ant_forces(simulators)[:, 1:])


def _ant_reward(simulators: Simulators, before: Numbers, action: Any, bonus: Numbers) -> Numbers:
    """Return (x' - x) / Δt + bonus - 0.5 Σ a² - 0.0005 Σ f², f contact forces clipped to ±1."""
    costs = 0.5 * _squares(action) + 5e-4 * _squares(_ant_forces(simulators))
    return _speed(simulators, before, _ant_x) + bonus - costs


def _ant_healthy(simulators: Simulators) -> Bool[np.ndarray, " N"]:
    """Return whether the torso is between 0.2 m and 1 m high, and all numbers are finite."""
    state = _pendulum_obs(simulators)
    return np.isfinite(state).all(axis=1) & (state[:, 2] >= 0.2) & (state[:, 2] <= 1.0)


# Humanoid


def _humanoid_x(simulators: Simulators) -> Numbers:
    """Return the x coordinate of the centre of mass."""
    masses = simulators.model.body_mass
    return np.einsum("b,nb->n", masses, simulators.read("xipos")[:, :, 0]) / masses.sum()


def _humanoid_obs(simulators: Simulators) -> Float[np.ndarray, "N D"]:
    read = simulators.read
    motion = (read("qpos")[:, 2:], read("qvel"), read("cinert")[:, 1:], read("cvel")[:, 1:])
    return _joined(*motion, read("qfrc_actuator")[:, 6:], read("cfrc_ext")[:, 1:])


def _humanoid_reward(simulators: Simulators, before: Numbers, _: Any, bonus: Numbers) -> Numbers:
    """Return 1.25 (x' - x) / Δt + bonus - 0.1 Σ a² - min(5e-7 Σ f², 10)."""
    contact = np.minimum(5e-7 * _squares(simulators.read("cfrc_ext")), 10.0)
    costs = 0.1 * _squares(simulators.read("ctrl")) + contact
    return 1.25 * _speed(simulators, before, _humanoid_x) + bonus - costs


def _humanoid_healthy(simulators: Simulators) -> Bool[np.ndarray, " N"]:
    """Return whether the torso is between 1 m and 2 m high."""
    height = simulators.read("qpos")[:, 2]
    return (height > 1.0) & (height < 2.0)


TASKS = {
    "HalfCheetah-v5": Task("half_cheetah.xml", 5, _normal(0.1), _half_cheetah_obs, _run(0.1), _x),
    "Swimmer-v5": Task("swimmer.xml", 4, _uniform(0.1), _swimmer_obs, _run(1e-4), _x),
    "Hopper-v5": Task(
        file="hopper.xml",
        frame_skip=4,
        start=_uniform(5e-3),
        observe=_clipped,
        reward=_run(1e-3),
        place=_x,
        healthy=_hopper_healthy,
        bonus=1.0,
        smooth=_standing(_x, 1, 1.0, speed=1.0, height=1.0),
    ),
    "Walker2d-v5": Task(
        file="walker2d_v5.xml",
        frame_skip=4,
        start=_uniform(5e-3),
        observe=_clipped,
        reward=_run(1e-3),
        place=_x,
        healthy=_walker_healthy,
        bonus=1.0,
        smooth=_standing(_x, 1, 2.0, speed=1.0, height=1.0),
    ),
    "InvertedPendulum-v5": Task(
        file="inverted_pendulum.xml",
        frame_skip=2,
        start=_uniform(0.01),
        observe=_pendulum_obs,
        reward=_pendulum_reward,
        place=_x,
        healthy=_pendulum_healthy,
        bonus=1.0,
        smooth=_pendulum_smooth,
        smooth_steps=25,
    ),
    "InvertedDoublePendulum-v5": Task(
        file="inverted_double_pendulum.xml",
        frame_skip=5,
        start=_normal(0.1),
        observe=_double_pendulum_obs,
        reward=_double_pendulum_reward,
        place=_x,
        healthy=_double_pendulum_healthy,
        bonus=10.0,
        smooth=_double_pendulum_smooth,
        smooth_steps=50,
    ),
    "Reacher-v5": Task("reacher.xml", 2, _with_target, _reacher_obs, _reacher_reward, _x),
    "Ant-v5": Task(
        file="ant.xml",
        frame_skip=5,
        start=_normal(0.1),
        observe=_ant_obs,
        reward=_ant_reward,
        place=_ant_x,
        healthy=_ant_healthy,
        bonus=1.0,
        contacts=True,
        smooth=_standing(_ant_x, 2, 1.2, speed=1.0, height=1.0),
    ),
    "Humanoid-v5": Task(
        file="humanoid.xml",
        frame_skip=5,
        start=_uniform(0.01),
        observe=_humanoid_obs,
        reward=_humanoid_reward,
        place=_humanoid_x,
        healthy=_humanoid_healthy,
        bonus=5.0,
        contacts=True,
        smooth=_standing(_humanoid_x, 2, 1.0, speed=1.25, height=5.0),
    ),
}


def unlimited_angles(task: Task, simulators: Simulators) -> tuple[int, ...]:
    """Return the indices of the observed angles of joints that turn without limit.

    These are the numbers that grow by 2π when the joint has made a turn. The state of the first row
    is lost.
    """
    model, still = simulators.model, np.zeros(simulators.model.nv)
    hinges = (model.jnt_type == _mujoco.mjtJoint.mjJNT_HINGE) & (model.jnt_limited == 0)

    def observed(positions: np.ndarray) -> Numbers:
        simulators.place(0, positions, still)
        return task.observe(simulators)[0]

    found: set[int] = set()
    for place in model.jnt_qposadr[hinges]:
        turned = model.qpos0.copy()
        turned[place] += 2 * np.pi
        grown = observed(turned) - observed(model.qpos0.copy())
        found |= set(np.flatnonzero(np.isclose(grown, 2 * np.pi)).tolist())
    return tuple(sorted(found))
