"""Attacks on time while people label and a run goes on: the wall clock is set back."""

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest

from backflip.labelling.leases import LEASE_SECONDS, Leases
from backflip.labelling.status import Status
from backflip.labelling.tally import labels_per_minute
from backflip.labelling.terminal.words import waiting_lines
from backflip.preferences import label_inserts
from backflip.preferences.label_records import NewQuery
from backflip.preferences.labels import LabelStore
from backflip.training.output_recorder import OutputRecorder
from runshelf.recorder.output_reader import read_output
from runshelf.store.run import Run

HOUR = 3600.0


@pytest.mark.attack
def test_the_rate_of_labelling_leaves_the_jump_out(tmp_path, monkeypatch, tried):
    clip = {"x": np.zeros(3, np.float32)}
    with LabelStore.open(tmp_path / "labels.sqlite") as store:
        for query, at in zip(
            store.add_queries([NewQuery(0, clip, clip, 0)] * 3),
            ("2026-11-23T12:00:00+00:00", "2026-11-23T11:00:00+00:00", "2026-11-23T11:00:30+00:00"),
            strict=True,
        ):
            monkeypatch.setattr(label_inserts, "now", lambda at=at: at)
            store.add_label(query, "left", "me", 1.0)
            if at.endswith("11:00:00+00:00"):
                assert labels_per_minute(store) is None, "no gap is known yet"
        assert labels_per_minute(store) == pytest.approx(2.0)
    tried(1, "times the clock was set back")


@pytest.mark.attack
@pytest.mark.parametrize("back", [10.0, HOUR])
def test_people_who_left_do_not_stay_and_people_who_stay_do_not_leave(tmp_path, back, tried):
    clock = [1_790_000_000.0]
    leases = Leases(tmp_path, lambda: clock[0])
    leases.renew("ann")
    leases.renew("bob")
    clock[0] -= back
    leases.renew("ann")
    assert leases.present() == {"ann"}
    clock[0] += LEASE_SECONDS + 1
    assert leases.present() == set()
    tried(1, "times the clock was set back")


def test_the_terminal_shows_no_negative_time():
    status = Status("learning", since=time.time() + HOUR, expected_seconds=60.0, pid=os.getpid())
    assert not any("-" in line for line in waiting_lines(status, time.time()))


@pytest.mark.attack
@pytest.mark.parametrize("ahead", [1.0, HOUR, 400 * 24 * HOUR])
def test_the_output_of_a_resumed_run_has_times_in_order(tmp_path, ahead, tried):
    """The clock was ahead when the run was made, or is set back before it is resumed."""
    created = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(time.time() + ahead))
    run = Run(Path(tmp_path), json.loads(json.dumps({"created": created})))
    for session in range(3):
        recorder = OutputRecorder(run)
        recorder.write(f"session {session}\nline")
        recorder.close()
        earlier = Run(run.folder, {"created": "2026-01-01T00:00:00+00:00"})
        run = earlier if session == 0 else Run(run.folder, {"created": created})
    seconds = [line.seconds for line in read_output(run.folder)]
    assert len(seconds) == 6
    assert seconds == sorted(seconds)
    assert seconds[0] >= 0.0
    tried(1, "times the clock was set back")
