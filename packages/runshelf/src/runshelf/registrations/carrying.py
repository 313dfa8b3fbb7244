"""Runs that are started under a registration carry its name, version and hash."""

from dataclasses import replace
from pathlib import Path

from runshelf.environment import variable
from runshelf.registrations.kept import find_intact
from runshelf.store.run import RunInfo

VARIABLE = "REGISTERED"  # RUNSHELF_REGISTERED: the name, for every run that a process starts


def registered_info(home: Path, info: RunInfo, name: str | None = None) -> RunInfo:
    """Return run information with the registration that a run belongs to, if any.

    Args:
        home: the home that keeps the registration.
        info: the run information; if it has a registration, this is kept.
        name: the registration; by default that in the variable `RUNSHELF_REGISTERED`.

    Raises:
        UsageError: there is no such registration, or its file was changed.
    """
    name = name or (None if info.registered else variable(VARIABLE))
    return replace(info, registered=find_intact(home, name).carried()) if name else info
