"""What is registered: question, hypotheses, metric, number of seeds, test and stopping rule."""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, NamedTuple, cast, final

from runshelf.errors import UsageError, did_you_mean, shown

Test = Literal["permutation", "welch"]
TESTS: tuple[Test, ...] = ("permutation", "welch")
MOST_SEEDS = 100_000
MOST_LOOKS = 100
WINDOW = 10  # per cent of a curve whose mean is the value of a seed

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PLACEHOLDERS = ("seed", "seeds")
_LONGEST = 10_000
_MOST_LISTED = 100


@final
class Hypothesis(NamedTuple):
    """A hypothesis, and what it predicts."""

    name: str
    predicts: str


@final
@dataclass(frozen=True)
class Registration:
    """The analysis of an experiment.

    Attributes:
        question: what the experiment is to answer.
        hypotheses: the hypotheses, each with its prediction.
        metric: the metric that is compared.
        n: the number of seeds of each group; with looks, of each group at the last look.
        test: the test of the difference of two groups.
        alpha: the probability of a false difference, over all comparisons and all looks.
        looks: how often the results may be looked at: 1, or more for AdaStop.
        window: the value of a seed is the mean over the last `window` per cent of its curve.
        threshold: seeds above it count as successes; None for no threshold.
        failure_value: the value of a seed that fails; None for the worst value of all seeds, which
            a sequential test does not allow.
        first_seed: the first seed of each group.
        commands: the command of each group, with `{seed}`; with `{seeds}` it runs so many seeds,
            from `{seed}` on. May be empty.
    """

    question: str
    hypotheses: tuple[Hypothesis, ...]
    metric: str
    n: int
    test: Test = "permutation"
    alpha: float = 0.05
    looks: int = 1
    window: int = WINDOW
    threshold: float | None = None
    failure_value: float | None = None
    first_seed: int = 0
    commands: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def seeds_per_look(self) -> int:
        """The number of seeds that each look adds to each group."""
        return self.n // self.looks

    @property
    def stopping(self) -> str:
        """The stopping rule in words."""
        if self.looks == 1:
            return f"fixed: {self.n} seeds of each group, looked at once"
        return (
            f"sequential (AdaStop): at most {self.looks} looks, "
            f"{self.seeds_per_look} seeds of each group at each look"
        )


KEYS = tuple(one.name for one in fields(Registration))


def check_name(name: str) -> str:
    """Return the name of a registration.

    Raises:
        UsageError: it cannot be the name of a file.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"a registration is named by 1 to 64 letters, digits, `.`, `_` and `-`, got "
            f"{shown(name)}; try ppo-against-a2c"
        )
    return name


def registration_of(values: Mapping[str, object]) -> Registration:
    """Return a registration from its values by name, as a file or the options hold them.

    Raises:
        UsageError: a value is missing, unknown or out of range.
    """
    for name in values:
        if name not in KEYS:
            raise UsageError(f"a registration has no `{name}`{did_you_mean(name, KEYS)}")
    given = {name: value for name, value in values.items() if value is not None}
    missing = [name for name in ("question", "hypotheses", "metric", "n") if not given.get(name)]
    if missing:
        raise UsageError(f"a registration needs {' and '.join(f'`{name}`' for name in missing)}")
    looks = _whole(given, "looks", 1, MOST_LOOKS, 1)
    n = _whole(given, "n", 2, MOST_SEEDS, 10)
    if n % looks:
        raise UsageError(
            f"`n` must be a multiple of `looks`, got {n} seeds and {looks} looks; "
            f"try {looks * max(2, round(n / looks))} seeds"
        )
    commands = _commands(given.get("commands", {}))
    if looks > 1 and n // looks < 2:
        raise UsageError(f"each look needs at least 2 seeds of each group, got {n // looks}")
    return Registration(
        question=_text(given, "question"),
        hypotheses=_hypotheses(given["hypotheses"]),
        metric=_text(given, "metric"),
        n=n,
        test=_test(given.get("test", "permutation")),
        alpha=_number(given, "alpha", 0.05, 0.0, 0.5),
        looks=looks,
        window=_whole(given, "window", 1, 100, WINDOW),
        threshold=_number_or_none(given, "threshold"),
        failure_value=_number_or_none(given, "failure_value"),
        first_seed=_whole(given, "first_seed", 0, 2**31 - 1, 0),
        commands=commands,
    )


def values_of(registration: Registration) -> dict[str, Any]:
    """Return the values of a registration by name, as JSON holds them."""
    found = asdict(registration)
    found["hypotheses"] = [one._asdict() for one in registration.hypotheses]
    found["commands"] = dict(registration.commands)
    return found


def canonical(document: Mapping[str, object]) -> bytes:
    """Return the one byte string of a document: JSON with sorted keys, without blanks, in UTF-8."""
    text = json.dumps(
        document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode("utf-8", "replace")


def digest(data: bytes) -> str:
    """Return the SHA-256 of a registration's bytes, as `sha256sum` prints it."""
    return hashlib.sha256(data).hexdigest()


