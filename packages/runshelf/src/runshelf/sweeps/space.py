"""The search space of a sweep: its parameters, their bounds, and how people write them.

learning_rate=1e-4..1e-2:log        numbers, spread evenly over their logarithm
discount=0.9..0.999                 numbers
hidden=16..256:log                  whole numbers: both bounds are whole
clip_range=0.1..0.3:points=5        five evenly spaced numbers
activation=relu,tanh                a list of choices
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, final

from runshelf.errors import UsageError, shown
from runshelf.snapshot.command_settings import parse_value

Value = int | float | bool | str
Values = Mapping[str, Value]

RESERVED = ("seed", "seeds", "first_seed")
MOST_CONFIGURATIONS = 1_000_000
_DIGITS = 6  # significant digits of drawn numbers: what is shown is what was run
_LARGEST_WHOLE = 2**53  # every smaller whole number is a float, too


@final
@dataclass(frozen=True)
class Range:
    """Numbers between two bounds, both included.

    Attributes:
        low: the lower bound.
        high: the upper bound, above `low`.
        log: whether the logarithm is spread evenly; `low` is then above 0.
        whole: whether the values are whole numbers.
        points: the number of evenly spaced values that a grid tries; None if none was given.
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False
    points: int | None = None

    def at(self, place: float) -> Value:
        """Return the value at a place in [0, 1).

        v = low + u (high - low), or exp(ln low + u (ln high - ln low)) with `log`. Whole numbers
        divide [low, high + 1) instead, rounded down, so that each has the same share without `log`.
        """
        if self.whole:
            top = self.high + 1.0
            value = self._between(place, self.low, top)
            return int(min(max(math.floor(value), self.low), self.high))
        value = self._between(place, self.low, self.high)
        return min(max(float(f"{value:.{_DIGITS}g}"), self.low), self.high)

    def values(self, points: int) -> list[Value]:
        """Return `points` evenly spaced values, with both bounds; whole numbers without repeats."""
        places = [n / (points - 1) for n in range(points)] if points > 1 else [0.5]
        between = [self._between(place, self.low, self.high) for place in places]
        if self.whole:
            return cast("list[Value]", list(dict.fromkeys(round(value) for value in between)))
        return [min(max(float(f"{v:.{_DIGITS}g}"), self.low), self.high) for v in between]

    def _between(self, place: float, low: float, high: float) -> float:
        if not self.log:
            return low + place * (high - low)
        return math.exp(math.log(low) + place * (math.log(high) - math.log(low)))


@final
@dataclass(frozen=True)
class Choice:
    """A list of values.

    Attributes:
        options: the values, all different, at least one.
    """

    options: tuple[Value, ...]

    def at(self, place: float) -> Value:
        """Return the value at a place in [0, 1); each has the same share."""
        return self.options[min(int(place * len(self.options)), len(self.options) - 1)]


Parameter = Range | Choice
Space = Mapping[str, Parameter]


def parse_space(texts: Sequence[str]) -> dict[str, Parameter]:
    """Return the parameters in texts of the form `NAME=SPEC`.

    Raises:
        UsageError: a text is invalid, or a name is given twice.
    """
    space: dict[str, Parameter] = {}
    for text in texts:
        name, equals, spec = text.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(
                f"--over must be NAME=VALUES, got `{text}`; try --over learning_rate=1e-4..1e-2:log"
            )
        if name in RESERVED:
            raise UsageError(f"--over `{name}`: seeds are chosen with --seeds, not searched over")
        if name in space:
            raise UsageError(f"--over `{name}` is given twice; give it once")
        space[name] = _parameter(name, spec)
    return space


def _parameter(name: str, spec: str) -> Parameter:
    bounds, *words = spec.split(":")
    if ".." not in bounds:
        return _choice(name, spec)
    low, _, high = bounds.partition("..")
    found = {"low": _bound(name, low), "high": _bound(name, high)}
    options = _range_options(name, words)
    whole = all(isinstance(value, int) for value in found.values()) and not options.get("real")
    return checked(
        name,
        Range(
            found["low"],
            found["high"],
            log=bool(options.get("log")),
            whole=whole,
            points=options.get("points"),
        ),
    )


def _choice(name: str, spec: str) -> Choice:
    options = tuple(parse_value(text) for text in spec.split(","))
    if "" in options:
        raise UsageError(f"--over `{name}` has an empty value in `{spec}`; try {name}=1,2,3")
    return cast("Choice", checked(name, Choice(options)))


def _bound(name: str, text: str) -> int | float:
    value = parse_value(text.strip())
    if isinstance(value, bool | str) or not math.isfinite(value):
        raise UsageError(
            f"--over `{name}`: bound `{text}` must be a finite number; try {name}=1e-4..1e-2:log"
        )
    return value


def _range_options(name: str, words: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word in words:
        key, _, text = word.partition("=")
        points = parse_value(text) if key == "points" else None
        if word in ("log", "real"):
            found[word] = True
        elif type(points) is int and 2 <= points <= MOST_CONFIGURATIONS:
            found["points"] = points
        else:
            raise UsageError(
                f"--over `{name}`: `:{word}` must be `:log`, `:real` or `:points=N` with N of at "
                f"least 2; try {name}=1e-4..1e-2:log"
            )
    return found


def checked(name: str, parameter: Parameter) -> Parameter:
    """Return a parameter after a check of its bounds.

    Raises:
        UsageError: a bound is invalid.
    """
    if isinstance(parameter, Choice):
        if not parameter.options or len(set(map(repr, parameter.options))) < len(parameter.options):
            raise UsageError(f"--over `{name}` must list different values; try {name}=1,2,3")
        return parameter
    low, high = parameter.low, parameter.high
    if not low < high:
        order = "equal" if low == high else "in the wrong order"
        raise UsageError(
            f"--over `{name}`: the bounds {low:g} and {high:g} are {order}; the first must be "
            "smaller"
        )
    if parameter.log and low <= 0:
        raise UsageError(f"--over `{name}`: the lower bound of `:log` must be above 0, got {low:g}")
    if parameter.whole and max(abs(low), abs(high)) >= _LARGEST_WHOLE:
        raise UsageError(f"--over `{name}`: whole numbers must be smaller than 2^53; try :real")
    return parameter


def to_fields(parameter: Parameter) -> dict[str, Any]:
    """Return a parameter as JSON values."""
    if isinstance(parameter, Choice):
        return {"options": list(parameter.options)}
    fields = {"low": parameter.low, "high": parameter.high, "log": parameter.log}
    fields |= {"whole": parameter.whole}
    return fields | ({"points": parameter.points} if parameter.points else {})


def from_fields(name: str, fields: Mapping[str, Any]) -> Parameter:
    """Return the parameter in JSON values.

    Raises:
        UsageError: the values are invalid.
    """
    try:
        if "options" in fields:
            return checked(name, Choice(tuple(fields["options"])))
        return checked(name, Range(**fields))
    except (TypeError, ValueError):
        raise UsageError(f"parameter `{name}` is invalid: {shown(fields)}") from None


def text_of(value: Value) -> str:
    """Return a value as a person types it in a command line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.12g}"
    return str(value)


def as_text(values: Values) -> str:
    """Return the values of a configuration as one line."""
    return " ".join(f"{name}={text_of(value)}" for name, value in values.items())
