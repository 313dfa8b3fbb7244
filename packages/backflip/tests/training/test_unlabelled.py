"""Whole runs with crops and pseudo-labels: a resumed run has the same bits, labels stay labels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backflip.core.checkpoint import CHECKPOINT, load_arrays
from backflip.preferences import program_source
from backflip.preferences.label_file import LABELS
from backflip.preferences.labels import LabelStore
from backflip.rewards.network import ensemble
from backflip.teaching_api import resume_teach, teach, teach_more
from backflip.training.queries import demonstrations, query_maker, unlabelled
from backflip.training.queries.unlabelled import PAIRS
from backflip.training.result import Result
from backflip.training.session import Session
from runshelf.errors import Interrupted
from runshelf.store.finding import find_run
from runshelf.store.metrics import read_metrics

SMALL: dict[str, Any] = {
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
    "reward_model": "network",
    "crops": 1,
    "fresh_share": 0.5,
    "pseudo_label_weight": 1.0,
    "pseudo_label_threshold": 0.6,
}


def tiny(home: Path) -> Result:
    return teach(
        "Pendulum-v1",
        home=home,
        labels=12,
        seeds=2,
        first_seed=3,
        env_steps=384,
        argv=["backflip"],
        settings=SMALL,
    )


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ensemble, "UPDATES", 40)
        yield tiny(tmp_path_factory.mktemp("home"))


def test_what_is_drawn_at_the_same_env_steps_has_random_numbers_of_its_own() -> None:
    domains = [
        *(program_source.ANSWERS, query_maker.FRESH, unlabelled.UNLABELLED),
        *(demonstrations.OWN, demonstrations.DRAWN),
    ]
    assert len({*domains}) == len(domains)


@pytest.mark.slow
def test_pseudo_labels_are_neither_stored_nor_counted(taught: Result) -> None:
    assert taught.labels == 12
    with LabelStore.open(taught.folder / LABELS) as store:
        assert store.counts().labels == 24
    last = read_metrics(taught.folder, "train").records[-1]
    assert last["reward_model_labels"] < 12.5
    assert last["fresh_checks"] <= 12  # fresh pairs of both seeds
    assert 0 <= last["reward_model_pseudo_labels"] <= 1
    arrays = load_arrays(taught.folder / CHECKPOINT).arrays
    assert arrays["unlabelled.obs"].shape == (2, PAIRS, 2, 5, 3)
    assert arrays["unlabelled.alive"].all()
    assert any(r["reward_model_pseudo_labels"] > 0 for r in _records(taught))


def _records(taught: Result) -> list[dict[str, Any]]:
    return read_metrics(taught.folder, "train").records


@pytest.mark.slow
def test_a_resumed_run_has_the_same_bits(
    taught: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, calls = Session.save, []

    def stopped(*args: Any, **options: Any) -> None:
        calls.append(args)
        if len(calls) == 3:  # after two checkpoints
            raise KeyboardInterrupt
        original(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "save", stopped)
        with pytest.raises(Interrupted):
            tiny(tmp_path)
    run = find_run(tmp_path, "latest")
    resumed = resume_teach(run)
    assert resumed.returns == taught.returns
    one, other = (load_arrays(x / CHECKPOINT).arrays for x in (taught.folder, run.folder))
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


@pytest.mark.slow
def test_a_child_goes_on_with_the_pairs_of_its_parent(taught: Result) -> None:
    child = teach_more(taught.folder, labels=4, env_steps=128)
    assert child.labels == 16
