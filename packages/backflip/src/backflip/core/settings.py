"""Settings: dataclass fields with bounds in their annotations, and one check for all of them.

A setting is one field of a frozen dataclass, for example

    gae_lambda: Annotated[float, Bounds(0, 1)] = 0.95

The annotation gives the type and the bounds; a `Literal` gives the choices. `resolve` turns values
from the user into the dataclass. This module imports neither JAX nor NumPy, so that the command
line starts fast.
"""

import dataclasses
import math
import typing
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from numbers import Integral, Real
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, cast

from runshelf.errors import UsageError, did_you_mean, shown
from runshelf.received_json import is_finite

LARGEST_COUNT = 2_000_000_000  # JAX's default integers have 32 bits
LARGEST = 1e10  # its square, and sums of many squares, fit into a float32
WIDEST = 65_536  # units of a hidden layer: the weights between two such layers need 16 GiB


class Bounds(NamedTuple):
    """The valid range of a number, or of every number of a tuple.

    Attributes:
        low: the smallest valid value.
        high: the largest valid value.
        above: `low` itself is not valid.
    """

    low: float
    high: float = math.inf
    above: bool = False

    def holds(self, value: Any) -> bool:
        """Return whether a number is in the range."""
        enough = value > self.low if self.above else value >= self.low
        return bool(enough and value <= self.high)

    def __str__(self) -> str:
        """Return the range in words that follow "must"."""
        low, high = _written(self.low), _written(self.high)
        if math.isinf(self.high):
            return f"be {'above' if self.above else 'at least'} {low}"
        if self.above:
            return f"be above {low} and at most {high}"
        return f"lie between {low} and {high}"


class Choices(NamedTuple):
    """The valid texts of a setting.

    Attributes:
        names: the texts.
        own: how a user's own code is named, as in `module:function`; empty if it has no place.
    """

    names: tuple[str, ...]
    own: str = ""


Count = Annotated[int, Bounds(1, LARGEST_COUNT)]
CountOrZero = Annotated[int, Bounds(0, LARGEST_COUNT)]
Fraction = Annotated[float, Bounds(0, 1)]
PositiveFraction = Annotated[float, Bounds(0, 1, above=True)]
Positive = Annotated[float, Bounds(0, LARGEST, above=True)]
NonNegative = Annotated[float, Bounds(0, LARGEST)]
Unbounded = Annotated[float, Bounds(-LARGEST, LARGEST)]
LearningRate = Annotated[float, Bounds(0, 10)]  # at 0 nothing is learned
LogStd = Annotated[float, Bounds(-20, 10)]  # outside, σ is not a float32
Widths = Annotated[tuple[int, ...], Bounds(1, WIDEST)]

C = TypeVar("C")


class Names(NamedTuple):
    """Other names of settings that users may type.

    Attributes:
        renamed: former name -> present name.
        aliases: name in other libraries -> present names; the first one that exists is suggested.
        conversions: name in other libraries -> how its value differs from that of the present name.
    """

    renamed: Mapping[str, str] = {}
    aliases: Mapping[str, tuple[str, ...]] = {}
    conversions: Mapping[str, str] = {}


@dataclasses.dataclass(frozen=True)
class Setting:
    """One field of a settings dataclass.

    Attributes:
        name: the field's name.
        kind: `bool`, `int`, `float`, `str` or `tuple`.
        default: the field's default.
        bounds: the valid range of numbers; None without one.
        choices: the valid texts of a `Literal` or of `Choices`; empty for other annotations.
        own: how a user's own code is named instead of one of the choices; empty if it may not be.
    """

    name: str
    kind: type[Any]
    default: Any
    bounds: Bounds | None
    choices: tuple[str, ...]
    own: str = ""

    def problem(self, value: Any) -> str | None:
        """Return what is wrong with a value, or None if it is valid."""
        if not self._has_type(value):
            return f"`{self.name}` must be {self._expected()}, got {shown(value)}"
        if self.kind in (int, float) and self.bounds and not self.bounds.holds(value):
            return f"`{self.name}` must {self.bounds}, got {shown(value)}"
        return None

    def typed(self, value: Any) -> Any:
        """Return a valid value with the type of the field."""
        return _parts(value) if self.kind is tuple else self.kind(value)

    def _expected(self) -> str:
        if self.choices:
            return " or ".join([*self.choices, *([self.own] if self.own else [])])
        if self.kind is tuple:
            bounds = self.bounds or Bounds(-math.inf)
            low, high = _written(bounds.low), _written(bounds.high)
            return f"whole numbers, at least {low} and at most {high}, or none"
        words: dict[type[Any], str] = {bool: "true or false", int: "a whole number", str: "text"}
        return words.get(self.kind, "a finite number")

    def _has_type(self, value: Any) -> bool:
        if self.choices:
            known = isinstance(value, str) and value in self.choices
            return known or (bool(self.own) and isinstance(value, str) and ":" in value)
        if self.kind is tuple:
            return all(map(self._is_part, _parts(value)))
        if self.kind in (bool, str):
            return isinstance(value, self.kind)
        if isinstance(value, bool):
            return False
        if self.kind is int:
            return isinstance(value, Integral)
        return isinstance(value, Real) and is_finite(cast("float", value))

    def _is_part(self, part: Any) -> bool:
        whole = not isinstance(part, bool) and isinstance(part, Integral)
        return whole and (self.bounds is None or self.bounds.holds(part))


