"""`look`, `play` and `watch` on the command line."""

import json
from pathlib import Path

import pytest
from packages.backflip.tests.chdir_env import write_chdir_env
from PIL import Image

from backflip.cli.main import main


@pytest.mark.medium
def test_look_reports_as_json_and_draws_a_clip(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["look", "MountainCar-v0", "--episodes", "4", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["returns"] == {"min": -200, "mean": -200, "std": 0, "max": -200}
    assert told["truncated_share"] == 1
    assert told["determinism"] == {"env_steps": 200, "same": True, "first_difference": None}
    assert [choice["after"] for choice in told["actions"]["choices"]] == [1, 1, 1]
    assert [choice["name"] for choice in told["actions"]["choices"]][2] == "action 2, right"
    assert told["horizon"]["env_steps"] == pytest.approx(100)
    assert "All 4 random episodes return -200" in told["verdict"]
    assert told["clip"] == "runs/.runshelf/look/MountainCar-v0.webp"
    with Image.open(tmp_path / told["clip"]) as clip:
        assert clip.size[1] == 240


@pytest.mark.medium
def test_look_prints_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clip = tmp_path / "strip.png"
    args = ["--episodes", "2", "--env-arg", "max_episode_steps=20", "--discount", "0.5"]
    assert main(["look", "Pendulum-v1", *args, "--out", str(clip)]) == 0
    said = capsys.readouterr().out
    for words in ("environment", "2 random episodes", "observed number", "number 0", "immediately"):
        assert words in said
    assert "horizon of γ = 0.5        2 env steps (0.1 s); an episode 20 (1 s)" in said
    assert said.splitlines()[-1] == f"clip {clip}"
    with Image.open(clip) as strip:
        assert strip.format == "PNG"


@pytest.mark.medium
@pytest.mark.parametrize(
    ("env_id", "limit", "end"),
    [
        (
            "packages.backflip.tests.envs.drawn_envs:Undrawn",
            "not stated; the longest episode had 12 env steps",
            "truncated by the time limit",
        ),
        ("packages.backflip.tests.inspect.faulty_envs:Line", "none", "0% truncated"),
    ],
)
def test_look_knows_a_time_limit_that_is_not_stated(
    env_id: str, limit: str, end: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["look", env_id, "--episodes", "8", "--out", str(tmp_path / "clip.png")]) == 0
    lines = [line.split(None, 2) for line in capsys.readouterr().out.splitlines()]
    told = {" ".join(line[:2]): line[2] for line in lines if len(line) == 3}
    assert told["time limit"] == limit
    assert told["episodes end"].endswith(end)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("look nope", "unknown environment `nope`"),
        ("look dot --env-arg gaol=1,2", "did you mean `goal`?"),
        ("look dot --out x.gif", "`x.gif` must end in .webp (moving) or .png"),
        ("look dot --episodes 0", "`--episodes` must be a whole number from 1"),
        ("look dot --discount 2", "`--discount` must be a number from 0 to 1, got `2`; try 0.99"),
        ("look", "missing: ENV; try backflip look --help"),
        ("play nope", "unknown environment `nope`"),
        ("play dot --port 70000", "`--port` must be a whole number from 1 to 65_535"),
        ("play dot --host 0.0.0.0", "unknown option `--host` of backflip play"),
        ("watch nope", "there is no run `nope`"),
        ("watch latest --episodes x", "`--episodes` must be a whole number"),
    ],
)
def test_errors_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, says: str
) -> None:
    assert main([*line.split(), "--home", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_environment_may_change_the_current_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_chdir_env(tmp_path, monkeypatch)
    assert main(["look", "chdir_env:ChdirEnv", "--episodes", "2"]) == 0
    assert (
        capsys.readouterr().out.splitlines()[-1]
        == "clip runs/.runshelf/look/chdir_env-ChdirEnv.webp"
    )
    assert (tmp_path / "runs/.runshelf/look/chdir_env-ChdirEnv.webp").is_file()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("backflip.inspect.play_server.serve_game", lambda *_, **__: None)
    assert main(["play", "chdir_env:ChdirEnv"]) == 0
    (run,) = (tmp_path / "runs").glob("*/run.json")
    assert json.loads(run.read_text())["cwd"] == str(tmp_path)
