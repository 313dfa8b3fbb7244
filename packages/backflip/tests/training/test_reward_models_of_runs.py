"""Whole runs with the reward models `auto` and `change_map`: what they say, and loading them."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import backflip
from backflip.core.checkpoint import CHECKPOINT, load_arrays
from backflip.core.trees import flatten
from backflip.core.types import Transition
from backflip.export.learned_reward import LearnedReward
from backflip.preferences.clips import from_arrays, observed
from backflip.preferences.label_file import LABELS
from backflip.preferences.labels import LabelStore
from backflip.rewards import calibration
from backflip.rewards.interface import TIE_WIDTH, Opinions
from backflip.training.queries import query_choice
from backflip.training.result import Result
from backflip.training.reward_learning import reward_measures
from backflip.training.reward_learning.reward_fits import RewardFits, key_of_fit
from backflip.training.reward_learning.reward_measures import RewardMeasures, summary_of
from backflip.training.reward_learning.reward_picture import reward_picture

SMALL = {
    "num_envs": 4,
    "rollout_length": 16,
    "epochs": 1,
    "minibatches": 1,
    "hidden": (4,),
    "clip_length": 5,
    "clip_envs": 4,
    "random_envs": 8,
    "random_env_steps": 30,
    "phases": 3,
}
STILL = """
import gymnasium
import jax
import numpy as np

