"""Episodes that a person played are read back as they were, in every kind of space."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from backflip.inspect.game import Game
from backflip.inspect.saved_episodes import checked_path
from backflip.preferences.trajectories import clip_at, taken_as_learned, windows
from backflip.preferences.trajectory_file import read_trajectories
from runshelf.errors import UsageError


class Kinds(gymnasium.Env[Any, Any]):
    """Observations and actions of a chosen kind; an episode has four env steps."""

    def __init__(self, action: spaces.Space[Any]) -> None:
        self.observation_space = spaces.Dict(
            place=spaces.Box(-9, 9, (2,), np.float32), room=spaces.Discrete(3)
        )
        self.action_space, self.taken = action, []

    def seen(self) -> dict[str, Any]:
        """Return the observation."""
        count = len(self.taken)
        return {"place": np.array([count, -count], np.float32), "room": count % 3}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Begin an episode."""
        super().reset(seed=seed)
        self.taken = []
        return self.seen(), {}

    def step(self, action: Any) -> Any:
        """Keep the action."""
        assert self.action_space.contains(action)
        self.taken.append(action)
        return self.seen(), float(len(self.taken)), len(self.taken) == 4, False, {}


def from_two() -> Kinds:
    return Kinds(spaces.Discrete(3, start=2))


def several() -> Kinds:
    return Kinds(spaces.MultiDiscrete([2, 3]))


def grouped() -> Kinds:
    return Kinds(spaces.Dict(a=spaces.Discrete(2), b=spaces.Discrete(3, start=1)))


def boxes() -> Kinds:
    return Kinds(spaces.Tuple([spaces.Box(-1, 1, (2,)), spaces.Box(0, 3, (1,))]))


def played(env_id: str, action: Any, path: Path, episodes: int = 2) -> Game:
    game = Game(env_id, {}, 1, path)
    for _ in range(episodes):
        told = game.begin()
        while not told["ended"] and told["length"] < 6:
            told = game.act(action)
    game.saved.save()
    game.close()
    return game


@pytest.mark.medium
@pytest.mark.parametrize(
    ("make", "action"), [("from_two", 1), ("several", 4), ("grouped", 5), ("boxes", [0.5, -1, 2])]
)
def test_every_kind_of_action_is_read_back(make: str, action: Any, tmp_path: Path) -> None:
    path, env_id = tmp_path / "x.npz", f"{__name__}:{make}"
    game = played(env_id, action, path)
    found = read_trajectories(path, game.spec)
    assert (found.episodes, len(found.last)) == (2, 8)
    assert found.terminated.tolist() == [False, False, False, True] * 2
    np.testing.assert_array_equal(found.action, np.broadcast_to(action, found.action.shape))
    assert found.reward is not None
    assert found.reward.tolist() == [1, 2, 3, 4] * 2
    np.testing.assert_array_equal(found.obs[2], [2, -2, 0, 0, 1])
    np.testing.assert_array_equal(found.next_obs[2], [3, -3, 1, 0, 0])


@pytest.mark.medium
@pytest.mark.parametrize(("env_id", "action"), [("dot", 2), ("Pendulum-v1", [0.5])])
def test_an_episode_left_before_its_end_is_truncated(
    env_id: str, action: Any, tmp_path: Path
) -> None:
    path = tmp_path / "x.npz"
    game = played(env_id, action, path)
    file = np.load(path)
    assert file["truncations"].tolist() == ([False] * 5 + [True]) * 2
    assert str(file["environment"]) == env_id
    found = read_trajectories(path, game.spec)
    assert len(windows(found, 6)) == 2
    assert clip_at(found, 6, 6).obs.dtype == game.spec.observation.dtype
    with pytest.raises(UsageError, match="was recorded in"):
        read_trajectories(path, Game("CartPole-v1", {}, 0).spec)


@pytest.mark.medium
def test_a_game_without_a_file_keeps_no_observations() -> None:
    game = Game("CartPole-v1", {}, 0)
    for _ in range(2):
        told = game.begin()
        while not told["ended"]:
            told = game.act(0)
    game.close()
    assert len(game.scores) == 2
    assert game.saved is None


@pytest.mark.medium
def test_nothing_is_written_without_an_env_step(tmp_path: Path) -> None:
    game = Game("CartPole-v1", {}, 0, tmp_path / "x.npz")
    game.begin()
    assert game.saved.save() == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.medium
@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (np.zeros((2, 5)), "must be one-hot"),
        (np.array([[1, 0, 0.5, 0.5, 0]]), "must be one-hot"),
        (np.zeros((2, 4)), r"must have shape \(B, 5\), got \(2, 4\)"),
    ],
)
def test_flat_choices_that_are_none_are_refused(rows: Any, says: str, tmp_path: Path) -> None:
    game = Game(f"{__name__}:grouped", {}, 0)
    with pytest.raises(UsageError, match=says):
        taken_as_learned(game.spec, rows, "actions")


def test_the_name_of_the_file_is_checked_before_the_game(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--save must end in `.npz`, got `a.txt`; try a.npz"):
        checked_path("a.txt")
    with pytest.raises(UsageError, match="does not exist"):
        checked_path(str(tmp_path / "none" / "a.npz"))
