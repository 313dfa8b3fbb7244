"""Reads times in the files of a run, which other programs may have written."""

from datetime import UTC, datetime


def seconds_of(moment: object) -> float | None:
    """Return the Unix time of an ISO 8601 text; None if invalid."""
    if not isinstance(moment, str):
        return None
    try:
        when = datetime.fromisoformat(moment)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
