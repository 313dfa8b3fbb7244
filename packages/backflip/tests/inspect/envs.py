"""Environments with something wrong or special about them, for `look` to find."""

# ruff: noqa: D102  (methods of one line, named by what they return)

from collections.abc import Callable
from typing import Any, Optional

import gymnasium
import numpy as np
from gymnasium import spaces

from backflip.envs.gymnasium import GymnasiumEnv
from backflip.envs.spec import HostEnv


class Line(gymnasium.Env[np.ndarray, int]):
    """A place on a line, to be moved left (0) or right (1); 2 stands still. Over after 30 steps."""

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


class Unseeded(Line):
    """Draws from where no seed reaches."""

    def moved(self, action: int) -> float:
        return float(np.random.default_rng().normal())


class Idle(Line):
    """Actions 0 and 2 do the same."""

    def moved(self, action: int) -> float:
        return float(action == 1)


class Deaf(Line):
    """Nothing that is done matters."""

    def moved(self, action: int) -> float:
        return 0.5


class Delayed(Line):
    """Pays at the second step of an episode, by the first action."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        self.first: int | None = None
        return super().reset(seed=seed, options=options)

    def paid(self, action: int) -> float:
        self.first = action if self.first is None else self.first
        return float(self.first) if self.age == 2 else 0.0


class Ignored(Line):
    """Of two numbers of an action the second does nothing."""

    action_space: Any = spaces.Box(-1, 1, (2,), np.float32)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.place += float(action[0])
        self.age += 1
        return self.seen(), -abs(self.place), self.age >= 30, False, {}


class Three(Ignored):
    """As many numbers as it takes for one to be on letters."""

    action_space: Any = spaces.Box(-1, 1, (3,), np.float32)


class Drawn(Line):
    """Something random is drawn where it is made, so that two of it differ."""

    def __init__(self, render_mode: str | None = None) -> None:
        del render_mode
        self.pull = float(np.random.default_rng().normal())

    def moved(self, action: int) -> float:
        return super().moved(action) + self.pull


class Flat(Line):
    """A large board of 0 and 1, more rows than a picture of it has pixels."""

    observation_space: Any = spaces.Box(0, 1, (300, 300, 1), np.uint8)

    def seen(self) -> np.ndarray:
        board = np.zeros((300, 300, 1), np.uint8)
        board[int(abs(self.place)) % 300] = 1
        return board


class Grid(Line):
    """As large as one says, by a parameter without annotation."""

    def __init__(self, size=5) -> None:  # type: ignore[no-untyped-def]
        self.board = np.zeros((size, size))


class MaybeGrid(Grid):
    """The same with a type that may be another."""

    def __init__(self, size: int | None = 5) -> None:
        super().__init__(size)


class OptionalGrid(Grid):
    """The same in older words."""

    def __init__(self, size: Optional[int] = 5) -> None:  # noqa: UP045
        super().__init__(size)


class PostponedGrid(Grid):
    """The same in a module whose annotations are texts."""

    def __init__(self, size: "tuple[int, int] | int" = 5) -> None:
        super().__init__(size)


class Empty(Line):
    """Nothing is seen."""

    observation_space: Any = spaces.Box(-1, 1, (0,), np.float32)


class Speechless:
    """Looks like an environment in JAX until it is asked what it is."""

    reset = step = observe = None

    @property
    def spec(self) -> Any:
        raise ValueError("no spec")


class Wide(Line):
    """More actions than are tried, and no number of an action beyond the 64th matters."""

    action_space: Any = spaces.Box(-1, 1, (70,), np.float32)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.place += float((action[:64] * np.arange(1, 65)).sum())
        self.age += 1
        return self.seen(), -abs(self.place), self.age >= 30, False, {}


def making(kind: type[Line]) -> Callable[[int], HostEnv]:
    """Return what makes batches of an environment."""
    return lambda rows: GymnasiumEnv.of(kind.__name__, kind, rows)