class Still(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.left = 12
        return np.zeros(3, np.float32), {}

    def step(self, action):
        self.left -= 1
        return np.zeros(3, np.float32), float(action), False, self.left == 0, {}
"""


class Taught(NamedTuple):
    """A finished run, and what it said."""

    result: Result
    notes: list[str]


def taught(home: Path, env: str, model: str) -> Taught:
    notes: list[str] = []
    result = backflip.teach(
        env,
        home=home,
        labels=12,
        seeds=2,
        first_seed=3,
        env_steps=384,
        teacher="oracle",
        settings=SMALL | {"reward_model": model},
        report=lambda progress: notes.append(progress.note) if progress.note else None,
    )
    return Taught(result, notes)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Taught]:
    home, known = tmp_path_factory.mktemp("home"), dict[tuple[str, str], Taught]()

    def of(env: str, model: str) -> Taught:
        if (env, model) not in known:
            known[env, model] = taught(home, env, model)
        return known[env, model]

    return of


def names_of_candidates(folder: Path, env: str) -> list[str]:
    chosen = load_arrays(folder / CHECKPOINT).arrays["reward.chosen"]
    names = {"CartPole-v1": ["intervals", "linear"], "dot": ["linear", "change_map"]}[env]
    return [names[number] for number in chosen]


def clips_of(folder: Path, seed: int) -> list[Any]:
    with LabelStore.open_existing(folder / LABELS) as store:
        answers = store.in_force(seed, 384)
        return [observed(from_arrays(store.clips(one.query)[0])) for one in answers]


@pytest.mark.slow
@pytest.mark.parametrize("env", ["CartPole-v1", "dot"])
def test_a_run_says_which_representation_it_chose(
    runs: Callable[[str, str], Taught], env: str
) -> None:
    result, notes = runs(env, "auto")
    said = [note for note in notes if note.startswith("reward model, chosen by evidence: ")]
    assert all(now != before for before, now in pairwise(said)), "said when it changes"
    one, other = names_of_candidates(result.folder, env)
    expected = f"{one} of seed 3, 4" if one == other else f"{one} of seed 3, {other} of seed 4"
    assert said[-1] == f"reward model, chosen by evidence: {expected}"


@pytest.mark.slow
@pytest.mark.parametrize("model", ["additive", "network"])
def test_queries_and_measures_know_the_width_of_ties(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    """All but a few answers about CartPole are ties: clips in which the pole stays up are alike."""
    widths: dict[str, list[float]] = {"queries": [], "measures": []}

    def chosen(members: Any, pairs: Any, count: int, width: float) -> Any:
        widths["queries"].append(width)
        return pairs[:count]

    def expected(margins: Any, width: float) -> Any:
        widths["measures"].append(width)
        return calibration.expected_answer(margins, width)

    monkeypatch.setattr(query_choice, "most_disputed", chosen)
    monkeypatch.setattr(reward_measures, "expected_answer", expected)
    result = backflip.teach(
        "CartPole-v1",
        home=tmp_path,
        labels=24,
        seeds=1,
        env_steps=384,
        teacher="oracle",
        settings=SMALL | {"reward_model": model, "fresh_share": 0.0, "queries": "disagreement"},
    )
    lines = (result.folder / "metrics-train.jsonl").read_text().splitlines()
    logged = [json.loads(line).get(TIE_WIDTH) for line in lines]
    fitted = list(dict.fromkeys(width for width in logged if width is not None))
    assert widths["queries"] == pytest.approx(fitted[: len(widths["queries"])], rel=1e-6)
    assert widths["measures"] == pytest.approx(fitted[-1:], rel=1e-6)
    assert min(fitted) > 0


@pytest.mark.slow
def test_a_run_says_once_that_a_representation_has_collapsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "still_env.py").write_text(STILL)
    monkeypatch.chdir(tmp_path)
    _, notes = taught(tmp_path, "still_env:Still", "additive")
    said = [note for note in notes if "has collapsed" in note]
    assert len(said) == 1
    assert said[0].startswith("the representation of `additive` has collapsed (seed 3, 4): ")
    assert said[0].endswith("; try --set reward_model=auto")


@pytest.mark.medium
@pytest.mark.parametrize(
    ("env", "model"),
    [
        pytest.param("CartPole-v1", "auto", marks=pytest.mark.slow),
        pytest.param("dot", "auto", marks=pytest.mark.slow),
        pytest.param("dot", "change_map", marks=pytest.mark.slow),
    ],
)
def test_the_loaded_reward_is_that_of_the_run(
    runs: Callable[[str, str], Taught], env: str, model: str
) -> None:
    """The second route is the model's `opinions` about labelled clips, with the checkpoint."""
    folder, frames = runs(env, model).result.folder, {"dot": 4}.get(env, 1)
    arrays = load_arrays(folder / CHECKPOINT).arrays
    for row, seed in enumerate((3, 4)):
        reward: LearnedReward = backflip.load_reward(folder, seed)
        for name, array in flatten(reward._parameters).items():
            np.testing.assert_array_equal(array, arrays[f"reward.{name}"][row])
        clips = clips_of(folder, seed)
        opinions = reward._model.opinions(reward._parameters, clips)
        assert opinions is not None
        assert opinions.reward.std() > 0
        for clip, expected in zip(clips, opinions.reward, strict=True):
            stacked = [np.concatenate([x] * frames, -1) for x in (clip.obs, clip.next_obs)]
            found = reward.rewards(stacked[0], clip.action, stacked[1])
            np.testing.assert_allclose(found * clip.alive, expected, rtol=1e-3, atol=1e-3)


def test_a_metric_of_a_fit_is_the_mean_of_the_seeds_that_have_it() -> None:
    unused: Any = None
    fits = RewardFits(unused, unused, [3, 4, 5], unused)
    assert fits.mean_metrics() == {}
    fits.metrics = [{}, {"a": 1.0, "b": 5.0}, {"a": 2.0}]
    assert fits.mean_metrics() == {"a": 1.5, "b": 5.0}


@pytest.mark.parametrize("seed", [0, 7])
def test_no_other_use_of_a_seed_has_the_key_of_a_fit(seed: int) -> None:
    """Drivers split the key of the seed; splits are fold-ins of small numbers."""
    split = jax.random.key_data(jax.random.split(jax.random.key(seed), 4))
    fits = [key_of_fit(seed, env_steps) for env_steps in (0, 1, 10_240)]
    assert len({key.tobytes() for key in [*np.asarray(split), *fits]}) == 7


def test_a_record_is_measured_without_clips_of_random_play(tmp_path: Path) -> None:
    """No clip fits into random play if its episodes are too short; a model never sees no clips."""

    class Constant:
        def opinions(self, parameters: Any, clips: Any) -> Opinions:
            assert len(clips), "a reward model cannot have an opinion of nothing"
            ones = np.ones((len(clips), 3))
            return Opinions(ones, ones, np.ones((len(clips), 2)))

    flags = np.zeros((1, 6, 2), bool)
    obs = np.zeros((1, 6, 2, 4), np.float32)
    true = np.arange(12, dtype=np.float32).reshape(1, 6, 2)
    record = Transition(obs, flags, true, flags, flags, obs, ~flags, ())
    with LabelStore.open(tmp_path / LABELS) as store:
        model: Any = Constant()
        measures = RewardMeasures("gymnasium:CartPole-v1", {}, model, store, 3)
        found = measures.write(tmp_path, [0], record, np.zeros(1), [[]], {}, [{}])
    assert found is not None
    clips = found["seeds"][0]["clips"]
    assert sorted(clips["newest"]["true"]) == [6.0, 9.0, 24.0, 27.0]
    assert not clips["random"]["true"].size
    assert reward_picture(found, summary_of(found)).startswith("<svg")
