"""`teach --clips` asks about recorded trajectories, and its run no longer needs their file."""

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import backflip
from backflip.cli.main import main
from backflip.core.checkpoint import CHECKPOINT, load_arrays, save_arrays
from backflip.preferences.label_file import LABELS
from backflip.preferences.labels import LabelStore
from backflip.preferences.program_source import NoTeacher
from backflip.teaching_api import resume_teach
from backflip.training.queries.recorded_clips import RECORDED
from runshelf.errors import DamagedFile, Interrupted, UsageError
from runshelf.store.finding import find_run

ROOT = Path(__file__).parents[4]
PEER = ROOT / ".cache" / "peers" / "sb3_reward" / "bin" / "python"
SETTINGS: dict[str, Any] = {
    "num_envs": 4,
    "rollout_length": 32,
    "epochs": 1,
    "minibatches": 1,
    "hidden": (4,),
    "clip_length": 8,
    "random_envs": 8,
    "random_env_steps": 40,
    "phases": 4,
    "reward_model": "linear",  # the quickest to fit
}
TEACH: dict[str, Any] = {"settings": SETTINGS, "labels": 12, "env_steps": 512, "seeds": 2}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Episodes of CartPole with random actions, from starts that its own resets never have."""
    env = gymnasium.make("CartPole-v1")
    rows: list[tuple[Any, ...]] = []
    for episode in range(12):
        obs, _ = env.reset(seed=episode, options={"low": 0.06, "high": 0.09})
        over = False
        while not over:
            action = int(episode % 2)
            after, reward, terminated, truncated, _ = env.step(action)
            rows.append((obs, action, after, reward, terminated, truncated))
            obs, over = after, terminated or truncated
    names = [
        "observations",
        "actions",
        "next_observations",
        "rewards",
        "terminations",
        "truncations",
    ]
    path = tmp_path_factory.mktemp("data") / "data.npz"
    np.savez(
        path, **{name: np.array(x) for name, x in zip(names, zip(*rows, strict=True), strict=True)}
    )
    return path


def asked(folder: Path, seed: int, data: Path) -> list[tuple[int, bool]]:
    """Return env steps of each query, and whether both clips are from the data."""
    known = {row.tobytes() for row in np.load(data)["observations"]}
    with LabelStore.open_existing(folder / LABELS) as store:
        return [
            (one.env_steps, all(row.tobytes() in known for clip in pair for row in clip["obs"]))
            for one in store.in_force(seed, 10**6)
            for pair in [store.clips(one.query)]
        ]


@pytest.mark.medium
def test_the_first_queries_show_recorded_clips(data: Path, tmp_path: Path) -> None:
    result = backflip.teach("CartPole-v1", clips=data, home=tmp_path, **TEACH)
    for seed in (0, 1):
        queries = asked(result.folder, seed, data)
        assert len(queries) == 12
        assert [own for at, own in queries if at == 0] == [True] * 3
        assert not all(own for at, own in queries if at > 0)
    about = backflip.load_run("latest", home=tmp_path).manifest["config"]["clips"]
    assert (about["source"], about["trajectories"]) == (str(data), 12)
    assert "clips of" in (result.folder / "output.log").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("teacher", ["oracle", "noisy:tie=1000"])
def test_all_queries_can_show_recorded_clips(data: Path, tmp_path: Path, teacher: str) -> None:
    """Also while most answers are ties, when rare clips of the random policy are asked about."""
    settings = SETTINGS | {"random_share": 1.0}
    during = TEACH | {"settings": settings, "teacher": teacher}
    result = backflip.teach("CartPole-v1", clips=data, home=tmp_path, **during)
    queries = asked(result.folder, 1, data)
    assert {at for at, _ in queries} > {0}
    assert all(own for _, own in queries)


@pytest.mark.slow
def test_recorded_clips_can_be_asked_about_at_once(data: Path, tmp_path: Path) -> None:
    settings = SETTINGS | {"random_share": 1.0}
    at_once = TEACH | {"settings": settings, "env_steps": 0, "seeds": 1}
    result = backflip.teach("CartPole-v1", clips=str(data), home=tmp_path, **at_once)
    assert asked(result.folder, 0, data) == [(0, True)] * 12
    assert backflip.load_run("latest", home=tmp_path).settings["env_steps"] == 4 * 32
    reward = backflip.load_reward("latest", home=tmp_path)
    file = np.load(data)
    found = reward.rewards(file["observations"], file["actions"], file["next_observations"])
    assert found.std() > 0


@pytest.mark.slow
def test_a_run_goes_on_without_its_file(data: Path, tmp_path: Path) -> None:
    """An interrupted run whose file has gone has the answers and the bits of one with it."""
    copy = tmp_path / "copy.npz"
    shutil.copy(data, copy)

    def interrupt(progress: Any) -> None:
        if progress.phase == 1:
            raise KeyboardInterrupt

    whole = backflip.teach("CartPole-v1", clips=copy, home=tmp_path / "whole", **TEACH)
    home = tmp_path / "cut"
    with pytest.raises(Interrupted):
        backflip.teach("CartPole-v1", clips=copy, home=home, report=interrupt, **TEACH)
    copy.unlink()
    result = resume_teach(find_run(home, "latest"))
    for name, array in load_arrays(whole.folder / CHECKPOINT).arrays.items():
        np.testing.assert_array_equal(load_arrays(result.folder / CHECKPOINT).arrays[name], array)
    child = backflip.teach_more(result.run, labels=4, env_steps=512, home=home)
    assert (child.folder / RECORDED).read_bytes() == (result.folder / RECORDED).read_bytes()


@pytest.mark.slow
def test_lost_or_other_clips_of_a_run_are_noticed(data: Path, tmp_path: Path) -> None:
    def interrupt(progress: Any) -> None:
        if progress.phase == 1:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        backflip.teach("CartPole-v1", clips=data, home=tmp_path, report=interrupt, **TEACH)
    run = find_run(tmp_path, "latest")
    arrays = load_arrays(run.folder / RECORDED).arrays
    save_arrays(run.folder / RECORDED, arrays | {"obs": arrays["obs"][..., :3]}, {})
    with pytest.raises(DamagedFile, match="does not hold the clips of this run"):
        resume_teach(run)
    for file in run.folder.glob("recorded_clips*"):
        file.unlink()
    with pytest.raises(DamagedFile, match="recorded_clips"):
        resume_teach(run)


def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """Return the line that the command says when it refuses; it makes no run."""
    assert main(["teach", "CartPole-v1", "--home", str(tmp_path), *options]) == 2
    said = capsys.readouterr().err
    assert said.startswith("backflip: error: ")
    assert said.count("\n") == 1
    assert not list((tmp_path / "runs").glob("*")) if (tmp_path / "runs").exists() else True
    return said


@pytest.mark.medium
def test_what_cannot_be_asked_is_refused_before_there_is_a_run(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = dict(np.load(data))
    del file["rewards"]
    bare = tmp_path / "bare.npz"
    np.savez(bare, **file)
    oracle = ("--teacher", "oracle", "--labels", "8")
    assert "has no `rewards`" in refused(tmp_path, capsys, "--clips", str(bare), *oracle)
    cut = tmp_path / "cut.npz"
    np.savez(cut, **{name: x[:5] for name, x in np.load(data).items()})
    short = refused(tmp_path, capsys, "--clips", str(cut), *oracle)
    assert "0 clips of 25 env steps" in short
    assert "its longest trajectory has 5; try --set clip_length=5" in short


def test_clips_that_nobody_is_asked_about_are_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there are no queries about the clips"):
        backflip.teach("CartPole-v1", clips=data, teacher=NoTeacher(), labels=2, home=tmp_path)


MINARI = """
import gymnasium, minari, numpy as np
import backflip
from backflip.preferences.label_file import LABELS
from backflip.preferences.labels import LabelStore
from runshelf.errors import UsageError
env = minari.DataCollector(gymnasium.make("CartPole-v1"))
for seed in range(12):
    env.reset(seed=seed)
    over = False
    while not over:
        _, _, terminated, truncated, _ = env.step(seed % 2)
        over = terminated or truncated
