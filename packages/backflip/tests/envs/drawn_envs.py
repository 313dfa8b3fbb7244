"""Gymnasium environments that draw themselves, each in another way."""

# ruff: noqa: D102  (methods of one line, named by what they return)

import random
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

BACK, SQUARE = (250, 240, 200), (200, 0, 40)  # colours of every picture
LIMIT = 12


class Square(gymnasium.Env[np.ndarray, int]):
    """A square on one of 8 places of a line. Place 7 ends the episode; so does env step 12."""

    metadata: Any = {"render_modes": ["human", "rgb_array"], "render_fps": 10}  # noqa: RUF012
    observation_space: Any = spaces.Box(0, 7, (1,), np.float32)
    action_space: Any = spaces.Discrete(2)

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.place, self.age = int(self.np_random.integers(6)), 0
        return self.seen(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        slips = self.np_random.random() < 0.2
        self.place = int(np.clip(self.place + (1 if (int(action) == 1) != slips else -1), 0, 7))
        self.age += 1
        return self.seen(), float(self.place), self.place == 7, self.age >= LIMIT, {}

    def seen(self) -> np.ndarray:
        return np.array([self.place], np.float32)

    def frame(self) -> np.ndarray:
        frame = np.full((40, 160, 3), BACK, np.uint8)
        frame[:, 20 * self.place : 20 * self.place + 20] = SQUARE
        return frame

    def render(self) -> Any:
        return self.frame() if self.render_mode == "rgb_array" else None


class WithoutArgument(Square):
    """The constructor takes no `render_mode`."""

    def __init__(self) -> None:
        super().__init__()


class OldStyle(Square):
    """`render` takes the mode, as in Gym; without it, it would open a window."""

    metadata: Any = {"render.modes": ["human", "rgb_array"]}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()

    def render(self, mode: str = "human") -> Any:
        assert mode == "rgb_array", "a window opens"
        return self.frame()


class Undeclared(Square):
    """States no render modes."""

    metadata: Any = {}  # noqa: RUF012

    def render(self) -> Any:
        return self.frame()


class Frames(Square):
    """Returns a list of frames, the newest last."""

    metadata: Any = {"render_modes": ["rgb_array_list"]}  # noqa: RUF012

    def render(self) -> Any:
        return [self.frame() * 0, self.frame()]


class Opaque(Square):
    """Returns four channels of another type."""

    def render(self) -> Any:
        return np.dstack([self.frame(), np.full((40, 160), 255)]).astype(np.int64)


class Large(Square):
    """Returns a picture larger than a film."""

    def render(self) -> Any:
        return self.frame().repeat(16, 0).repeat(16, 1)


class DrawsNumbers(Square):
    """`render` draws random numbers from every generator, prints, and warns."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        if seed is not None:
            self.own = np.random.default_rng(seed)
        return super().reset(seed=seed)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        obs, reward, *others = super().step(action)
        noise = self.own.random() + np.random.random()  # noqa: NPY002
        return obs, reward + noise, *others

    def render(self) -> Any:
        print("hello from the renderer")  # noqa: T201
        for draw in (self.np_random.random, self.own.random, random.random, np.random.random):
            draw()
        return super().render()


class Nothing(Square):
    """Returns None in every mode."""

    def render(self) -> Any:
        return None


class Text(Square):
    """Returns text where an array is expected."""

    def render(self) -> Any:
        return "a picture"


class Floats(Square):
    """Returns numbers from 0 to 1."""

    def render(self) -> Any:
        return self.frame() / 255


class Fails(Square):
    """Raises an exception of many lines."""

    def render(self) -> Any:
        raise RuntimeError("no graphics\nlibrary")


class FailsLater(Square):
    """Raises an exception from env step 3 of an episode on."""

    def render(self) -> Any:
        if self.age >= 3:
            raise RuntimeError("lost the graphics library")
        return super().render()


class NoGraphics(Square):
    """The constructor refuses to draw."""

    def __init__(self, render_mode: str | None = None) -> None:
        if render_mode is not None:
            raise RuntimeError("no screen")
        super().__init__()

    def render(self) -> Any:
        raise RuntimeError("no screen")


class OneScreen(Square):
    """Can be made four times; then its graphics library has no more screens."""

    made = 0

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(render_mode)
        type(self).made += 1
        if type(self).made > 4:
            raise RuntimeError("no more screens")


class WindowOnly(Square):
    """Draws only in a window."""

    metadata: Any = {"render_modes": ["human"]}  # noqa: RUF012

    def render(self) -> Any:
        raise AssertionError("a window opens")


class Undrawn(Square):
    """Has no render."""

    metadata: Any = {"render_modes": []}  # noqa: RUF012
    render = gymnasium.Env.render
