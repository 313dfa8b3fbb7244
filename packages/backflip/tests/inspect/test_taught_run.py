"""What `watch` shows of a run that was taught: the learned reward, moving pictures, labels."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest
from PIL import Image

from backflip.cli.main import main
from backflip.cli.reporting import print_watched
from backflip.inspect.learned_episode import LearnedEpisode
from backflip.inspect.stages import chosen_stages
from backflip.inspect.track_plots import HEIGHT
from backflip.inspect.watch import checkpoints, watch
from backflip.loading import load_reward
from backflip.preferences.labels import LabelStore
from backflip.teaching_api import teach
from backflip.training.policy import SavedPolicy
from backflip.training.queries.label_pictures import PICTURES
from backflip.training.result import Result
from backflip.training.reward_learning.reward_measures import most_wrong
from runshelf.errors import UsageError
from runshelf.store.run import open_run

TINY = {
    "num_envs": 4,
    "rollout_length": 16,
    "epochs": 1,
    "minibatches": 2,
    "hidden": (8,),
    "phases": 4,
    "clip_length": 5,
    "clip_envs": 4,
    "random_envs": 8,
    "random_env_steps": 30,
    "reward_model": "linear",  # the quickest to fit
}
PHASE = 4 * 16  # env steps


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Result:
    home = tmp_path_factory.mktemp("home")
    args = {"max_episode_steps": 20}
    return teach(
        "Pendulum-v1", env_args=args, settings=TINY, labels=8, env_steps=4 * PHASE, seeds=2,
        first_seed=3, argv=["backflip"], home=home,
    )  # fmt: skip


def test_sums_and_correlation_of_a_learned_episode_by_hand() -> None:
    along = LearnedEpisode(np.array([1.0, -2.0, 4.0]), np.zeros(3), np.array([10.0, 0.0, 5.0]))
    told = along.to_json()
    assert told["learned_return_so_far"] == [1.0, -1.0, 3.0]
    assert told["return_so_far"] == [10.0, 10.0, 15.0]
    assert along.spearman == pytest.approx(0.5)  # ranks 2 1 3 against 3 1 2
    assert along._replace(true=np.ones(3)).spearman is None


@pytest.mark.slow
def test_the_learned_reward_is_shown_along_the_episode(
    taught: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two routes to one number: all steps of the newest policy, and `load_reward` step by step."""
    run = open_run(taught.folder)
    shown = watch(run, seed=4, episodes=2, out=tmp_path, on_progress=lambda *_: None, warn=print)
    last = shown.checkpoints[-1]
    steps, reward = last.episodes.steps, load_reward(taught.folder, 4)
    assert len(steps.action) == 20
    np.testing.assert_array_equal(steps.obs[1:], steps.next_obs[:-1])
    np.testing.assert_allclose(steps.reward, last.episodes.tracks["reward"])
    taken = steps.action.clip(-2, 2)
    expected = [reward(*one) for one in zip(steps.obs, taken, steps.next_obs, strict=True)]
    assert last.learned is not None
    np.testing.assert_allclose(last.learned.learned, expected, rtol=1e-5, atol=1e-6)
    assert last.learned.spread.min() >= 0
    assert last.learned.spread.max() > 0
    other = load_reward(taught.folder, 3)
    assert not np.isclose(other(steps.obs[0], taken[0], steps.next_obs[0]), expected[0])

    told = json.loads(shown.numbers.read_text())["checkpoints"][-1]
    assert told["learned_spearman"] == last.learned.spearman
    np.testing.assert_allclose(told["first_episode"]["learned_reward"], expected, rtol=1e-3)
    (measured, _) = json.loads((taught.folder / "learned-reward.json").read_text())["seeds"]
    kinds = [line.split(":")[0].replace(" ", "_") for line in shown.labels]
    assert [kinds.count(kind) for kind in PICTURES] == [len(measured[kind]) for kind in PICTURES]
    print_watched(shown)
    printed = capsys.readouterr().out
    assert "mean learned reward" in printed
    assert shown.labels[0] in printed
    with Image.open(last.clip) as film:
        assert film.size[1] == 240 + 4 * HEIGHT  # value, entropy, both rewards, both sums


