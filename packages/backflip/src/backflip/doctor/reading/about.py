"""Checks what a user says about a log: `--about NAME=VALUE`."""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any, NamedTuple, final

from backflip.algorithms.registry import algorithms, names
from backflip.doctor.log import CONTINUOUS, Log
from backflip.doctor.reading.from_settings import NAMES, RATES
from backflip.training.renamed_settings import ALIASES
from runshelf.errors import UsageError, did_you_mean, shown


@final
class _Kind(NamedTuple):
    """Values that a fact may have, in words and as a test."""

    words: str
    accepts: Callable[[Any], bool]


_MOST = 1e18  # beyond, no setting means anything, and integers do not fit into arrays


def _number(
    words: str,
    low: float = -_MOST,
    high: float = _MOST,
    *,
    above: bool = False,
    whole: bool = False,
) -> _Kind:
    """Return the kind of numbers from `low`, or above it, to `high`."""

    def accepts(value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return low <= value <= high and not (above and value == low) and not (whole and value % 1)

    return _Kind(words, accepts)


def _is_any(value: object) -> bool:
    return True


def _is_switch(value: object) -> bool:
    return isinstance(value, bool)


def _is_number_of_actions(value: object) -> bool:
    return value == CONTINUOUS or _COUNT.accepts(value)


def _is_coefficient(value: object) -> bool:
    return _NUMBER.accepts(value) or str(value).startswith("auto")


_ANY = _Kind("anything", _is_any)
_NUMBER = _number("a number")
_POSITIVE = _number("a number above 0", 0, above=True)
_NOT_NEGATIVE = _number("a number of at least 0", 0)
_SHARE = _number("a number from 0 to 1", 0, 1)
_COUNT = _number("a whole number above 0", 1, whole=True)
_ACTIONS = _Kind("a whole number above 0 or continuous", _is_number_of_actions)
_SWITCH = _Kind("true or false", _is_switch)
_COEFFICIENT = _Kind("a number or auto", _is_coefficient)  # SAC of Stable-Baselines3 may tune it

_KINDS: Mapping[str, _Kind] = {
    "algorithm": _ANY,
    "env": _ANY,
    "env_steps": _POSITIVE,
    "actions": _ACTIONS,
    **dict.fromkeys(("max_episode_steps", "num_envs", "rollout_length"), _COUNT),
    **dict.fromkeys(("epochs", "minibatches", "batch_size", "buffer_size"), _COUNT),
    **dict.fromkeys(("target_update_interval", "policy_delay"), _POSITIVE),
    **dict.fromkeys(("discount", "gae_lambda", "tau"), _SHARE),
    **dict.fromkeys(("epsilon_start", "epsilon_end", "exploration_fraction"), _SHARE),
    **dict.fromkeys((*RATES, "clip_range", "learning_starts"), _NOT_NEGATIVE),
    **dict.fromkeys(("entropy_coef", "value_coef", "gradient_steps"), _NUMBER),
    "ent_coef": _COEFFICIENT,
    "anneal_lr": _SWITCH,
}


def checked_facts(facts: Mapping[str, Any], also: Collection[str] = ()) -> dict[str, Any]:
    """Return the facts, with the algorithm in lower case.

    Args:
        facts: by name: `algorithm`, `env`, `env_steps`, `actions`, and settings in our names or in
            those of other libraries.
        also: other names that are allowed.

    Raises:
        UsageError: a name is not known, or a value is not possible.
    """
    for name, value in facts.items():
        kind = _known().get(name)
        if kind is None and name not in also:
            raise UsageError(
                f"the doctor knows no `{name}`{_nearest(name)}; --about takes algorithm, env, "
                "env_steps, actions, and settings such as discount and learning_rate"
            )
        if kind is not None and not kind.accepts(value):
            raise UsageError(f"`{name}` must be {kind.words}, got `{_as_text(value)}`")
    texts = {name: str(facts[name]) for name in ("algorithm", "env") if name in facts}
    lower = {name: text.lower() for name, text in texts.items() if name == "algorithm"}
    return {**facts, **texts, **lower}


def note_on_algorithm(log: Log) -> tuple[str, ...]:
    """Return a sentence about an algorithm that no check knows; empty if one does."""
    if log.algorithm is None or log.algorithm in names():
        return ()
    return (
        f"the doctor does not know the algorithm `{log.algorithm}`"
        f"{did_you_mean(log.algorithm, names())}; checks of one algorithm are left out "
        f"(it knows {', '.join(names())})",
    )


@cache
def _known() -> Mapping[str, _Kind]:
    """Return the kinds of all facts: of ours, and of other libraries' names for them."""
    fields = [
        field for entry in algorithms().values() for field in dataclasses.fields(entry.config)
    ]
    ours = {field.name: _kind_of(field.default) for field in fields} | dict(_KINDS)
    return {theirs: ours[name] for theirs, name in NAMES.items()} | ours


def _kind_of(default: object) -> _Kind:
    if isinstance(default, bool):
        return _SWITCH
    return _NUMBER if isinstance(default, int | float) else _ANY


def _nearest(name: str) -> str:
    """Return a hint: our name for another library's, else the most similar name."""
    ours = [one for one in ALIASES.get(name, ()) if one in _known()]
    return did_you_mean(ours[0], ours) if ours else did_you_mean(name, _known())


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else shown(value)
