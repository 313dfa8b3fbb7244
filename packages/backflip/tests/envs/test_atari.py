"""Observations, rewards, settings and interface of Atari games."""

import sys
from typing import Any

import ale_py
import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from packages.backflip.tests.conformance.host_env import check_host_env, random_actions

from backflip.core.errors import EnvironmentFailed
from backflip.envs.atari import SCORE_ROWS, AtariBatch, AtariSettings, facts
from backflip.envs.gymnasium import GymnasiumEnv
from backflip.envs.registry import atari_facts, is_native, make_host
from runshelf.errors import UsageError

PLAIN = {"repeat_action_probability": 0.0, "noop_max": 0, "fire_reset": False}


def played(env_id: str, args: dict[str, Any], env_steps: int, rows: int = 2) -> Any:
    """Return observations (T, N, 84, 84, 4) and rewards under the same random actions."""
    env = make_host(env_id, args, rows)
    env.reset(list(range(rows)))
    actions = random_actions(env.spec, np.random.default_rng(0), (env_steps, rows))
    steps = [env.step(action) for action in actions]
    env.close()
    return np.stack([step.next_obs for step in steps]), np.stack([step.reward for step in steps])


def grey_by_hand(game: str, actions: np.ndarray) -> tuple[np.ndarray, list[float]]:
    """Return screens (210, 160) and rewards after actions repeated for four frames.

    As in the paper, a screen is the pixelwise maximum of the last two frames.
    """
    settings: Any = {"frameskip": 1, "repeat_action_probability": 0.0, "obs_type": "grayscale"}
    env = gymnasium.make(f"ALE/{game}-v5", **settings)
    env.reset(seed=0)
    screens, rewards = [], []
    for action in actions:
        frames, paid = zip(*(env.step(int(action))[:2] for _ in range(4)), strict=True)
        screens.append(np.maximum(frames[-1], frames[-2]))
        rewards.append(float(sum(paid)))
    env.close()
    return np.stack(screens), rewards


def shares(size: int, small: int) -> np.ndarray:
    """Return (small, size): the share of each source pixel in each target pixel."""
    ends = np.arange(small + 1) * size / small
    pixels = np.arange(size)
    overlap = np.minimum(ends[1:, None], pixels + 1) - np.maximum(ends[:-1, None], pixels)
    return np.maximum(overlap, 0) * small / size


@pytest.mark.medium
@pytest.mark.parametrize(
    "autoreset", ["next_step", pytest.param("same_step", marks=pytest.mark.slow)]
)
def test_conforms_to_the_interface(autoreset: str) -> None:
    """Random episodes of Breakout end by a lost life, or soon after by the limit."""
    args = {"max_episode_steps": 22, "episodic_life": True}
    check_host_env(
        lambda num_envs: make_host("ALE/Breakout-v5", args, num_envs, autoreset),
        ends_by={"terminated", "truncated"},
        env_steps=60,
        reset_rows=autoreset == "next_step",
    )


@pytest.mark.medium
def test_rows_start_from_their_own_seeds() -> None:
    """Seeds may have any size; in Seaquest the number of no-ops changes the first frame."""
    seeds = [3, 2**62 + 1, 2**40]
    env = make_host("ALE/Seaquest-v5", {}, 3)
    first = env.reset(seeds)
    assert np.array_equal(env.reset(seeds[::-1]), first[::-1])
    assert not np.array_equal(first[0], first[1])


@pytest.mark.medium
def test_spec() -> None:
    spec = make_host("ALE/Pong-v5").spec
    assert (spec.observation.shape, spec.observation.dtype) == ((84, 84, 4), np.uint8)
    assert (spec.frame_stack, spec.max_episode_steps) == (4, 27_000)
    assert spec.is_image
    assert spec.terminates
    assert not is_native("ALE/Pong-v5")
    full = make_host("ALE/Pong-v5", {"full_action_space": True, "frameskip": 2}).spec
    assert full.action.n == 18  # pyright: ignore[reportAttributeAccessIssue]
    assert full.max_episode_steps == 54_000


