"""MuJoCo models that move in one plane, and where their parts are in the picture.

A model is planar if all hinges have the same axis, which is the line of sight, and all slides are
across it. Then the outline of a part only turns and moves in the picture, so it is computed once.
"""

import importlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from jaxtyping import Float

from backflip.envs.ids import CONTROL_PREFIX
from backflip.envs.views.outlines import KNOWN, PLANE, outline, vertices_of
from backflip.envs.views.sight import (
    FROM_ABOVE,
    HINGE,
    PARALLEL,
    SLIDE,
    NotPlanarError,
    Sight,
    sight_of,
)

JOINT = 0  # MuJoCo's mjtTrn: an actuator drives a joint
SHOWN_GROUPS = 3  # MuJoCo shows the first three groups of shapes
GOALS = ("target", "goal")  # parts of the names of what a task wants the robot to reach
UNSET_COLOUR = (0.5, 0.5, 0.5, 1.0)  # of a shape that has the colour of its material
FARTHEST = 1e6  # metres or radians


@final
@dataclass(frozen=True)
class Part:
    """A shape of a model.

    Attributes:
        body: the number of its body.
        outline: its outline around its centre at the reference pose, in metres.
        goal: whether its name says that it is to be reached.
    """

    body: int
    outline: Float[np.ndarray, "32 2"]
    goal: bool


class Placed(NamedTuple):
    """Where a model is in the picture's plane, in metres.

    Attributes:
        centres: the centre of each part.
        turns: the rotation of each part from the reference pose.
        mass: the robot's centre of mass.
        hinges: the hinges that are drawn.
        tendons: the points along each tendon.
    """

    centres: Float[np.ndarray, "P 2"]
    turns: Float[np.ndarray, "P 2 2"]
    mass: Float[np.ndarray, "2"]
    hinges: Float[np.ndarray, "J 2"]
    tendons: list[Float[np.ndarray, "n 2"]]


@final
class PlanarModel:
    """A model that moves in one plane. One thread at a time may use it.

    Attributes:
        model: MuJoCo's model.
        seconds: duration of an env step.
        numbers: how many numbers a state has: positions, velocities, positions of targets.
        start: the state of the reference pose.
        sight: how a person looks at it.
        directions: the axes of the joints at the reference pose, in the picture.
        parts: what is drawn.
        robot: the body that everything in the robot hangs from: of those in the world, the one with
            the most joints that are driven, then the one with the most joints.
        hinges: the joints that are drawn as hinges.
        ground: the ground's height; None if there is none, or it is seen from above.

    Args:
        name: Gymnasium's id, or `dm_control:` and a task.
        env_args: the environment's constructor arguments.

    Raises:
        NotPlanarError: the model does not move in one plane, or has shapes that are not drawn.
        Exception: the environment cannot be created.
    """

    def __init__(self, name: str, env_args: Mapping[str, Any]) -> None:
        self._mujoco: Any = importlib.import_module("mujoco")
        made = _made(name, env_args)
        self.model: Any = made.model
        self.seconds, self._targets = made.seconds, made.targets
        self._data: Any = self._mujoco.MjData(self.model)
        self.numbers = int(self.model.nq + self.model.nv) + 3 * len(self._targets)
        rest = np.zeros(self.model.nv)
        self.start = np.concatenate([self.model.qpos0, rest, *self._targets])
        self._move(self.start)
        self.sight = sight_of(self.model, self._data)
        self.directions: Float[np.ndarray, "J 2"] = self._data.xaxis @ self.sight.axes.T
        normals = self._data.geom_xmat.reshape(-1, 3, 3)[:, :, 2]
        self._kept = _Kept.of(self.model, normals, self.sight)
        self._reference = self._rotations().copy()
        self.parts = [self._part(number) for number in range(len(self._reference))]
        self._shapes = np.stack([part.outline for part in self.parts])
        self.robot = _robot(self.model)
        self.hinges = _drawn_hinges(self.model)
        self.ground = self._ground(normals @ self.sight.axes[1])

    def place(self, state: Float[np.ndarray, " S"]) -> Placed:
        """Return where everything is in a state."""
        self._move(state)
        data, axes = self._data, self.sight.axes
        turns = axes @ self._rotations() @ self._reference.swapaxes(1, 2) @ axes.T
        kept, tendons = self._kept, []
        for tendon in kept.tendons:
            start, count = int(data.ten_wrapadr[tendon]), int(data.ten_wrapnum[tendon])
            tendons.append(data.wrap_xpos.reshape(-1, 3)[start : start + count] @ axes.T)
        centres = np.concatenate([data.geom_xpos[kept.geoms], data.site_xpos[kept.sites]])
        mass = axes @ data.subtree_com[self.robot]
        return Placed(centres @ axes.T, turns, mass, data.xanchor[self.hinges] @ axes.T, tendons)

    def outlines(self, placed: Placed) -> Float[np.ndarray, "P 32 2"]:
        """Return the outlines of all parts of a placed model."""
        return self._shapes @ placed.turns.swapaxes(1, 2) + placed.centres[:, None]

    def depth(self, body: int) -> float:
        """Return how far towards the person a body is."""
        return float(self._data.xipos[body] @ self.sight.toward)

    def _move(self, state: Float[np.ndarray, " S"]) -> None:
        positions = int(self.model.nq)
        # A simulator that fails records numbers that are not finite.
        state = np.nan_to_num(state, nan=0.0).clip(-FARTHEST, FARTHEST)
        self._data.qpos[:] = state[:positions]
        places = state[positions + int(self.model.nv) :].reshape(-1, 3)
        for target, place in zip(self._targets, places, strict=True):
            target[:] = place
        self._mujoco.mj_kinematics(self.model, self._data)
        self._mujoco.mj_comPos(self.model, self._data)
        self._mujoco.mj_tendon(self.model, self._data)

    def _rotations(self) -> Float[np.ndarray, "P 3 3"]:
        data, kept = self._data, self._kept
        rows = np.concatenate([data.geom_xmat[kept.geoms], data.site_xmat[kept.sites]])
        return rows.reshape(-1, 3, 3)

    def _part(self, number: int) -> Part:
        model, axes = self.model, self.sight.axes @ self._reference[number]
        geoms = len(self._kept.geoms)
        if number < geoms:
            geom = self._kept.geoms[number]
            body, kind = int(model.geom_bodyid[geom]), int(model.geom_type[geom])
            shape = outline(kind, model.geom_size[geom], axes, vertices_of(model, geom))
            goal = _is_goal(model.geom(geom).name) or _is_goal(model.body(body).name)
        else:
            site = self._kept.sites[number - geoms]
            body, kind = int(model.site_bodyid[site]), int(model.site_type[site])
            shape = outline(kind, model.site_size[site], axes, np.zeros((0, 3)))
            goal = True
        return Part(body, shape, goal)

    def _ground(self, upright: Float[np.ndarray, " G"]) -> float | None:
        if self.sight is FROM_ABOVE:
            return None
        flat = (self.model.geom_type == PLANE) & (upright > 1 - PARALLEL)
        heights = self._data.geom_xpos[flat] @ self.sight.axes[1]
        return float(heights.max()) if flat.any() else None


