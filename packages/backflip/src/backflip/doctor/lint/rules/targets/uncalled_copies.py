"""Functions that would update a target network, and that nothing calls: a part of L24."""

from collections.abc import Iterator

from backflip.doctor.lint.questions.weight_copies import Copy, copied, copiers, is_used
from backflip.doctor.lint.rule import Hit
from backflip.doctor.lint.rules.acting.still_epsilons import steps_an_environment
from backflip.doctor.lint.rules.targets.targets import TARGETS
from backflip.doctor.lint.source import (
    Function,
    Source,
    assignments,
    has_word,
    last_word,
    made_by,
    written,
)

NAMES = ("target", "copy", "sync", "update", "weights", "replace")  # in names of such functions


def uncalled_copies(source: Source) -> Iterator[Hit]:
    """Find the only function that copies weights into a target, if the program never names it."""
    if not steps_an_environment(source) or _fills_elsewhere(source):
        return
    for name, (function, copy) in copiers(source).items():
        if not has_word(name, *NAMES) or is_used(source, name) or function.decorator_list:
            continue
        if has_word(copy.into, *TARGETS) or _is_of_targets(source, function, copy):
            yield Hit(function, f"`{name}` is never called, so the target network stays as it was")


def _fills_elsewhere(source: Source) -> bool:
    """Return whether a call copies into a target network, or mixes something into it."""
    for call, _ in source.calls():
        copy = copied(source, call)
        if copy is not None and has_word(copy.into, *TARGETS):
            uncalled = getattr(source.function_of(call), "name", "")
            if not (uncalled and uncalled in copiers(source) and not is_used(source, uncalled)):
                return True
        if has_word(last_word(call.func), "soft_update", "polyak", "ema", "lerp", "incremental"):
            return True
    return False


def _is_of_targets(source: Source, function: Function, copy: Copy) -> bool:
    """Return whether a method fills its own network, and a target has its class."""
    inside = source.class_of(function)
    return (
        inside is not None
        and copy.into.startswith("self")
        and any(
            has_word(last_word(target), *TARGETS) and made_by(value) == inside.name
            for scope in source.scopes
            for target, value, _ in assignments(scope)
            if written(target)
        )
    )