@pytest.mark.medium
def test_frames_shift_through_the_stack_which_begins_black() -> None:
    env = make_host("ALE/Pong-v5", {"max_episode_steps": 6}, 1)
    obs = env.reset([0])
    assert not obs[..., :3].any()
    assert obs[..., 3].any()
    for t in range(6):
        step = env.step(np.zeros(1, np.int32))
        assert np.array_equal(step.next_obs[..., :3], obs[..., 1:])
        obs = step.obs
        assert step.truncated.item() == (t == 5)
    assert step.next_obs.all(axis=(0, 1, 2)).all()
    begun = env.step(np.zeros(1, np.int32))
    assert not begun.valid.any()
    assert not begun.obs[..., :3].any()


@pytest.mark.medium
@pytest.mark.parametrize(
    "size", [84, *(pytest.param(size, marks=pytest.mark.slow) for size in (42, 50))]
)
def test_observations_and_rewards_equal_the_definition(size: int) -> None:
    actions = np.random.default_rng(1).integers(4, size=60)
    env = make_host("ALE/Breakout-v5", PLAIN | {"size": size}, 1)
    env.reset([0])
    steps = [env.step(action[None]) for action in actions]
    screens, rewards = grey_by_hand("Breakout", actions)
    found = np.stack([step.next_obs[0, :, :, -1] for step in steps]).astype(int)
    small = shares(210, size) @ screens @ shares(160, size).T
    np.testing.assert_allclose(found, small, atol=0.51)
    assert [step.reward.item() for step in steps] == rewards


@pytest.mark.medium
def test_rewards_are_the_score() -> None:
    _, rewards = played("ALE/SpaceInvaders-v5", {}, 150, rows=3)
    assert set(np.unique(rewards)) <= set(range(0, 200, 5))
    assert rewards.max() > 1


@pytest.mark.medium
@pytest.mark.parametrize(
    "game",
    [pytest.param(game, marks=() if game == "pong" else pytest.mark.slow) for game in SCORE_ROWS],
)
def test_blank_score_changes_only_its_rows(game: str) -> None:
    """The rows of the score are not black without the setting; the game is the same."""
    env_id = f"ALE/{game.title().replace('_', '')}-v5"
    (plain, paid), (blank, same) = (
        played(env_id, args, 80, rows=1) for args in ({}, {"blank_score": True})
    )
    first, after = (
        round(row * 0.4 + off) for row, off in zip(SCORE_ROWS[game], (-0.5, 0.5), strict=True)
    )
    touched = np.flatnonzero((plain != blank).any(axis=(0, 1, 3, 4)))
    assert len(touched)
    assert touched.min() >= first - 1
    assert touched.max() <= after
    assert not blank[:, :, touched].any()
    assert np.array_equal(paid, same)


@pytest.mark.slow
def test_enduro_for_preferences() -> None:
    env = make_host("ALE/Enduro-v5", {"preference": True}, 1)
    assert env.spec.max_episode_steps == 750
    obs, _ = played("ALE/Enduro-v5", {"preference": True}, 20)
    assert not obs[:, :, 64:].any()
    assert obs[-1, :, 60].any()


@pytest.mark.slow
def test_enduro_ends_before_the_weather_changes() -> None:
    """Snow is brighter than grass."""
    args = {"repeat_action_probability": 0.0, "preference": True}
    env = make_host("ALE/Enduro-v5", args | {"max_episode_steps": 790}, 2)
    env.reset([0, 1])
    ground = [
        env.step(np.zeros(2, np.int32)).next_obs[:, 55:62, 4:20, -1].mean() for _ in range(790)
    ]
    assert max(ground[:750]) < 80
    assert min(ground[-10:]) > 150


@pytest.mark.medium
@pytest.mark.parametrize(
    ("game", "change"),
    [
        ("Breakout", {"repeat_action_probability": 0.25}),
        pytest.param("Breakout", {"fire_reset": True}, marks=pytest.mark.slow),
        pytest.param("Breakout", {"frameskip": 3}, marks=pytest.mark.slow),
        pytest.param("Seaquest", {"noop_max": 30}, marks=pytest.mark.slow),
    ],
)
def test_settings_reach_the_game(game: str, change: dict[str, Any]) -> None:
    base, again, other = (
        played(f"ALE/{game}-v5", args, 40, rows=1)[0] for args in (PLAIN, PLAIN, PLAIN | change)
    )
    assert np.array_equal(base, again)
    assert not np.array_equal(base, other)


