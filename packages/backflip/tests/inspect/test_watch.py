"""`watch` plays every saved checkpoint of a run from the same initial states."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from backflip.algorithms.entries.ppo import PPOConfig
from backflip.algorithms.ppo import ppo
from backflip.cli.main import main
from backflip.inspect.open_env import open_env
from backflip.inspect.policy_episodes import PolicyPlayer
from backflip.inspect.watch import checkpoints, watch
from backflip.training.policy import load_policy, load_saved_policy
from backflip.training.train import train
from runshelf.errors import UsageError
from runshelf.store.run import create_run, open_run

SETTINGS = {"num_envs": 4, "rollout_length": 16, "epochs": 1, "minibatches": 1, "hidden": (8,)}


@pytest.mark.slow
def test_time_limit_may_exceed_the_default_longest_episode() -> None:
    """Every reward is 1, so the return equals the length."""
    env = open_env("probe:truncation", {"max_episode_steps": 10_050}, 1)
    algorithm = ppo(PPOConfig(hidden=(4,)), env.spec)
    state = jax.tree.map(jnp.asarray, algorithm.init(0))
    played = PolicyPlayer(algorithm).play(env, state, 0)
    assert played.lengths.tolist() == played.returns.tolist() == [10_050]


def silent(what: str, share: float) -> None:
    del what, share


@pytest.mark.slow
def test_every_checkpoint_is_played_and_drawn(tmp_path: Path) -> None:
    trained = train(
        "ppo",
        "Pendulum-v1",
        seeds=2,
        first_seed=5,
        env_steps=20 * 64,
        env_args={"max_episode_steps": 20},
        settings=SETTINGS,
        home=tmp_path,
    )
    run = open_run(trained.folder)
    kept = checkpoints(run, 6)
    assert [one.env_steps for one in kept] == [n * 128 for n in range(1, 11)]
    said: list[str] = []
    shown = watch(
        run, seed=6, episodes=3, out=None, on_progress=lambda what, _: said.append(what), warn=print
    )
    assert len(shown.checkpoints) == 10
    assert said[-20:] == [f"watching checkpoint 10 at env step {n}" for n in range(20)]
    for one in shown.checkpoints:
        assert one.episodes.lengths.tolist() == [20] * 3
        tracks = one.episodes.tracks
        assert list(tracks) == ["value", "entropy", "reward"]
        np.testing.assert_allclose(tracks["reward"].sum(), one.episodes.returns[0], rtol=1e-5)
        assert one.clip.parent == trained.folder / "watch" / "seed-6"
        with Image.open(one.clip) as clip:
            assert clip.size[0] == 320
        assert one.map_file is not None
        assert one.map_file.is_file()
    starts = {one.episodes.recording.obs[0].tobytes() for one in shown.checkpoints}
    assert len(starts) == 1
    assert len({float(one.episodes.returns[0]) for one in shown.checkpoints}) > 1
    told = json.loads(shown.numbers.read_text())
    assert told["checkpoints"][-1]["env_steps"] == trained.env_steps
    assert len(told["checkpoints"][0]["state_space"]["value"]) == 41

    # The plotted value is the one that PPO reports for the recorded observations.
    last = shown.checkpoints[-1].episodes
    policy = load_policy(trained.folder, 6)
    env = open_env("Pendulum-v1", {"max_episode_steps": 20}, 1)
    actions = policy.act(last.recording.obs)
    assert actions.shape == (20, 1)
    acting = load_saved_policy(trained.folder / "policy.safetensors", 6)
    said = PolicyPlayer(acting.algorithm).assess(acting.state, last.recording.obs)
    np.testing.assert_allclose(said["value"], last.tracks["value"], rtol=1e-4, atol=1e-5)
    env.close()
    with pytest.raises(UsageError, match="has no seed 7; it has 5, 6"):
        watch(run, seed=7, episodes=1, out=None, on_progress=silent, warn=print)

    # An algorithm without `assess` has no tracks but the reward.
    without = PolicyPlayer(acting.algorithm._replace(assess=None))
    assert without.assess(acting.state, last.recording.obs) == {}


def test_run_without_a_policy_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with create_run(tmp_path, command="run", config={}, argv=["ls"]) as writer:
        run = writer.run
    with pytest.raises(UsageError, match="of kind `run` has no policy: runs of train"):
        watch(run, seed=None, episodes=1, out=None, on_progress=silent, warn=print)
    for option in ("--stages=2", f"--save={tmp_path / 'x.webp'}"):
        assert main(["watch", run.ulid, "--home", str(tmp_path), option]) == 2
        assert "of kind `run` has no policy" in capsys.readouterr().err