@pytest.mark.slow
def test_the_labels_that_the_model_is_wrong_about_are_drawn_and_told(taught: Result) -> None:
    measures = json.loads((taught.folder / "learned-reward.json").read_text())["seeds"][0]
    with LabelStore.open_existing(taught.folder / "labels.sqlite") as store:
        for kind, name in PICTURES.items():
            assert (taught.folder / name).exists() == bool(measures[kind])
            if not measures[kind]:
                continue
            with Image.open(taught.folder / name) as picture:
                lines = picture.info["Description"].splitlines()
            assert len(lines) == 1 + 3 * min(3, len(measures[kind]))
            for one, said in zip(measures[kind], lines[1::3], strict=False):
                assert said.startswith(f"query {one['query']}: answered {one['answer']}, P(left) ")
                true = [float(clip["reward"].sum()) for clip in store.clips(one["query"])]
                np.testing.assert_allclose(one["true_returns"], true, rtol=1e-6)
    assert measures["most_unsure"]


def test_an_answer_is_wrong_if_the_model_contradicts_it():
    chance = np.array([0.9, 0.4, 0.8, 0.01, 0.6, 0.3])
    truth = np.array([1.0, 1.0, 0.0, 1.0, 0.5, 0.0])
    assert most_wrong(chance, truth).tolist() == [3, 2, 1]
    assert most_wrong(np.array([0.1, 0.8, 0.76]), np.full(3, 0.5)).tolist() == [0, 1, 2]
    assert most_wrong(np.zeros(0), np.zeros(0)).tolist() == []


@pytest.mark.slow
def test_stages_of_training_stand_side_by_side(
    taught: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "stages.gif"
    line = ["watch", str(taught.folder), "--stages", "3", "--save", str(file), "--seconds", "0.4"]
    assert main([*line, "--json"]) == 0
    stages = json.loads(capsys.readouterr().out)["stages"]
    assert [(one["name"], one["env_steps"]) for one in stages] == [
        ("before", 0), ("half way", 2 * PHASE), ("after", 4 * PHASE)
    ]  # fmt: skip
    with LabelStore.open_existing(taught.folder / "labels.sqlite") as store:
        asked_at = [one.env_steps for one in store.in_force(3, 10**9)]
    expected = [sum(at < end for at in asked_at) for end in (0, 2 * PHASE, 4 * PHASE)]
    assert [one["labels"] for one in stages] == expected
    assert expected[0] == 0 < expected[1] < expected[2] == 8
    with Image.open(file) as picture:
        assert picture.format == "GIF"
        assert picture.n_frames > 2


@pytest.mark.medium
def test_the_first_stage_is_the_policy_that_training_began_with(taught: Result) -> None:
    run = open_run(taught.folder)
    kept = checkpoints(run, 4)
    (_, first), (_, last) = chosen_stages(run, kept, 4, 2)
    begun = first.algorithm.policy(first.algorithm.init(4))
    other = first.algorithm.policy(first.algorithm.init(3))
    assert same(first.algorithm.policy(first.state), begun)
    assert not same(first.algorithm.policy(first.state), other)
    assert last is kept[-1]


def same(one: object, other: object) -> bool:
    leaves = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(a, b) for a, b in leaves)


@pytest.mark.medium
def test_too_few_policies_for_the_stages_are_refused_in_one_line(
    taught: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = open_run(taught.folder)
    only: list[SavedPolicy] = checkpoints(run, 3)[-1:]
    with pytest.raises(UsageError, match=r"can show 2 stages, not 3: try --stages 2"):
        chosen_stages(run, only, 3, 3)
    assert len(chosen_stages(run, only, 3, None)) == 2
    assert len(chosen_stages(run, checkpoints(run, 3), 3, None)) == 3
    for more, says in (
        (["--save", "x.png"], "`x.png` must end in .webp or .gif"),
        (["--stages", "1"], "`--stages` must be a whole number from 2"),
        (["--stages", "2", "--seconds", "0"], "must be above 0"),
    ):
        assert main(["watch", str(taught.folder), *more]) == 2
        error = capsys.readouterr().err
        assert says in error
        assert error.count("\n") == 1
