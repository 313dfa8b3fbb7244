"""The rules. A new one is an entry in the RULES of a file in `rules/`."""

from backflip.doctor.lint.rule import Rule
from backflip.doctor.lint.rules import (
    bounded_values,
    budgets,
    choosing,
    ends,
    exploring,
    forward_returns,
    frames,
    hidden_errors,
    ignored_ends,
    loss_signs,
    modes,
    never_updated,
    normalising,
    open_advantages,
    open_targets,
    optimising,
    rewards,
    sampled_actions,
    seeds,
    shapes,
    softmaxes,
    stepping,
    targets,
    truncation,
)

_FILES = (
    truncation,
    ignored_ends,
    ends,
    stepping,
    open_targets,
    open_advantages,
    shapes,
    targets,
    never_updated,
    optimising,
    loss_signs,
    sampled_actions,
    modes,
    softmaxes,
    bounded_values,
    choosing,
    exploring,
    budgets,
    rewards,
    forward_returns,
    normalising,
    frames,
    seeds,
    hidden_errors,
)
RULES: tuple[Rule, ...] = tuple(
    sorted((rule for file in _FILES for rule in file.RULES), key=lambda rule: rule.id)
)
BY_ID = {rule.id: rule for rule in RULES}
