"""Alarms that a run has recorded, on its page and on the home page."""

from pathlib import Path

import pytest
from packages.runshelf.tests.web.pages import page, serving
from packages.runshelf.tests.web.runs import begin, finish

pytestmark = pytest.mark.medium


def test_alarms_are_shown_while_a_run_runs_and_afterwards(tmp_path: Path) -> None:
    running, over = begin(tmp_path, seed=1), begin(tmp_path, seed=2)
    for writer in (running, over):
        writer.record_alarm("the <learned> return rises", env_steps=7)
        writer.record_alarm("the <learned> return rises", env_steps=9)
    finish(over)
    alarm = '<span class="badge bad">the &lt;learned&gt; return rises</span>'
    with serving(tmp_path) as server:
        for one in (running, over):
            text = page(server, f"/runs/{one.folder.name}")
            assert text.count(alarm) == 1
            assert "healthy" not in text
        assert alarm in page(server, "/")
    assert len(over.run.alarms()) == 1
    running.close()


def test_a_run_without_alarms_has_none(tmp_path: Path) -> None:
    folder = finish(begin(tmp_path))
    with serving(tmp_path) as server:
        assert "badge bad" not in page(server, f"/runs/{folder.name}")