@cache
def settings_of(kind: type[Any]) -> dict[str, Setting]:
    """Return the settings of a dataclass by name, read from its annotations and defaults.

    Raises:
        TypeError: a field has an unsupported annotation.
    """
    hints = typing.get_type_hints(kind, include_extras=True)
    return {
        field.name: _setting(field.name, hints[field.name], field.default)
        for field in dataclasses.fields(kind)
    }


def resolve(kind: type[C], values: Mapping[str, Any], names: Names | None = None) -> C:
    """Return a settings dataclass with the given values over its defaults.

    Args:
        kind: the dataclass.
        values: by name, as a user typed them or as read from JSON.
        names: other names that a user may have typed.

    Raises:
        UsageError: unknown names, wrong types or values out of bounds; the message has all
            problems.
    """
    known = settings_of(kind)
    problems = name_problems(values, known, names)
    problems += value_problems(kind, values)
    if problems:
        raise UsageError(f"settings: {'; '.join(problems)}")
    return kind(**{name: known[name].typed(value) for name, value in values.items()})


def refuse_names(what: str, values: object) -> None:
    """Refuse what does not have texts as names, as only Python programs can give it.

    Raises:
        UsageError: an argument is not a mapping, or a name is not text.
    """
    if not isinstance(values, Mapping):
        raise UsageError(f"`{what}` must be a mapping of names to values, got {shown(values)}")
    names = cast("Mapping[object, Any]", values)
    odd = next((name for name in names if not isinstance(name, str)), None)
    if odd is not None:
        raise UsageError(f"names in `{what}` must be text, got {shown(odd)}")


def value_problems(kind: type[Any], values: Mapping[str, Any]) -> list[str]:
    """Return the problems with values by type and bounds; unknown names are ignored."""
    known = settings_of(kind)
    found = (known[name].problem(value) for name, value in values.items() if name in known)
    return [problem for problem in found if problem is not None]


def name_problems(
    values: Mapping[str, Any], known: Collection[str], names: Names | None = None
) -> list[str]:
    """Return the problems with names of settings: renamed and unknown ones."""
    names = names or Names()
    strange = {name: value for name, value in values.items() if name not in known}
    renamed = {name: new for name, new in names.renamed.items() if name in strange and new in known}
    problems = [
        f"`{name}` is now called `{new}`; try --set {new}={_typed(strange[name])}"
        for name, new in renamed.items()
    ]
    unknown = [f"`{name}`{meant(name, known, names)}" for name in strange if name not in renamed]
    if unknown:
        problems.append(f"unknown settings {', '.join(unknown)} (known: {', '.join(known)})")
    return problems


def meant(name: str, known: Iterable[str], names: Names) -> str:
    """Return `, did you mean `x`?`: an alias, else, for a name of no library, the spelling."""
    folded = name.casefold()
    if folded not in names.aliases:
        return did_you_mean(name, known)
    same = [alias for alias in names.aliases[folded] if alias in known]
    note = f" ({names.conversions[folded]})" if folded in names.conversions else ""
    return f", did you mean `{same[0]}`{note}?" if same else ""


def _setting(name: str, hint: Any, default: Any) -> Setting:
    bounds = None
    if typing.get_origin(hint) is Annotated:
        hint, *notes = typing.get_args(hint)
        given = next((note for note in notes if isinstance(note, Choices)), None)
        if given is not None:
            return Setting(name, str, default, None, given.names, given.own)
        bounds = next((note for note in notes if isinstance(note, Bounds)), None)
    if typing.get_origin(hint) is Literal:
        return Setting(name, str, default, bounds, typing.get_args(hint))
    kind = typing.get_origin(hint) or hint
    if kind not in (bool, int, float, str, tuple):
        raise TypeError(f"setting `{name}` has the annotation {hint}, which cannot be checked")
    return Setting(name, kind, default, bounds, ())


def _parts(value: Any) -> tuple[Any, ...]:
    """Return the parts of a tuple. The command line gives hidden=64 as 64, and `none` for ()."""
    if isinstance(value, list | tuple):
        return tuple(value)
    return () if value == "none" else (value,)


def _typed(value: Any) -> str:
    """Return a value as a user types it after --set NAME=."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _written(number: int | float) -> str:
    """Return whole numbers in full, other numbers in their shortest form."""
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"
