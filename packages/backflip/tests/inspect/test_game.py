"""`Game` steps the environment and records the score in the run."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from backflip.inspect.game import Game
from backflip.inspect.open_env import open_env
from runshelf.errors import UsageError
from runshelf.store.metrics import read_metrics
from runshelf.store.run import create_run


def played(game: Game, action: Any) -> dict[str, Any]:
    """Return the last answer of an episode in which one action is repeated."""
    told = game.begin()
    while not told["ended"]:
        told = game.act(action)
    return told


@pytest.mark.medium
def test_scores_are_recorded_in_the_run(tmp_path: Path) -> None:
    game = Game("CartPole-v1", {}, 3)
    with create_run(tmp_path, command="play", config={}, seeds=[3], argv=[]) as writer:
        game.keep_in(writer)
        first, second = played(game, 0), played(game, 1)
        game.close()
    records = read_metrics(writer.folder, "play").records
    assert [record["episode_return"] for record in records] == game.scores
    assert [record["episode_length"] for record in records] == game.scores
    assert records[1]["env_steps"] == first["length"] + second["length"]
    assert second["episode"] == 2
    assert second["best"] == max(game.scores)
    assert second["ended"] == "terminated"


@pytest.mark.medium
def test_same_seed_gives_the_same_episode() -> None:
    one, other = (Game("Pendulum-v1", {}, 4) for _ in range(2))
    assert one.begin()["numbers"] == other.begin()["numbers"]
    assert one.act([0.5]) == other.act([0.5])
    assert one.begin()["numbers"] != Game("Pendulum-v1", {}, 5).begin()["numbers"]


@pytest.mark.medium
def test_time_limit_truncates() -> None:
    told = played(Game("Pendulum-v1", {"max_episode_steps": 7}, 0), [2.0])
    assert (told["ended"], told["length"]) == ("truncated", 7)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("env_id", "action", "says"),
    [
        ("CartPole-v1", 2, "`action` must be a whole number below 2"),
        ("CartPole-v1", -1, "`action` must be a whole number below 2"),
        ("CartPole-v1", True, "`action` must be a whole number below 2"),
        ("CartPole-v1", [0.5], "`action` must be a whole number below 2"),
        ("Pendulum-v1", [1.0, 2.0], "`action` must be 1 numbers"),
        ("Pendulum-v1", [float("nan")], "`action` must be 1 numbers"),
        ("Pendulum-v1", "x", "`action` must be 1 numbers"),
    ],
)
def test_invalid_action_is_refused(env_id: str, action: Any, says: str) -> None:
    game = Game(env_id, {}, 0)
    with pytest.raises(UsageError, match="no episode is running"):
        game.act(0 if env_id == "CartPole-v1" else [0.0])
    game.begin()
    with pytest.raises(UsageError, match=says):
        game.act(action)


@pytest.mark.slow
def test_agent_picture_shows_the_exact_pixels() -> None:
    game = Game("dot", {}, 1)
    game.begin()
    game.act(2)
    env = open_env("dot", {}, 1)
    env.reset([int(np.random.default_rng([1, 0]).integers(2**31))])
    obs = env.step(np.array([2])).next_obs[0]
    shown = np.asarray(Image.open(io.BytesIO(game.picture("agent"))))
    assert shown.shape == (84, 4 * 84 + 3, 3)
    for frame in range(4):
        part = shown[:, frame * 85 : frame * 85 + 84]
        np.testing.assert_array_equal(part, np.repeat(obs[..., frame : frame + 1], 3, -1))
    person = np.asarray(Image.open(io.BytesIO(game.picture("person"))))
    assert person.shape != shown.shape
    assert game.describe()["views"][0] == "agent"


@pytest.mark.medium
def test_environment_without_a_view_is_shown_as_bars_and_text() -> None:
    game = Game("probe:3", {}, 0)
    assert game.begin()["numbers"] == [0.0]
    assert game.act(0)["numbers"] == [1.0]
    assert game.describe()["views"] == ["agent"]
    assert game.describe()["waits"]
    assert Image.open(io.BytesIO(game.picture("person"))).size == (320, 240)


@pytest.mark.slow
def test_turn_based_environments_wait_for_keys() -> None:
    assert Game("FrozenLake-v1", {}, 0).describe()["waits"]
    assert not Game("CartPole-v1", {}, 0).describe()["waits"]
