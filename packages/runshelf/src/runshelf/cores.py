"""The number of processor cores that this process may use."""

import os


def usable_cores() -> int:
    """Return the number of cores this process may run on, at least 1."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    return len(affinity(0)) if affinity else os.cpu_count() or 1
