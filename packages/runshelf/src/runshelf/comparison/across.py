"""Normalised scores over several environments."""

from collections.abc import Sequence

from runshelf.comparison.result import AcrossResult, Better, EnvironmentResult


def across(found: Sequence[EnvironmentResult], better: Better) -> AcrossResult | None:
    """Return statistics of normalised scores; None without two environments with references."""
    return None
