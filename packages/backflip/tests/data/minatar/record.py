"""Records games of the reference implementation of MinAtar, for ours to be compared with.

    python -m venv /tmp/minatar && /tmp/minatar/bin/pip install minatar==1.0.15
    /tmp/minatar/bin/python tests/data/minatar/record.py tests/data/minatar

Writes one file per game. Each holds some recordings; of each: whether the game became harder, the
actions, what followed (observation, reward, whether the game was lost), and the random choices as
uniform numbers in the order in which our games take them. Sticky actions are off. A lost game
goes on: the flag is taken back, so that every step of a long recording tells something. Only
without the ball or without oxygen would there be nothing more to tell, so a recording ends there.
Breakout starts with full rows of bricks in one recording, and among the remains of some in others,
where the ball often meets two bricks in a row.
"""

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np

GAMES = {
    "breakout": "Breakout",
    "asterix": "Asterix",
    "freeway": "Freeway",
    "space_invaders": "SpaceInvaders",
    "seaquest": "Seaquest",
}
ENV_STEPS = {"asterix": 1500, "breakout": 1500, "seaquest": 2200}
SEEDS = {"breakout": (0, 17, 23)}
NOOP, LEFT, UP, RIGHT, DOWN, FIRE = range(6)
DRAWS = {"breakout": (1, 0), "asterix": (0, 3), "freeway": (8, 8), "seaquest": (0, 5)}


class Random:
    """NumPy's generator, with every outcome kept as the uniform number that stands for it."""

    def __init__(self, seed: int) -> None:
        self._source, self.drawn = np.random.RandomState(seed), []

    def rand(self, *shape: int) -> Any:
        """Draw uniform numbers."""
        self.drawn.append(np.array(self._source.rand(*shape)))
        return self.drawn[-1] if shape else float(self.drawn[-1])

    def randint(self, low: int, high: int | None = None, size: int | None = None) -> Any:
        """Draw whole numbers."""
        low, high = (0, low) if high is None else (low, high)
        outcome = self._source.randint(low, high, size)
        self.drawn.append((np.array(outcome) - low + 0.5) / (high - low))
        return outcome

    def taken(self) -> list[np.ndarray]:
        """Return what was drawn since the last call."""
        drawn, self.drawn = self.drawn, []
        return drawn


def uniforms(game: str, drawn: list[np.ndarray], size: int) -> np.ndarray:
    """Return what our game is to be given for the reference to have drawn this."""
    numbers = np.full(size, 0.5)
    if game == "freeway" and drawn:
        pace, sign = drawn
        return (np.floor(5 * pace) + 5 * (sign > 0.5) + 0.5) / 10
    if game == "seaquest":  # an enemy takes three numbers, a diver two
        parts = {0: [], 2: [3, 4], 3: [0, 1, 2], 5: [0, 1, 2, 3, 4]}
        numbers[parts[len(drawn)]] = drawn
        return numbers
    numbers[: len(drawn)] = drawn
    return numbers


class Player:
    """A player that gets far enough to see everything."""

    def __init__(self, game: str, seed: int) -> None:
        self._game, self._rng, self._goal = game, np.random.RandomState(seed), (5, 5)
        self._patient = seed == 1  # would rather meet a seventh diver than surface with six

    def act(self, env: Any) -> int:
        """Choose an action."""
        if self._game == "breakout":
            return self._follow(env)
        if self._rng.rand() < 0.1:
            return self._rng.randint(6)
        if self._game == "seaquest":
            return self._dive(env)
        if self._game == "freeway":
            return UP if self._rng.rand() < 0.9 else DOWN
        if self._game == "space_invaders":
            return FIRE if self._rng.rand() < 0.4 else self._rng.randint(6)
        return self._rng.randint(6)

    def _follow(self, env: Any) -> int:
        """Be where the ball comes down, or sometimes where it will be an env step later."""
        if env.ball_dir in (0, 1) and env.ball_y < 3 and self._rng.rand() < 0.1:
            return self._rng.randint(6)
        ahead = env.ball_y == 8 and self._rng.rand() < 0.5
        goal = env.ball_x + (ahead and (1 if env.ball_dir == 2 else -1))
        return self._towards(env.pos, goal)

    def _dive(self, env: Any) -> int:
        """Fire now and then, go after divers, surface with six or with the last breath."""
        if self._rng.rand() < 0.3:
            return FIRE
        if self._rng.rand() < 0.1:
            self._goal = (self._rng.randint(10), self._rng.randint(1, 9))
        if env.divers:
            self._goal = tuple(env.divers[0][:2])
        late = env.oxygen < (20 if self._patient else 100)
        if (late and env.diver_count) or (env.diver_count == 6 and not self._patient):
            self._goal = (env.sub_x, 0)
        if env.sub_y == 0 and env.surface:
            return DOWN
        x, y = self._goal
        if env.sub_y != y:
            return UP if y < env.sub_y else DOWN
        return self._towards(env.sub_x, x)

    def _towards(self, x: int, goal: int) -> int:
        return NOOP if x == goal else LEFT if goal < x else RIGHT


def record(game: str, seed: int, ramping: bool) -> dict[str, np.ndarray]:
    """Play one recording."""
    env = importlib.import_module(f"minatar.environments.{game}").Env(ramping=ramping)
    env.random, player = Random(seed), Player(game, seed)
    start_size, size = DRAWS.get(game, (0, 0))
    env.reset()
    start = uniforms(game, env.random.taken(), start_size)
    bricks = np.ones((3, 10), bool)
    if game == "breakout" and seed:
        bricks = np.random.RandomState(seed).rand(3, 10) < 0.5
        env.brick_map[1:4] = bricks
    rows: list[tuple[Any, ...]] = []
    for _ in range(ENV_STEPS.get(game, 1000)):
        action = player.act(env)
        reward, lost = env.act(action)
        drawn = uniforms(game, env.random.taken(), size)
        rows.append((action, drawn, np.packbits(env.state()), reward, lost))
        if lost and (game == "breakout" or getattr(env, "oxygen", 1) <= 0):
            break
        env.terminal = False
    actions, drawn, obs, rewards, losses = zip(*rows, strict=True)
    return {
        "ramping": np.array(ramping),
        "start": start.astype(np.float32),
        "bricks": bricks,
        "action": np.array(actions, np.int8),
        "drawn": np.array(drawn, np.float32),
        "obs": np.array(obs),
        "reward": np.array(rewards, np.int8),
        "lost": np.array(losses, bool),
    }


def main() -> None:
    """Record all games into the folder named on the command line."""
    for game, name in GAMES.items():
        recordings = [record(game, seed, ramping=seed != 2) for seed in SEEDS.get(game, range(3))]
        named = {f"{key}{i}": v for i, r in enumerate(recordings) for key, v in r.items()}
        path = Path(sys.argv[1]) / f"{name}.npz"
        np.savez_compressed(path, **named)
        facts = [
            (len(r["lost"]), int(r["reward"].sum()), int(r["reward"].max()), int(r["lost"].sum()))
            for r in recordings
        ]
        size = path.stat().st_size
        sys.stdout.write(f"{path}: {size} bytes; env steps, return, best, losses: {facts}\n")


if __name__ == "__main__":
    main()
