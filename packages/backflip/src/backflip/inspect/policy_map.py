"""Maps of a policy's value and greedy action over a two-dimensional state space."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Shaped, UInt8
from PIL import Image, ImageDraw, ImageFont

from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.envs.ids import family
from backflip.envs.views.canvas import BACKGROUND, BODY, FAINT, GOAL, JOINT, LIMB, LIMIT
from backflip.envs.views.numbers import FAR

POINTS = 41  # grid points along each axis
CELL = 7  # side of a grid point, in pixels
LEFT, TOP, BELOW = 58, 26, 40  # margins for text, in pixels
TEXT = 12
DARK, MIDDLE, BRIGHT = (27, 30, 66), (38, 130, 142), (250, 231, 90)
CHOICES = (LIMB, FAINT, BODY, GOAL, LIMIT)  # colours of discrete actions

Points = Float[np.ndarray, "P 2"]


class StateSpace(NamedTuple):
    """A state space of two dimensions.

    Attributes:
        names: names of both dimensions.
        low: lower ends of the axes.
        high: upper ends of the axes.
        observe: (points) -> the observation of each state.
    """

    names: tuple[str, str]
    low: tuple[float, float]
    high: tuple[float, float]
    observe: Callable[[Points], Shaped[np.ndarray, "P ..."]]


class PolicyMap(NamedTuple):
    """A policy on a grid of states; the first dimension is along columns, the second along rows.

    Attributes:
        space: the state space.
        value: the value of each state; None if the algorithm has no value.
        action: the index of the greedy action, or its first dimension if it is continuous.
    """

    space: StateSpace
    value: Float[np.ndarray, "POINTS POINTS"] | None
    action: Shaped[np.ndarray, "POINTS POINTS"]

    def to_json(self) -> dict[str, Any]:
        """Return the axes and the numbers with four significant digits, as JSON values."""
        value = None if self.value is None else _short(self.value)
        axes = [
            {"name": name, "low": low, "high": high}
            for name, low, high in zip(*self.space[:3], strict=True)
        ]
        return {"axes": axes, "value": value, "action": _short(self.action)}


def state_space_of(env_id: str, spec: EnvSpec) -> StateSpace | None:
    """Return the two-dimensional state space, or None if it has more dimensions or no bounds."""
    name = family(env_id)
    if name == "Pendulum":
        names = ("angle from upright, rad", "angular velocity, rad/s")
        return StateSpace(names, (-np.pi, -8.0), (np.pi, 8.0), _pendulum_obs)
    box = spec.observation
    flat = not spec.is_image and box.shape == (2,)
    if not flat or not (np.abs([box.low, box.high]) < FAR).all():
        return None
    car = name.startswith("MountainCar")
    names = ("position", "velocity") if car else ("observed number 0", "observed number 1")
    (x0, y0), (x1, y1) = box.low.tolist(), box.high.tolist()
    return StateSpace(names, (x0, y0), (x1, y1), _identity)


def map_policy(
    space: StateSpace,
    act: Callable[[np.ndarray], np.ndarray],
    value: Callable[[np.ndarray], np.ndarray | None],
) -> PolicyMap:
    """Return a policy's value and greedy action on a grid of states."""
    axes = [np.linspace(low, high, POINTS) for low, high in zip(space.low, space.high, strict=True)]
    x, y = np.meshgrid(*axes)
    obs = space.observe(np.stack([x.ravel(), y.ravel()], 1)).astype(np.float32)
    action, values = np.asarray(act(obs)), value(obs)
    if action.ndim > 1:
        action = action.reshape(len(action), -1)[:, 0]
    shape = (POINTS, POINTS)
    values = None if values is None else values.reshape(shape)
    return PolicyMap(space, values, action.reshape(shape))


def picture(found: PolicyMap, spec: EnvSpec) -> UInt8[np.ndarray, "H W 3"]:
    """Return value and greedy action over the state space, side by side."""
    panels = [_panel(found.space, *_action_colours(found.action, spec))]
    if found.value is not None:
        low, high = float(found.value.min()), float(found.value.max())
        colours = _between((DARK, MIDDLE, BRIGHT), _share(found.value, low, high))
        title = f"value: {low:.4g} dark, {high:.4g} bright"
        panels.insert(0, _panel(found.space, colours, title))
    return np.concatenate(panels, 1)


def _action_colours(action: np.ndarray, spec: EnvSpec) -> tuple[np.ndarray, str]:
    """Return a colour for each state, and the title that explains the colours."""
    if isinstance(spec.action, Discrete):
        palette = np.array(CHOICES, np.uint8)
        return palette[action.astype(int) % len(CHOICES)], "greedy action, by colour"
    low, high = float(spec.action.low.flat[0]), float(spec.action.high.flat[0])
    colours = _between((LIMB, BACKGROUND, BODY), _share(action, low, high))
    return colours, f"greedy action: {low:.3g} yellow, {high:.3g} blue"


def _share(values: np.ndarray, low: float, high: float) -> np.ndarray:
    return np.clip((values - low) / (high - low), 0, 1) if high > low else np.full_like(values, 0.5)


def _between(colours: tuple[tuple[int, int, int], ...], share: np.ndarray) -> np.ndarray:
    """Return the linear interpolation of colours at shares in [0, 1]."""
    places = np.linspace(0, 1, len(colours))
    channels = [np.interp(share, places, [c[i] for c in colours]) for i in range(3)]
    return np.rint(np.stack(channels, -1)).astype(np.uint8)


def _panel(space: StateSpace, colours: np.ndarray, title: str) -> UInt8[np.ndarray, "H W 3"]:
    """Return one map with a title and labelled axes; the second dimension grows upwards."""
    side = POINTS * CELL
    image = Image.new("RGB", (LEFT + side + 12, TOP + side + BELOW), BACKGROUND)
    cells = Image.fromarray(np.ascontiguousarray(colours[::-1]))
    image.paste(cells.resize((side, side), Image.Resampling.NEAREST), (LEFT, TOP))
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(TEXT)
    (x0, y0), (x1, y1) = space.low, space.high
    bottom, right = TOP + side, LEFT + side
    pen.text((LEFT, TOP - 6), title, JOINT, font, "ls")
    for text, x, y, anchor in (
        (f"{x0:.3g}", LEFT, bottom + 4, "la"),
        (f"{x1:.3g}", right, bottom + 4, "ra"),
        (space.names[0], LEFT + side / 2, bottom + 4, "ma"),
        (f"{y1:.3g}", LEFT - 5, TOP, "ra"),
        (f"{y0:.3g}", LEFT - 5, bottom, "rs"),
        (f"up: {space.names[1]}", LEFT + side / 2, bottom + 20, "ma"),
    ):
        pen.text((x, y), text, JOINT, font, anchor)
    return np.asarray(image)


def _pendulum_obs(points: Points) -> Float[np.ndarray, "P 3"]:
    angle, speed = points.T
    return np.stack([np.cos(angle), np.sin(angle), speed], 1)


def _identity(points: Points) -> Points:
    return points


def _short(values: np.ndarray) -> list[list[float]]:
    return [[float(f"{x:.4g}") for x in row] for row in values.tolist()]
