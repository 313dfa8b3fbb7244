"""Metrics of the machine and of speed. They differ between any two runs of the same program."""

import re

_OF_MACHINE = re.compile(
    # Of `runshelf run`, and of trackers that log the use of the machine.
    r"^system[/.]|^gpu\d*[/.]|(^|[/_.])memory(_(bytes|mib|gib|percent))?$"
    r"|(^|/)(cpu_percent|load_per_core|cores|processes|disk_free_bytes)$"
    # Durations and rates: `NAME/seconds` of `timed`, `NAME/second` of `rate`, and other programs'.
    r"|(^|/)(fps|SPS|time_elapsed|seconds?)$|_per_second$"
)
# Also names that may be such a metric: `train_time`, `elapsed`, `cpu`.
_MAYBE = re.compile(
    r"(?:.*[._/ -])?(?:system|seconds?|time|fps|sps|speed|duration|elapsed|memory|cpu|gpu)"
    r"(?:[._/ -].*)?|.*per_second.*",
    re.IGNORECASE,
)


def is_of_machine(metric: str) -> bool:
    """Return whether a metric describes the use of the machine, a duration or a speed."""
    return _OF_MACHINE.search(metric) is not None


def may_be_measured(metric: str) -> bool:
    """Return whether a metric may be of the machine, to judge by a word in its name."""
    return _MAYBE.fullmatch(metric) is not None
