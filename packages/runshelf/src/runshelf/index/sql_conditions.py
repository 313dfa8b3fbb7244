"""What the keys of filters, sort orders and columns mean: conditions and orders in SQL.

Everything that a person typed is a parameter of the SQL, never a part of it. Every condition is
true or false, never NULL, so that a negated one is its opposite.
"""

import math
import re
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, final

from runshelf.errors import UsageError, did_you_mean
from runshelf.index.database import folded
from runshelf.index.entry import clean
from runshelf.index.filter_syntax import Term

Kind = Literal["text", "number", "moment", "many", "setting", "metric"]

STATISTICS = {"last": "last", "min": "minimum", "max": "maximum", "mean": "mean", "count": "count"}
# Keys of every run: what they are, and where the table has them.
OWN: dict[str, tuple[Kind, str]] = {
    "id": ("text", "r.ulid"),
    "state": ("text", "r.state"),
    "command": ("text", "r.command"),
    "env": ("text", "r.env"),
    "algorithm": ("text", "r.algorithm"),
    "name": ("text", "r.name"),
    "group": ("text", "r.grouping"),
    "question": ("text", "r.question"),
    "parent": ("text", "r.parent"),
    "tag": ("many", "r.tags"),
    "seed": ("many", "r.seeds"),
    "created": ("moment", "r.created"),
    "seconds": ("number", "r.seconds"),
    "cost": ("number", "r.cost"),
}
_ALIASES = {"tags": "tag", "seeds": "seed", "run": "id", "ulid": "id"}
_COMPARED = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_UNITS = {"s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MOST_COMPARED = 2_000


@final
class Sql(NamedTuple):
    """A piece of SQL and its parameters."""

    text: str
    parameters: tuple[object, ...] = ()


@final
class Field(NamedTuple):
    """What a key means.

    Attributes:
        key: as it was typed.
        kind: what its values are.
        column: where they are: an expression, or of a metric the statistic's column.
        number: of a setting or a metric, its number in the index.
    """

    key: str
    kind: Kind
    column: str
    number: int = 0


@final
class Fields:
    """The keys of one index, looked up as they are needed."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Look in the tables behind `connection`."""
        self._connection = connection

    def find(self, key: str, position: int = 0) -> Field:
        """Return what `key` means: a run's own, else of its configuration, else a metric.

        Args:
            key: as it was typed.
            position: where, for the message; 0 for nowhere.

        Raises:
            UsageError: nothing, or several things.
        """
        key = clean(key)
        own = _ALIASES.get(key.casefold(), key.casefold())
        if own in OWN:
            return Field(key, *OWN[own])
        kind, dot, rest = key.partition(".")
        found = self._setting(rest) if kind == "config" and dot else None
        found = found or (self._metric(rest) if kind == "metric" and dot else None)
        found = found or self._setting(key) or self._metric(key)
        if found is None:
            raise UsageError(f"unknown key `{key:.80}`{_at(position)}{self._nearest(key)}")
        return found._replace(key=key)

    def _setting(self, name: str) -> Field | None:
        found = self._number("keys", name)
        if found is not None:
            return Field(name, "setting", "", found)
        known = self._names("keys") if name else []
        last = [each for each in known if each.endswith(f".{name}")]
        if len(last) > 1:
            shown = ", ".join(f"`{each:.80}`" for each in last[:4])
            raise UsageError(f"`{name:.80}` is the end of {len(last)} keys: type one of {shown}")
        return self._setting(last[0]) if last else None

    def _metric(self, name: str) -> Field | None:
        found = self._number("metrics", name)
        if found is not None:
            return Field(name, "metric", "last", found)
        stem, _, statistic = name.rpartition(".")
        number = self._number("metrics", stem) if statistic in STATISTICS else None
        return None if number is None else Field(name, "metric", STATISTICS[statistic], number)

    def _number(self, table: str, name: str) -> int | None:
        select = f"SELECT number FROM {table} WHERE name = ?"
        found = self._connection.execute(select, (name,)).fetchone()
        return found and found[0]

    def _names(self, table: str) -> list[str]:
        return [name for (name,) in self._connection.execute(f"SELECT name FROM {table}")]

    def _nearest(self, key: str) -> str:
        known = [*OWN, *self._names("keys"), *self._names("metrics")]
        lasts = [name.rpartition(".")[2] for name in known]
        # Edit distances are slow: of very many names, only those of about the same length count.
        near = [name for name in dict.fromkeys([*known, *lasts]) if abs(len(name) - len(key)) < 8]
        hint = did_you_mean(key[:200], near[:_MOST_COMPARED])
        return hint or f": known are {', '.join(OWN)}, keys of configurations, and metrics"


def condition(fields: Fields, term: Term) -> Sql:
    """Return the condition that a term stands for, over `runs AS r`.

    Raises:
        UsageError: its key is unknown, or its value does not suit it.
    """
    term = term._replace(value=clean(term.value), key=clean(term.key))
    found = _condition(fields, term)
    return Sql(f"NOT ({found.text})", found.parameters) if term.negated else found


def joined(conditions: Iterable[Sql]) -> Sql:
    """Return the condition that all of `conditions` hold."""
    found = list(conditions)
    text = " AND ".join(f"({each.text})" for each in found) or "1"
    return Sql(text, tuple(value for each in found for value in each.parameters))


def _condition(fields: Fields, term: Term) -> Sql:
    if not term.operator:
        return Sql("instr(r.words, ?) > 0", (folded(term.value),))
    field = fields.find(term.key, term.position)
    match field.kind:
        case "text":
            return _text_condition(f"COALESCE({field.column}, '')", term)
        case "many":
            return _many_condition(field, term)
        case "moment":
            return _moment_condition(field, term)
        case "number":
            value = _number_of(term, durations=field.column == "r.seconds")
            return Sql(f"COALESCE({field.column} {_COMPARED[term.operator]} ?, 0)", (value,))
        case "setting":
            return _setting_condition(field, term)
        case "metric":
            return _metric_condition(field, term)


def _text_condition(column: str, term: Term) -> Sql:
    value = folded(term.value)
    if term.operator == "~":
        return Sql(f"instr(folded({column}), ?) > 0", (value,))
    return Sql(f"folded({column}) {_COMPARED[term.operator]} ?", (value,))


def _many_condition(field: Field, term: Term) -> Sql:
    """Return that one of several values is so; of `!=`, that none is equal."""
    if term.operator == "!=":
        equal = _many_condition(field, term._replace(operator="="))
        return Sql(f"NOT ({equal.text})", equal.parameters)
    if field.column == "r.seeds":
        inner = Sql(f"j.value {_COMPARED.get(term.operator, '=')} ?", (_number_of(term),))
    else:
        inner = _text_condition("j.value", term)
    return Sql(
        f"EXISTS (SELECT 1 FROM json_each({field.column}) j WHERE {inner.text})", inner.parameters
    )


def _moment_condition(field: Field, term: Term) -> Sql:
    """Return a condition on a time, in this machine's zone; a day is all of it."""
    if term.operator == "~":
        raise _unsuitable(term, "a time", "2026-11-21 or 2026-11-21T14:30 behind =, < or >")
    try:
        begin = datetime.fromisoformat(term.value).timestamp()
        whole_day = _DAY.fullmatch(term.value)
        length = timedelta(days=1) if whole_day else timedelta(0)
        end = (datetime.fromisoformat(term.value) + length).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise _unsuitable(term, "a time", "2026-11-21 or 2026-11-21T14:30") from error
    inside = f"({field.column} = ? OR ({field.column} >= ? AND {field.column} < ?))"
    match term.operator:
        case "=":
            return Sql(inside, (begin, begin, end))
        case "!=":
            return Sql(f"NOT {inside}", (begin, begin, end))
        case ">" if whole_day:
            return Sql(f"{field.column} >= ?", (end,))
        case "<=" if whole_day:
            return Sql(f"{field.column} < ?", (end,))
        case operator:
            return Sql(f"{field.column} {operator} ?", (begin,))


def _setting_condition(field: Field, term: Term) -> Sql:
    number, text = read_number(term.value), folded(term.value)
    match term.operator:
        case "~":
            inner = Sql("instr(folded(text), ?) > 0", (text,))
        case "=" | "!=" if number is None:
            inner = Sql(f"folded(text) {_COMPARED[term.operator]} ?", (text,))
        case "=" | "!=":
            equal = "(COALESCE(number = ?, 0) OR folded(text) = ?)"
            inner = Sql(equal if term.operator == "=" else f"NOT {equal}", (number, text))
        case operator if number is None:
            inner = Sql(f"number IS NULL AND folded(text) {operator} ?", (text,))
        case operator:
            inner = Sql(f"number {operator} ?", (number,))
    select = f"SELECT run FROM settings WHERE key = ? AND {inner.text}"
    return Sql(f"r.number IN ({select})", (field.number, *inner.parameters))


def _metric_condition(field: Field, term: Term) -> Sql:
    """Return a condition on a statistic; NULL in the table stands for NaN, which equals itself."""
    select = "r.number IN (SELECT run FROM summaries WHERE metric = ? AND "
    column, operator = field.column, term.operator
    if operator in ("=", "!=") and term.value.casefold() == "nan":
        null = f"{column} IS {'NOT ' if operator == '!=' else ''}NULL"
        return Sql(f"{select}{null})", (field.number,))
    value = _number_of(term)
    test = f"({column} IS NULL OR {column} <> ?)" if operator == "!=" else f"{column} {operator} ?"
    return Sql(f"{select}{test})", (field.number, value))


def read_number(text: str) -> int | float | None:
    """Return the number that `text` is, such as SQLite can hold; None if it is not a number."""
    try:
        whole = int(text)
        return whole if abs(whole) < 2**63 else float(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) else number


def _number_of(term: Term, *, durations: bool = False) -> int | float:
    number = read_number(term.value)
    if number is None and durations:
        number = _duration(term.value)
    if number is None or term.operator == "~":
        raise _unsuitable(term, "a number", "one of = != < <= > >= and a number")
    return number


def _duration(text: str) -> float | None:
    """Return the seconds of `90s`, `5min`, `2h` or `1.5d`."""
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    number, unit = read_number(digits), _UNITS.get(text[len(digits) :])
    return None if number is None or unit is None else number * unit


def _unsuitable(term: Term, kind: str, example: str) -> UsageError:
    said = f"`{term.key:.80}{term.operator}{term.value:.80}`"
    return UsageError(f"{said}{_at(term.position)}: `{term.key:.80}` is {kind}: type {example}")


def _at(position: int) -> str:
    return f" at character {position}" if position else ""


@final
class Order(NamedTuple):
    """How to sort: joins, and what stands behind ORDER BY."""

    joins: Sql
    terms: Sequence[str]


def order(field: Field, alias: str, *, descending: bool, grouped: bool = False) -> Order:
    """Return how to sort by a key; runs without it come last, either way.

    Args:
        field: what the key means.
        alias: a name for its table, not used otherwise.
        descending: largest first.
        grouped: over groups of runs: by the mean of a metric or a setting, the sum of seconds and
            costs, the latest time, the last in the alphabet.
    """
    way = "DESC" if descending else "ASC"
    joins, present, values = _order_values(field, alias)
    if grouped:
        present = f"MAX({present})"
        values = [f"{_aggregate(field, value)}({value})" for value in values]
    terms = [f"{present} IS NULL", *(t for v in values for t in (f"{v} IS NULL", f"{v} {way}"))]
    return Order(joins, terms)


def _order_values(field: Field, alias: str) -> tuple[Sql, str, list[str]]:
    """Return a join, what is NULL where a run lacks the key, and what to sort by."""
    match field.kind:
        case "text":
            value = f"NULLIF(folded({field.column}), '')"
            return Sql(""), value, [value]
        case "many":
            value = f"json_extract({field.column}, '$[0]')"
            return Sql(""), value, [value]
        case "moment" | "number":
            return Sql(""), field.column, [field.column]
        case "setting":
            on = f"{alias}.key = ? AND {alias}.run = r.number"
            join = Sql(f" LEFT JOIN settings {alias} ON {on}", (field.number,))
            return join, f"{alias}.text", [f"{alias}.number", f"folded({alias}.text)"]
        case "metric":
            on = f"{alias}.metric = ? AND {alias}.run = r.number"
            join = Sql(f" LEFT JOIN summaries {alias} ON {on}", (field.number,))
            # NaN is NULL in the table: it comes behind numbers, and before runs without the metric.
            return join, f"{alias}.count", [f"{alias}.{field.column}"]


def _aggregate(field: Field, value: str) -> str:
    if field.kind == "metric" or (field.kind == "setting" and value.endswith(".number")):
        return "AVG"
    return "SUM" if field.kind == "number" else "MAX"
