"""How a new run was called."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import final

from backflip.training.progress import Report
from runshelf.store.run import RunInfo


@final
@dataclass(frozen=True)
class Invocation:
    """How a new run was called, from the command line or from Python.

    Attributes:
        argv: the command line to record.
        info: name, group, question and tags of the run.
        report: the progress callback, if any.
        began: `time.perf_counter()` of the call.
    """

    argv: Sequence[str]
    info: RunInfo
    report: Report | None
    began: float = field(default_factory=time.perf_counter)

    def reporting_to(self, report: Report) -> "Invocation":
        """Return the invocation with `report` as callback, unless the caller gave one."""
        return self if self.report else replace(self, report=report)


def invoked(argv: Sequence[str] | None, info: RunInfo, report: Report | None) -> Invocation:
    """Return an invocation that begins now; without `argv`, of this process's command line."""
    return Invocation(sys.argv if argv is None else argv, info, report)
