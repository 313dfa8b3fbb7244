"""Environments with a known fault or peculiarity, which `look` should find."""

# ruff: noqa: D102  (methods of one line, named by what they return)

from collections.abc import Callable
from typing import Any, Optional

import gymnasium
import numpy as np
from gymnasium import spaces

from backflip.envs.gymnasium import GymnasiumEnv
from backflip.envs.spec import HostEnv


class Line(gymnasium.Env[np.ndarray, int]):
    """A point on a line: action 0 moves left, 1 right, 2 stays. Episodes have 30 env steps."""

    observation_space: Any = spaces.Box(-100, 100, (2,), np.float32)
    action_space: Any = spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.place, self.age = self.np_random.normal(), 0
        return self.seen(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.place += self.moved(int(action))
        self.age += 1
        return self.seen(), self.paid(int(action)), self.age >= 30, False, {}

    def seen(self) -> np.ndarray:
        return np.array([self.place, 1.0], np.float32)

    def moved(self, action: int) -> float:
        return (-1.0, 1.0, 0.0)[action]

    def paid(self, action: int) -> float:
        return -abs(self.place)


class Overflowing(Line):
    """The age is counted in an integer of 8 bits, and soon goes from 127 to -128."""

    observation_space: Any = spaces.Box(-128, 127, (2,), np.int8)

    def seen(self) -> np.ndarray:
        return np.array([0, 120 + self.age], np.int64).astype(np.int8)


class Unseeded(Line):
    """Random numbers do not follow the seed."""

    def moved(self, action: int) -> float:
        return float(np.random.default_rng().normal())


class TwinActions(Line):
    """Actions 0 and 2 do the same."""

    def moved(self, action: int) -> float:
        return float(action == 1)


class NoEffect(Line):
    """No action has an effect."""

    def moved(self, action: int) -> float:
        return 0.5


class DelayedReward(Line):
    """The reward of the second env step depends on the first action."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        self.first: int | None = None
        return super().reset(seed=seed, options=options)

    def paid(self, action: int) -> float:
        self.first = action if self.first is None else self.first
        return float(self.first) if self.age == 2 else 0.0


class IgnoredDimension(Line):
    """The second dimension of the action has no effect."""

    action_space: Any = spaces.Box(-1, 1, (2,), np.float32)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.place += float(action[0])
        self.age += 1
        return self.seen(), -abs(self.place), self.age >= 30, False, {}


class ThreeDimensions(IgnoredDimension):
    """Three action dimensions, so that letter keys are bound to the third."""

    action_space: Any = spaces.Box(-1, 1, (3,), np.float32)


class RandomConstructor(Line):
    """The constructor draws a random number, so two instances differ."""

    def __init__(self, render_mode: str | None = None) -> None:
        del render_mode
        self.pull = float(np.random.default_rng().normal())

    def moved(self, action: int) -> float:
        return super().moved(action) + self.pull


class LargeBoard(Line):
    """Observes a board of 0 and 1 with more rows than the drawn picture has pixels."""

    observation_space: Any = spaces.Box(0, 1, (300, 300, 1), np.uint8)

    def seen(self) -> np.ndarray:
        board = np.zeros((300, 300, 1), np.uint8)
        board[int(abs(self.place)) % 300] = 1
        return board


class Grid(Line):
    """Has a constructor parameter without annotation."""

    def __init__(self, size=5) -> None:  # type: ignore[no-untyped-def]
        self.board = np.zeros((size, size))


class MaybeGrid(Grid):
    """Has a parameter with a union type."""

    def __init__(self, size: int | None = 5) -> None:
        super().__init__(size)


class OptionalGrid(Grid):
    """Has a parameter with an `Optional` type."""

    def __init__(self, size: Optional[int] = 5) -> None:  # noqa: UP045
        super().__init__(size)


class PostponedGrid(Grid):
    """Has a parameter whose annotation is a string."""

    def __init__(self, size: "tuple[int, int] | int" = 5) -> None:
        super().__init__(size)


class EmptyObservation(Line):
    """Observes no numbers."""

    observation_space: Any = spaces.Box(-1, 1, (0,), np.float32)


class FailingSpec:
    """Looks like an environment in JAX, but `spec` raises."""

    reset = step = observe = None

    @property
    def spec(self) -> Any:
        raise ValueError("no spec")


class ManyDimensions(Line):
    """Has 70 action dimensions, of which only the first 64 have an effect."""

    action_space: Any = spaces.Box(-1, 1, (70,), np.float32)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.place += float((action[:64] * np.arange(1, 65)).sum())
        self.age += 1
        return self.seen(), -abs(self.place), self.age >= 30, False, {}


def maker_of(kind: type[Line]) -> Callable[[int], HostEnv]:
    """Return a function that creates batches of an environment."""
    return lambda rows: GymnasiumEnv.of(kind.__name__, kind, rows)
