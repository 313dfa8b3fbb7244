"""Errors of the learner. Those of files, runs and usage are in `runshelf.errors`."""

from runshelf.errors import UserFacingError


class EnvironmentFailed(UserFacingError):
    """An environment raised, or returned invalid data."""
