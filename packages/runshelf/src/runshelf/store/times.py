"""Times in the files of a run, as ISO 8601; other programs may have written those that are read."""

import time
from datetime import UTC, datetime


def now() -> str:
    """Return the current time in ISO 8601, UTC, with milliseconds."""
    return moment_of(time.time())


def moment_of(unix: float) -> str:
    """Return a Unix time in ISO 8601, UTC, with milliseconds."""
    return datetime.fromtimestamp(unix, UTC).isoformat(timespec="milliseconds")


def seconds_of(moment: object) -> float | None:
    """Return the Unix time of an ISO 8601 text; None if invalid."""
    if not isinstance(moment, str):
        return None
    try:
        when = datetime.fromisoformat(moment)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
