"""How many labels there must be before the agent learns next; the page counts up to this number."""

from backflip.labelling.status import Status
from backflip.preferences.answer_source import QueriedRun

FIRST_SHARE = 4  # the first phase starts when at most 1 / FIRST_SHARE of the newest round is open


def newest_round_at(run: QueriedRun, phase: int, *, first: bool) -> int:
    """Return how many pairs of the newest round count when phase `phase` (from 0) may start.

    Args:
        run: the run.
        phase: the number of finished phases.
        first: it is the first phase of this process; then most answers are waited for.
    """
    if phase + 1 >= run.phases:  # no queries follow: wait for all answers
        return 0
    return run.due_after(phase) // FIRST_SHARE if first else run.due_after(phase)


def next_phase(status: Status) -> int | None:
    """Return the next phase (from 0) that waits for answers; None if there is none."""
    if status.doing in ("evaluating", "finished", "stopped"):
        return None
    phase = status.phase + (1 if status.doing == "learning" else 0)
    return phase if phase < status.phases else None


def needed_labels(run: QueriedRun, status: Status, allowed: int) -> int | None:
    """Return the number of labels at which the next phase may start; None if no phase follows.

    Args:
        run: the run.
        status: the trainer's status.
        allowed: the number of pairs that may be open then.
    """
    phase = next_phase(status)
    if phase is None:
        return None
    counts = run.store.counts()
    expected = counts.labels + counts.pending + _not_added(run, status, phase)
    return max(0, expected - allowed)


def _not_added(run: QueriedRun, status: Status, phase: int) -> int:
    """Return how many pairs of the round before `phase` are not in the label file yet."""
    if status.doing == "waiting":
        return 0
    if status.doing == "learning":
        return run.due_after(phase)
    added = sum(run.store.count_queries(seed, status.env_steps) for seed in run.seeds)
    return max(0, run.due_after(phase) - added)