class _Made(NamedTuple):
    """A model, the duration of an env step, and writable views of the positions of targets."""

    model: Any
    seconds: float
    targets: list[Float[np.ndarray, "3"]]


def _made(name: str, env_args: Mapping[str, Any]) -> _Made:
    """Return the model of an environment."""
    if name.startswith(CONTROL_PREFIX):
        control: Any = importlib.import_module("backflip.envs.dm_control")
        task = control.ControlTask(name.removeprefix(CONTROL_PREFIX))
        return _Made(task.physics.model.ptr, task.seconds, task.targets)
    quiet: Any = importlib.import_module("backflip.envs.mujoco.simulators").quiet
    make: Any = importlib.import_module("gymnasium").make
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # older versions of the environments are deprecated
        env = make(name, disable_env_checker=True, **env_args).unwrapped
    return _Made(env.model, float(env.dt), [])


@dataclass(frozen=True)
class _Kept:
    """The numbers of the geoms, sites and tendons that are drawn."""

    geoms: list[int]
    sites: list[int]
    tendons: list[int]

    @classmethod
    def of(cls, model: Any, normals: Float[np.ndarray, "G 3"], sight: Sight) -> "_Kept":
        """Choose them; a ground and planes that face the person are not parts."""
        faces = np.abs(normals @ sight.toward) > 1 - PARALLEL
        ground = (normals @ sight.axes[1] > 1 - PARALLEL) & (sight is not FROM_ABOVE)
        backdrop = (model.geom_type == PLANE) & (faces | ground)
        geoms = [g for g in range(model.ngeom) if not backdrop[g] and _is_shown(model, g)]
        sites = [
            site
            for site in range(model.nsite)
            if _is_goal(model.site(site).name) and _is_seen(model, "site", site)
        ]
        if unknown := {int(model.geom_type[geom]) for geom in geoms} - KNOWN:
            raise NotPlanarError(f"shapes of the types {unknown}")
        tendons = [t for t in range(model.ntendon) if model.tendon_rgba[t, 3] > 0]
        return cls(geoms, sites, tendons)


def _is_shown(model: Any, geom: int) -> bool:
    """Return whether MuJoCo shows a geom unless it is told otherwise, or it is a goal."""
    usual = _is_goal(model.geom(geom).name) or int(model.geom_group[geom]) < SHOWN_GROUPS
    return usual and _is_seen(model, "geom", geom)


def _is_seen(model: Any, kind: str, number: int) -> bool:
    """Return whether a shape is not transparent."""
    colour = getattr(model, f"{kind}_rgba")[number]
    material = int(getattr(model, f"{kind}_matid")[number])
    if material >= 0 and np.allclose(colour, UNSET_COLOUR):
        colour = model.mat_rgba[material]
    return bool(colour[3] > 0)


def _is_goal(name: str) -> bool:
    return any(word in name.lower() for word in GOALS)


def _robot(model: Any) -> int:
    """Return the body that everything in the robot hangs from."""
    welded, parents = model.body_weldid, model.body_parentid
    driven = set(model.actuator_trnid[model.actuator_trntype == JOINT, 0].tolist())

    def joints_below(body: int) -> tuple[int, int]:
        below = {j for j in range(model.njnt) if is_below(model, int(model.jnt_bodyid[j]), body)}
        return len(below & driven), len(below)

    hanging = [body for body in range(1, model.nbody) if not welded[parents[body]]]
    return max((body for body in hanging if model.body_jntnum[body]), key=joints_below)


def is_below(model: Any, body: int, root: int) -> bool:
    """Return whether a body is `root` or hangs from it."""
    while body > root:  # a parent has a smaller number
        body = int(model.body_parentid[body])
    return body == root


def _drawn_hinges(model: Any) -> list[int]:
    """Return the hinges, except those of bodies that also slide."""
    slides = {int(model.jnt_bodyid[j]) for j in range(model.njnt) if model.jnt_type[j] == SLIDE}
    return [
        j
        for j in range(model.njnt)
        if model.jnt_type[j] == HINGE and int(model.jnt_bodyid[j]) not in slides
    ]
