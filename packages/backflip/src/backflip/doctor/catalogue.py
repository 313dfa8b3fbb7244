"""All checks. A new one is an entry in the `CHECKS` of a file in `checks/`."""

from backflip.doctor.check import Check
from backflip.doctor.checks import (
    action_values,
    explained_variance,
    known_environments,
    machine,
    optimising,
    paths,
    policy,
    preferences,
    ranges,
    returns,
    rewards,
    settings,
    values,
    values_and_returns,
)

_FILES = (
    policy,
    explained_variance,
    values,
    action_values,
    values_and_returns,
    optimising,
    settings,
    ranges,
    returns,
    known_environments,
    rewards,
    paths,
    preferences,
    machine,
)
CHECKS: tuple[Check, ...] = tuple(check for file in _FILES for check in file.CHECKS)
BY_ID = {check.id: check for check in CHECKS}
