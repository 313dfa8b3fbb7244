"""Looks at a log as the live doctor does: at a part of it, while training would go on."""

from dataclasses import replace

from backflip.doctor.diagnosis import diagnose
from backflip.doctor.log import Log

SHARES = (0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SOON = 0.2  # of the budget: where half of the faults should be found


def until(log: Log, share: float) -> Log:
    """Return a log as it was after a share of its budget."""
    end = share * log.budget
    then = {
        name: one._replace(x=one.x[one.x <= end], y=one.y[one.x <= end])
        for name, one in log.signals.items()
    }
    return replace(log, signals=then, planned=log.budget)


def finds_at(log: Log, share: float) -> bool:
    """Return whether a look after a share of the budget finds something."""
    return bool(diagnose(until(log, share)).findings)


def finds_ever(log: Log) -> bool:
    """Return whether any look finds something, the last one at the whole log."""
    return any(finds_at(log, share) for share in SHARES)