data = env.create_dataset("mine/cart-v0")
known = {row.tobytes() for one in data.iterate_episodes() for row in one.observations}
settings = {"num_envs": 4, "rollout_length": 32, "minibatches": 1, "hidden": (4,)}
settings |= {"clip_length": 8}
result = backflip.teach(
    "CartPole-v1", clips="minari:mine/cart-v0", labels=8, env_steps=0, settings=settings
)
with LabelStore.open_existing(result.folder / LABELS) as store:
    for one in store.in_force(0, 10**6):
        for clip in store.clips(one.query):
            assert clip["reward"].sum() == clip["lived"].sum() > 0
            assert all(row.tobytes() in known for row in clip["obs"])
            assert all(row.tobytes() in known for row in clip["next_obs"])
about = backflip.load_run("latest").manifest["config"]["clips"]
assert about["trajectories"] == 12 and about["env_steps"] == data.total_steps
for env_id, name in (
    ("Pendulum-v1", "mine/cart-v0"), ("CartPole-v1", "mine/none-v0"), ("CartPole-v1", "../x-v0")
):
    try:
        backflip.teach(env_id, clips=f"minari:{name}", labels=8)
    except UsageError as error:
        print(error)
    else:
        raise AssertionError(env_id)
"""


@pytest.mark.slow
@pytest.mark.skipif(not PEER.exists(), reason="benchmarks/peers/install.py sb3_reward makes it")
def test_a_minari_data_set_is_asked_about(tmp_path: Path) -> None:
    """Minari itself, in an environment of its own."""
    code = ":".join(str(ROOT / "packages" / name / "src") for name in ("backflip", "runshelf"))
    places = {"MINARI_DATASETS_PATH": str(tmp_path / "sets"), "HOME": str(tmp_path)}
    done = subprocess.run(
        [PEER, "-c", MINARI],
        env={"PYTHONPATH": code, "PATH": "/usr/bin:/bin", **places},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    other, none, outside = done.stdout.strip().splitlines()[-3:]
    assert "does not fit environment `Pendulum-v1`" in other
    assert "Minari has no data set `mine/none-v0` on this machine" in none
    assert "is not the id of a Minari data set" in outside


def test_without_minari_a_data_set_is_refused_in_one_line(tmp_path: Path) -> None:
    if find_spec("minari") is not None:
        pytest.skip("it is installed here")
    with pytest.raises(UsageError, match=r"needs Minari: pip install 'backflip\[minari\]'"):
        backflip.teach("CartPole-v1", clips="minari:mine/cart-v0", labels=4, home=tmp_path)
