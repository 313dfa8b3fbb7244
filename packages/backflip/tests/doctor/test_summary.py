"""Tests of `backflip.doctor.summary`: the line about a finished run."""

import pytest
from packages.backflip.tests.doctor.check_samples import log

from backflip.doctor import summary
from backflip.doctor.log import Log
from runshelf.store.diagnosis import read_diagnosis
from runshelf.store.run import create_run

TIES = {"reward_model_labels": 60.0, "reward_model_ties": 60.0}
FINE = {"approx_kl": 0.01}


@pytest.fixture
def word(tmp_path, monkeypatch):
    """A function that returns what is said about logs, and the findings that are kept."""

    def of(*logs: Log):
        fields = {"command": "teach", "env": "e", "algorithm": "ppo", "seeds": [0], "argv": ["x"]}
        with create_run(tmp_path, config={}, **fields) as writer:
            monkeypatch.setattr(summary, "logs_of_run", lambda _: logs)
            return summary.doctors_word(writer.folder), read_diagnosis(writer.folder)

    return of


def of_seed(seed, **signals):
    found = log("ppo", **signals)
    return Log(**{**vars(found), "seed": seed})


def test_a_run_without_signs_is_fine(word):
    said, _ = word(of_seed(0, **FINE))
    assert said == {"findings": {}, "warnings": {}, "in_words": "doctor: nothing wrong was seen"}


def test_warnings_are_named_where_there_are_no_findings(word):
    said, kept = word(of_seed(0, **FINE, **TIES), of_seed(1, **FINE))
    assert (said["findings"], said["warnings"]) == ({}, {"RM-TIES": 1})
    assert said["in_words"].startswith(
        "doctor: nothing is proven wrong, but look at RM-TIES (almost all answers are ties) in 1 "
        "of 2 seeds; backflip doctor "
    )
    assert kept.findings == {}


def test_findings_come_before_warnings(word):
    said, kept = word(of_seed(0, approx_kl=5.0, **TIES))
    assert said["warnings"] == {"RM-TIES": 1}
    assert said["in_words"].startswith("doctor: PI-KL-HIGH (updates move the policy far) in 1 of 1")
    assert list(kept.findings) == ["PI-KL-HIGH"]