def _text(values: Mapping[str, object], name: str) -> str:
    value = values[name]
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST:
        raise UsageError(f"`{name}` must be a text of at most {_LONGEST} characters")
    return value.strip()


def _whole(values: Mapping[str, object], name: str, least: int, most: int, default: int) -> int:
    value = values.get(name, default)
    if type(value) is not int or not least <= value <= most:
        raise UsageError(
            f"`{name}` must be a whole number from {least} to {most}, got {shown(value)}"
        )
    return value


def _number(
    values: Mapping[str, object],
    name: str,
    default: float,
    least: float = -math.inf,
    most: float = math.inf,
) -> float:
    """Return a number strictly between two bounds."""
    value = values.get(name, default)
    if type(value) not in (int, float) or not least < float(cast("float", value)) < most:
        raise UsageError(f"`{name}` must be a number{_between(least, most)}, got {shown(value)}")
    return float(cast("float", value))


def _number_or_none(values: Mapping[str, object], name: str) -> float | None:
    return _number(values, name, 0.0) if name in values else None


def _between(least: float, most: float) -> str:
    return "" if math.isinf(most) else f" above {least:g} and below {most:g}"


def _test(value: object) -> Test:
    for test in TESTS:
        if test == value:
            return test
    hint = did_you_mean(str(value), TESTS)
    raise UsageError(f"`test` must be {' or '.join(TESTS)}, got {shown(value)}{hint}")


def _hypotheses(value: object) -> tuple[Hypothesis, ...]:
    """Return hypotheses from a list of `{"name": ..., "predicts": ...}`."""
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) > _MOST_LISTED:
        raise UsageError("`hypotheses` must be a list of objects with `name` and `predicts`")
    return tuple(_hypothesis(one) for one in cast("Sequence[object]", value))


def _hypothesis(value: object) -> Hypothesis:
    fields = cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}
    name, predicts = fields.get("name"), fields.get("predicts")
    if not isinstance(name, str) or not isinstance(predicts, str) or not name or not predicts:
        raise UsageError(
            f"a hypothesis needs `name` and `predicts`, got {shown(value)}; "
            "try --hypothesis 'ppo is better=its mean return is higher'"
        )
    return Hypothesis(name.strip(), predicts.strip())


def _commands(value: object) -> dict[str, str]:
    """Return the command of each group; each has the placeholder `{seed}`."""
    if not isinstance(value, Mapping) or len(value) > _MOST_LISTED:
        raise UsageError("`commands` must map the name of a group to its command")
    found: dict[str, str] = {}
    for group, command in cast("Mapping[object, object]", value).items():
        if not isinstance(group, str) or not group or not isinstance(command, str):
            raise UsageError("`commands` must map the name of a group to its command")
        _check_placeholders(group, command)
        found[group] = command
    return found


def _check_placeholders(group: str, command: str) -> None:
    names = _PLACEHOLDER.findall(command)
    if "seed" not in names:
        raise UsageError(
            f"the command of `{group}` needs {{seed}}, or all its seeds would be alike; "
            "try 'python train.py --seed {seed}'"
        )
    for name in names:
        if name not in _PLACEHOLDERS:
            hint = did_you_mean(name, _PLACEHOLDERS)
            raise UsageError(f"the command of `{group}` has {{{name}}}{hint}: expected {{seed}}")
