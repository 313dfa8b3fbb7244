"""How many cores this process may use."""

import os


def usable_cores() -> int:
    """Return how many cores this process may run on, at least 1."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    return len(affinity(0)) if affinity else os.cpu_count() or 1
