"""Labels that a run starts with: whose they are, and how many."""

import numpy as np
import pytest

from backflip.core.spec import Box, Discrete, EnvSpec
from backflip.preferences.exchange import export_labels
from backflip.preferences.labels import LabelStore
from backflip.training.queries.initial_labels import Start, check_labels
from backflip.training.teaching.setup import budget_of
from runshelf.errors import UsageError

LENGTH = 4


@pytest.fixture
def labels(tmp_path):
    """A file with one label about clips of four env steps with three numbers each."""
    seen = np.zeros((LENGTH, 3), np.float32)
    clip = {
        "obs": seen,
        "next_obs": seen,
        "action": np.zeros(LENGTH, np.int32),
        "reward": np.zeros(LENGTH, np.float32),
        "lived": np.ones(LENGTH, bool),
    }
    with LabelStore.open(tmp_path / "labels.sqlite") as store:
        store.add_label(store.add_query(0, clip, clip, 0), "left", "me", 1.0)
        export_labels(store, tmp_path / "labels.jsonl")
    return Start(str(tmp_path / "labels.jsonl"), 1)


def env_with(numbers):
    high = np.ones(numbers, np.float32)
    return EnvSpec("mine", Box(-high, high, np.dtype(np.float32)), Discrete(2), 100)


def test_another_environment_is_named_even_if_its_clips_have_another_length(labels):
    with pytest.raises(UsageError, match="labels are from another environment: in label 1") as one:
        check_labels(labels, env_with(5), LENGTH + 3)
    assert "clip_length" not in str(one.value)


def test_another_clip_length_comes_with_the_option_that_fits(labels):
    with pytest.raises(UsageError, match=f"of this run 7; try --set clip_length={LENGTH}"):
        check_labels(labels, env_with(3), LENGTH + 3)
    check_labels(labels, env_with(3), LENGTH)


def test_fewer_labels_than_are_imported_are_refused():
    start = Start("labels.jsonl", 6)
    with pytest.raises(UsageError, match="--labels 4 is less than the 6 labels that are imported"):
        budget_of(4, start, 300)
    assert [budget_of(count, start, 300) for count in (6, 9, None)] == [6, 9, 6]
