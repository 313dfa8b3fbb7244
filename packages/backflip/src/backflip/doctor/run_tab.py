"""The process that makes the doctor's tab on the pages of a run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from backflip.doctor.diagnosis import diagnose
from backflip.doctor.page import Drawn, content
from backflip.doctor.reading.own_runs import logs_of_run
from runshelf.store.run import open_run
from runshelf.web.drawing.charts import chart
from runshelf.web.pages.run_tabs import RunTab
from runshelf.web.serving.worker_loop import Answer, Say, answer_requests

TAB = RunTab("doctor", "Doctor", "backflip.doctor.run_tab")


def make(request: Mapping[str, Any], _: Say) -> Answer:
    """Return the diagnoses of a run as HTML, one for each seed."""
    logs = logs_of_run(open_run(Path(request["folder"])))
    made = content([diagnose(log) for log in logs], _figure)
    return Answer({}, made.encode("utf-8", "replace"))


def _figure(drawn: Drawn) -> str:
    """Return curves as the pages of runs draw theirs."""
    return (
        f"<figure class='figure'><figcaption><b>{escape(drawn.title)}</b>"
        f"<output class='reading'></output></figcaption>"
        f"{chart(drawn.title, drawn.lines, 'env_steps')}"
        f"<p class='legend'>{escape(drawn.legend)}</p></figure>"
    )


if __name__ == "__main__":
    answer_requests(make)
