"""Tests of `backflip.doctor.reading.continued`: a child is read with the runs that it continues."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from packages.backflip.tests.doctor.check_samples import log

from backflip.doctor.catalogue import BY_ID, CHECKS
from backflip.doctor.log import Signal
from backflip.doctor.reading.continued import joined, parents_of
from backflip.doctor.reading.own_runs import logs_of_run
from backflip.training.train import train, train_more
from runshelf.store.run import Run, create_run, open_run

SMALL = {"num_envs": 8, "rollout_length": 32, "minibatches": 2, "epochs": 1}


def signal(*values):
    """Return a signal with the values (env steps, value)."""
    x, y = np.array(values, float).T
    return Signal(x, y, "x")


@pytest.mark.slow
def test_a_child_is_read_with_all_its_parents(tmp_path):
    options = {"seeds": 2, "settings": SMALL, "home": tmp_path}
    first = train("ppo", "CartPole-v1", env_steps=1_024, **options)
    second = train_more(open_run(first.folder), env_steps=512, home=tmp_path)
    third = train_more(open_run(second.folder), env_steps=256, home=tmp_path)
    alone = logs_of_run(open_run(first.folder))
    whole = logs_of_run(open_run(third.folder))
    for log_of_first, log_of_all in zip(alone, whole, strict=True):
        entropy, begins = log_of_all.signals["entropy"], log_of_first.signals["entropy"]
        assert entropy.x.tolist() == [256.0 * (1 + n) for n in range(7)]
        assert entropy.y[:4].tolist() == begins.y.tolist()
        assert (log_of_all.began_at, log_of_all.budget) == (0, 1_792)
        assert log_of_all.signals["memory_mib"].x[0] > 1_536  # of its own process alone
    shutil.rmtree(second.folder)
    lost = logs_of_run(open_run(third.folder))
    assert [one.began_at for one in lost] == [1_536, 1_536]
    assert not BY_ID["ENV-WORSE"].applies_to(lost[0])
    assert BY_ID["ENV-WORSE"].applies_to(whole[0])


def test_signals_are_joined_where_the_child_begins():
    earlier = replace(log(), signals={"a": signal((1, 5), (2, 6), (3, 7)), "c": signal((1, 8))})
    later = replace(log(), signals={"a": signal((3, 9)), "b": signal((4, 1))}, began_at=2.0)
    found = joined(later, earlier)
    assert found.began_at == 0
    assert {name: one.y.tolist() for name, one in found.signals.items()} == {
        "a": [5, 6, 9], "b": [1], "c": [8]
    }  # fmt: skip
    assert found.signals["a"].x.tolist() == [1, 2, 3]


def test_labels_that_a_child_has_from_its_parent_count_once():
    copied = signal((1, 5), (4, 6))
    later = replace(log(), signals={"labels": copied}, began_at=2.0)
    earlier = replace(log(), signals={"labels": signal((1, 5))})
    assert joined(later, earlier).signals["labels"] == copied


@pytest.mark.parametrize("parent", ["../../etc", "0" * 26, "self", "7" + "Z" * 25, 3, None])
def test_an_odd_parent_is_none(tmp_path, parent):
    config = {"continues": {"env_steps": 10}}
    fields = {"command": "train", "env": "e", "algorithm": "ppo", "seeds": [0], "argv": ["x"]}
    with create_run(tmp_path, config=config, **fields) as writer:
        run = writer.run
    parent = run.ulid if parent == "self" else parent
    assert not list(parents_of(Run(run.folder, {**run.manifest, "parent": parent})))


def test_checks_that_compare_with_the_start_are_known():
    assert {check.id for check in CHECKS if check.from_start} == {
        "ENV-WORSE", "ENV-NOTHING", "PI-ENT-GROW", "PI-STD-COLLAPSE", "PI-ENT-COLLAPSE",
        "ENV-EVALGAP", "PI-ENT-EARLY", "Q-TEMPERATURE", "Q-TEMPERATURE-LOW", "PV-EV-PERFECT",
    }  # fmt: skip
