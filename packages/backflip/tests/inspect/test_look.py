"""`look` on environments of every kind."""

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from backflip.inspect.env_facts import frame_skip
from backflip.inspect.findings import findings, verdict
from backflip.inspect.look import LookResult, look


def looked_at(
    env_id: str, clip: Path, said: list[str] | None = None, **env_args: Any
) -> LookResult:
    """Call `look`; append activities and warnings to `said`, in order."""
    said = [] if said is None else said

    def on_progress(what: str, share: float) -> None:
        del share
        said.append(what)

    return look(
        env_id,
        env_args=env_args,
        episodes=1,
        seed=0,
        discount=0.99,
        clip=clip,
        on_progress=on_progress,
        warn=said.append,
    )


KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "MinAtar/Breakout-v1": ({}, "Pixel values range from 0 to 1; "),
    "ALE/Pong-v5": ({"max_episode_steps": 40}, "Pixel values range from 0 to "),
    "FrozenLake-v1": ({}, "Observed numbers"),
    "Pendulum-v1": ({}, "Actions range from -2 to 2"),
    "packages.backflip.tests.inspect.faulty_envs:RandomConstructor": (
        {},
        "the constructor draws random",
    ),
    "packages.backflip.tests.inspect.faulty_envs:Overflowing": (
        {},
        "more than half of the range of int8 in one env step: 1.",
    ),
    "packages.backflip.tests.inspect.faulty_envs:ManyDimensions": ({}, "were tried, 6 were not"),
    "packages.backflip.tests.inspect.faulty_envs:LargeBoard": (
        {},
        "Pixel values range from 0 to 1; ",
    ),
}


FAULTY = "packages.backflip.tests.inspect.faulty_envs"
SLOW = ("ALE/Pong-v5", "Pendulum-v1", "FrozenLake-v1", f"{FAULTY}:LargeBoard")


@pytest.mark.medium
@pytest.mark.parametrize(
    "env_id",
    [pytest.param(env_id, marks=pytest.mark.slow if env_id in SLOW else ()) for env_id in KINDS],
)
def test_every_kind_of_environment_gets_a_verdict_and_a_clip(env_id: str, tmp_path: Path) -> None:
    env_args, said = KINDS[env_id]
    seen = looked_at(env_id, tmp_path / "clip.webp", **env_args)
    found = findings(seen.report)
    assert said in " ".join(one.text for one in found)
    assert verdict(found)
    with Image.open(seen.clip) as image:
        assert image.size[0] > 0


@pytest.mark.slow
def test_progress_is_reported_at_every_env_step(tmp_path: Path) -> None:
    told: dict[str, list[float]] = {}
    look(
        "CartPole-v1",
        env_args={},
        episodes=1,
        seed=0,
        discount=0.99,
        clip=tmp_path / "clip.webp",
        on_progress=lambda what, share: told.setdefault(what, []).append(share),
        warn=print,
    )
    for what, env_steps in (("repeating", 2 * 200), ("trying actions", 0 + 5 + 25 + 100 + 4 * 8)):
        assert told[what] == [(n + 1) / env_steps for n in range(env_steps)]


@pytest.mark.slow
def test_missing_drawing_library_is_warned_of_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUJOCO_GL", "glfw")
    said: list[str] = []
    seen = looked_at("Ant-v5", tmp_path / "clip.webp", said)  # a model that MuJoCo draws
    assert "apt-get install libegl1" in said[0]
    assert said[0] == seen.note
    assert said.count(seen.note) == 1


@pytest.mark.medium
def test_robots_in_one_plane_need_no_drawing_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUJOCO_GL", "glfw")
    assert not looked_at("InvertedPendulum-v5", tmp_path / "clip.webp", []).note


@pytest.mark.slow
def test_fixed_horizon_has_the_same_frame_skip() -> None:
    assert frame_skip("fixed:Hopper-v5", {}) == frame_skip("Hopper-v5", {}) == 4


@pytest.mark.slow
def test_clip_of_atari_plays_in_real_time(tmp_path: Path) -> None:
    args = {"frameskip": 1, "max_episode_steps": 70}
    seen = looked_at("ALE/Pong-v5", tmp_path / "clip.webp", **args)
    assert seen.report.step_seconds == pytest.approx(1 / 60)
    with Image.open(seen.clip) as image:
        lasted = 0.0
        for frame in range(getattr(image, "n_frames", 1)):
            image.seek(frame)
            image.load()
            lasted += image.info["duration"] / 1000
    assert lasted == pytest.approx(71 / 60, rel=0.1)