@pytest.mark.medium
def test_facts_are_correct() -> None:
    table = dict(atari_facts("ALE/Enduro-v5", {"preference": True, "frameskip": 2}))
    assert table["time limit"] == "1,500 env steps = 3,000 frames"
    assert table["blanked"] == "rows 64-83 of 84"
    assert table["actions"].startswith("9, the game's own: NOOP, FIRE, RIGHT")
    table = dict(facts("ALE/Pong-v5", "pong", AtariSettings(full_action_space=True)))
    assert table["actions"].startswith("18, all of the joystick: NOOP")
    assert table["sticky actions"].startswith("0.25: ")
    assert table["blanked"] == "nothing"
    assert {"as -v0", "as -v4", "as Deterministic-v4", "as NoFrameskip-v4"} <= table.keys()


@pytest.mark.parametrize(
    ("old", "sticky"),
    [("Pong-v0", "0.25"), ("PongNoFrameskip-v4", "0"), ("SpaceInvadersDeterministic-v4", "0")],
)
def test_old_id_is_refused_with_the_new_one(old: str, sticky: str) -> None:
    new = f"ALE/{old.split('NoF')[0].split('Det')[0].split('-')[0]}-v5"
    with pytest.raises(UsageError) as caught:
        make_host(old)
    assert f"try {new} --env-arg repeat_action_probability={sticky}, " in str(caught.value)
    assert str(caught.value).endswith(f"Gymnasium's own gymnasium:{old}")


@pytest.mark.medium
def test_prefix_selects_gymnasiums_own() -> None:
    spec = make_host("gymnasium:PongNoFrameskip-v4").spec
    assert spec.observation.shape == (210, 160, 3)


@pytest.mark.parametrize(
    ("env_id", "args", "message"),
    [
        ("ALE/Pongg-v5", {}, "unknown environment `ALE/Pongg-v5`, did you mean `ALE/Pong-v5`"),
        ("ALE/Pong-v5", {"blank": True}, "`blank`, did you mean `blank_score`.*frameskip=4"),
        (
            "ALE/Pong-v5",
            {"size": 19, "frameskip": 0, "repeat_action_probability": 2, "noop_max": -1},
            "`size` must be .*, got 19; `frames.* got 0; `rep.* 1, got 2.0; `noop_max` must",
        ),
        ("ALE/Pong-v5", {"max_episode_steps": -1}, "`max_episode_steps` must be at least 1"),
        (
            "ALE/Pong-v5",
            {"noop_max": 10**10, "max_episode_steps": 10**10, "frameskip": 4 * 10**12},
            "`frameskip` must be from 1 to 1,000, got 4.*; `noop_max` must be from 0 to 1,000, got "
            "1.*; `max_episode_steps` must be at least 1 and at most 2,000,000, or 0 for ALE's",
        ),
        ("ALE/Pong-v5", {"max_episode_steps": 500_000_001}, "at least 1 and at most 500,000,000"),
        ("ALE/Freeway-v5", {"blank_score": True}, "only beam_rider, breakout, .*, not freeway"),
        ("ALE/Pong-v5", {"preference": True}, "`preference` supports only ALE/Enduro-v5, not pong"),
    ],
)
def test_invalid_settings_are_refused(env_id: str, args: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_host(env_id, args)


def test_missing_ale_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ale_py", None)
    monkeypatch.delitem(sys.modules, "backflip.envs.atari")
    with pytest.raises(UsageError, match=r"needs ale-py, .* try: pip install 'backflip\[atari\]'"):
        make_host("ALE/Pong-v5")


@pytest.mark.medium
def test_action_out_of_range_is_refused() -> None:
    env = GymnasiumEnv("x", AtariBatch("pong", 2, AutoresetMode.NEXT_STEP, AtariSettings()))
    env.reset([0, 1])
    with pytest.raises(EnvironmentFailed, match="`x` failed in one of 2 rows at step 1 of episode"):
        env.step(np.full(2, 99))


@pytest.mark.medium
def test_ale_is_new_enough() -> None:
    assert tuple(map(int, ale_py.__version__.split(".")[:2])) >= (0, 12)
