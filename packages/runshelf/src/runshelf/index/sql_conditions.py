"""SQL conditions and sort orders for filters, sort keys and columns.

User text is passed as SQL parameters. Only the fixed operators of the parser are inserted into SQL.
Every condition is true or false, never NULL, so that NOT inverts it.
"""

import contextlib
import math
import sqlite3
from datetime import date, datetime, timedelta
from typing import Literal, NamedTuple, final

from runshelf.errors import UsageError, did_you_mean
from runshelf.index.database import folded
from runshelf.index.entry import clean
from runshelf.index.filter_syntax import Term, parse_filter, parse_sort
from runshelf.store.run_ids import SHORT

Kind = Literal["text", "number", "moment", "many", "setting", "metric", "result"]


@final
class Field(NamedTuple):
    """The meaning of a key.

    Attributes:
        kind: the kind of its values.
        column: the SQL expression of the value; of a metric, the column of the statistic.
        number: of a setting or a metric, its number in the index.
    """

    kind: Kind
    column: str
    number: int = 0


NEWEST_FIRST = "-created"
STATISTICS = {"last": "last", "min": "minimum", "max": "maximum", "mean": "mean", "count": "count"}
# The keys that every run has.
OWN = {
    "id": Field("text", "r.ulid"),
    "state": Field("text", "r.state"),
    "command": Field("text", "r.command"),
    "env": Field("text", "r.env"),
    "algorithm": Field("text", "r.algorithm"),
    "name": Field("text", "r.name"),
    "group": Field("text", "r.grouping"),
    "question": Field("text", "r.question"),
    "parent": Field("text", "r.parent"),
    "source": Field("text", "r.source"),
    "tag": Field("many", "r.tags"),
    "seed": Field("many", "r.seeds"),
    "created": Field("moment", "r.created"),
    "seconds": Field("number", "r.seconds"),
    "cost": Field("number", "r.cost"),
    "result": Field(
        "result", "(SELECT last FROM summaries WHERE metric = r.result AND run = r.number)"
    ),
}
_ALIASES = {"tags": "tag", "seeds": "seed", "run": "id", "ulid": "id"}
# Ids of runs, which are equal to their short form.
_IDS = ("r.ulid", "r.parent")
_UNITS = {"s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_MOST_SUGGESTIONS_COMPARED = 2_000


@final
class Sql(NamedTuple):
    """A piece of SQL and its parameters."""

    text: str
    parameters: tuple[object, ...] = ()


@final
class Fields:
    """Looks up keys in one index."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Use the tables of `connection`."""
        self._connection = connection

    def find(self, key: str, position: int = 0) -> Field:
        """Return the field of `key`: a key of every run, else of a configuration, else a metric.

        Args:
            key: the key as it was typed.
            position: its position in the text, for the error message; 0 if there is none.

        Raises:
            UsageError: the key is unknown or ambiguous.
        """
        key = clean(key)
        own = _ALIASES.get(key.casefold(), key.casefold())
        if own in OWN:
            return OWN[own]
        kind, dot, rest = key.partition(".")
        found = self._setting(rest) if kind == "config" and dot else None
        found = found or (self._metric(rest) if kind == "metric" and dot else None)
        found = found or self._setting(key) or self._metric(key)
        if found is None:
            raise UsageError(f"unknown key `{key:.80}`{_at(position)}{self._nearest(key)}")
        return found

    def _setting(self, name: str) -> Field | None:
        found = self._number("keys", name)
        if found is not None:
            return Field("setting", "", found)
        known = self._names("keys") if name else []
        nested = [each for each in known if each.endswith(f".{name}")]
        if len(nested) > 1:
            shown = ", ".join(f"`{each:.80}`" for each in nested[:4])
            raise UsageError(f"`{name:.80}` is the end of {len(nested)} keys: type one of {shown}")
        return self._setting(nested[0]) if nested else None

    def _metric(self, name: str) -> Field | None:
        found = self._number("metrics", name)
        if found is not None:
            return Field("metric", "last", found)
        stem, _, statistic = name.rpartition(".")
        number = self._number("metrics", stem) if statistic in STATISTICS else None
        return None if number is None else Field("metric", STATISTICS[statistic], number)

    def _number(self, table: str, name: str) -> int | None:
        select = f"SELECT number FROM {table} WHERE name = ?"
        found = self._connection.execute(select, (name,)).fetchone()
        return found and found[0]

    def _names(self, table: str) -> list[str]:
        return [name for (name,) in self._connection.execute(f"SELECT name FROM {table}")]

    def _nearest(self, key: str) -> str:
        known = [*OWN, *self._names("keys"), *self._names("metrics")]
        last_parts = [name.rpartition(".")[2] for name in known]
        # Edit distances are slow: compare only names of about the same length.
        near = [n for n in dict.fromkeys([*known, *last_parts]) if abs(len(n) - len(key)) < 8]
        hint = did_you_mean(key[:200], near[:_MOST_SUGGESTIONS_COMPARED])
        return hint or f": known are {', '.join(OWN)}, keys of configurations, and metrics"


def where(fields: Fields, filter: str) -> Sql:
    """Return the condition of a filter over `runs AS r`.

    Raises:
        UsageError: the filter is malformed, a key is unknown, or a value has the wrong kind.
    """
    found = [_condition(fields, term) for term in parse_filter(filter)]
    text = " AND ".join(f"({each.text})" for each in found) or "1"
    return Sql(text, tuple(value for each in found for value in each.parameters))


def _condition(fields: Fields, term: Term) -> Sql:
    term = term._replace(value=clean(term.value), key=clean(term.key))
    if term.operator:
        field = fields.find(term.key, term.position)
        found = _CONDITIONS[field.kind](field, term)
    else:
        found = Sql("instr(r.words, ?) > 0", (folded(term.value),))
    return Sql(f"NOT ({found.text})", found.parameters) if term.negated else found


def _text_condition(field: Field, term: Term) -> Sql:
    if field.column in _IDS and len(term.value) == SHORT and term.operator in ("=", "!="):
        short = Sql(f"substr(COALESCE({field.column}, ''), -{SHORT}) = ?", (term.value.upper(),))
        return short if term.operator == "=" else Sql(f"NOT {short.text}", short.parameters)
    return _text_test(f"COALESCE({field.column}, '')", term)


def _text_test(column: str, term: Term) -> Sql:
    value = folded(term.value)
    if term.operator == "~":
        return Sql(f"instr(folded({column}), ?) > 0", (value,))
    return Sql(f"folded({column}) {term.operator} ?", (value,))


def _number_condition(field: Field, term: Term) -> Sql:
    value = _number_of(term, durations=field.column == "r.seconds")
    return Sql(f"COALESCE({field.column} {term.operator} ?, 0)", (value,))


def _many_condition(field: Field, term: Term) -> Sql:
    """Return the condition that one of the values matches; for `!=`, that no value is equal."""
    negation, term = ("NOT ", term._replace(operator="=")) if term.operator == "!=" else ("", term)
    if field.column == "r.seeds":
        test = Sql(f"j.value {term.operator} ?", (_number_of(term),))
    else:
        test = _text_test("j.value", term)
    exists = f"EXISTS (SELECT 1 FROM json_each({field.column}) j WHERE {test.text})"
    return Sql(negation + exists, test.parameters)


def _moment_condition(field: Field, term: Term) -> Sql:
    """Return a condition on a local time; a date without a time means the whole day."""
    example = "2026-11-21 or 2026-11-21T14:30"
    if term.operator == "~":
        raise _unsuitable(term, "a time", f"{example} after =, < or >")
    try:
        moment = datetime.fromisoformat(term.value)
        first = last = moment.timestamp()
        if _is_day(term.value):
            last = math.nextafter((moment + timedelta(days=1)).timestamp(), -math.inf)
    except (ValueError, OverflowError, OSError) as error:
        raise _unsuitable(term, "a time", example) from error
    if term.operator in ("=", "!="):
        negation = "NOT " if term.operator == "!=" else ""
        return Sql(f"{field.column} {negation}BETWEEN ? AND ?", (first, last))
    bound = last if term.operator in ("<=", ">") else first
    return Sql(f"{field.column} {term.operator} ?", (bound,))


def _is_day(text: str) -> bool:
    """Return whether a moment has no time of day, as `2026-11-21` and `20261121`."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _setting_condition(field: Field, term: Term) -> Sql:
    number, text = read_number(term.value), folded(term.value)
    match term.operator:
        case "~":
            test = Sql("instr(folded(text), ?) > 0", (text,))
        case "=" | "!=":
            equal = "(COALESCE(number = ?, 0) OR folded(text) = ?)"
            test = Sql(equal if term.operator == "=" else f"NOT {equal}", (number, text))
        case operator if number is None:
            test = Sql(f"number IS NULL AND folded(text) {operator} ?", (text,))
        case operator:
            test = Sql(f"number {operator} ?", (number,))
    select = f"SELECT run FROM settings WHERE key = ? AND {test.text}"
    return Sql(f"r.number IN ({select})", (field.number, *test.parameters))


def _metric_condition(field: Field, term: Term) -> Sql:
    """Return a condition on a statistic. The table stores NaN as NULL; here NaN equals NaN."""
    column, operator = field.column, term.operator
    if operator in ("=", "!=") and term.value.casefold() == "nan":
        test = Sql(f"{column} IS {'NOT ' if operator == '!=' else ''}NULL")
    elif operator == "!=":
        test = Sql(f"({column} IS NULL OR {column} <> ?)", (_number_of(term),))
    else:
        test = Sql(f"{column} {operator} ?", (_number_of(term),))
    select = f"SELECT run FROM summaries WHERE metric = ? AND {test.text}"
    return Sql(f"r.number IN ({select})", (field.number, *test.parameters))


_CONDITIONS = {
    "text": _text_condition,
    "number": _number_condition,
    "moment": _moment_condition,
    "many": _many_condition,
    "setting": _setting_condition,
    "metric": _metric_condition,
    "result": _number_condition,
}


def read_number(text: str) -> int | float | None:
    """Return the number that `text` stands for, as SQLite can store it; None if invalid or NaN."""
    with contextlib.suppress(ValueError):
        if abs(whole := int(text)) < 2**63:
            return whole
    with contextlib.suppress(ValueError):
        if not math.isnan(number := float(text)):
            return number
    return None


def _number_of(term: Term, *, durations: bool = False) -> int | float:
    number = read_number(term.value)
    if number is None and durations:
        number = _duration(term.value)
    if number is None or term.operator == "~":
        raise _unsuitable(term, "a number", "one of = != < <= > >= and a number")
    return number


def _duration(text: str) -> float | None:
    """Return the seconds of `90s`, `5min`, `2h` or `1.5d`; None if invalid."""
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    number, unit = read_number(digits), _UNITS.get(text[len(digits) :])
    return None if number is None or unit is None else number * unit


def _unsuitable(term: Term, kind: str, example: str) -> UsageError:
    typed = f"`{term.key:.80}{term.operator}{term.value:.80}`"
    return UsageError(f"{typed}{_at(term.position)}: `{term.key:.80}` is {kind}: type {example}")


def _at(position: int) -> str:
    return f" at character {position}" if position else ""


def ordering(fields: Fields, sort: str, *, grouped: bool = False) -> tuple[Sql, str]:
    """Return the joins of a sort order, and the text after ORDER BY.

    Runs without a value come last in both directions.

    Args:
        fields: the keys of the index.
        sort: keys with commas between, `-` before a key for largest first; newest first if empty.
        grouped: sort groups of runs: by the mean of a metric over the independent samples (with the
            SQL functions `group_n` and `group_mean`), the mean of a setting, the sum of `seconds`
            or `cost`, the latest time, the last text in the alphabet, and by `runs`, their number.

    Raises:
        UsageError: the sort order is malformed, or a key is unknown.
    """
    joins: list[Sql] = []
    terms: list[str] = []
    for count, key in enumerate(parse_sort(sort) or parse_sort(NEWEST_FIRST)):
        direction = "DESC" if key.descending else "ASC"
        if grouped and key.key == "runs":
            terms.append(f"COUNT(*) {direction}")
            continue
        field = fields.find(key.key, key.position)
        join, present, values = _sort_values(field, f"s{count}")
        if grouped and field.kind == "metric":
            of_group = f"({field.number}, '{field.column}', r.grouping)"
            join, present, values = Sql(""), f"group_n{of_group}", [f"group_mean{of_group}"]
        elif grouped and field.kind == "result":
            present, values = "group_result(r.grouping)", ["group_result(r.grouping)"]
        elif grouped:
            present = f"MAX({present})"
            values = [f"{_aggregate(field, value)}({value})" for value in values]
        joins.append(join)
        terms.append(f"{present} IS NULL")
        terms += [f"{value} IS NULL, {value} {direction}" for value in values]
    parameters = tuple(value for join in joins for value in join.parameters)
    return Sql("".join(join.text for join in joins), parameters), ", ".join(terms)


def _sort_values(field: Field, alias: str) -> tuple[Sql, str, list[str]]:
    """Return a join, an expression that is NULL for runs without the key, and the sort values."""
    match field.kind:
        case "text":
            value = f"NULLIF(folded({field.column}), '')"
            return Sql(""), value, [value]
        case "many":
            value = f"json_extract({field.column}, '$[0]')"
            return Sql(""), value, [value]
        case "moment" | "number" | "result":
            return Sql(""), field.column, [field.column]
        case "setting":
            on = f"{alias}.key = ? AND {alias}.run = r.number"
            join = Sql(f" LEFT JOIN settings {alias} ON {on}", (field.number,))
            return join, f"{alias}.text", [f"{alias}.number", f"folded({alias}.text)"]
        case "metric":
            on = f"{alias}.metric = ? AND {alias}.run = r.number"
            join = Sql(f" LEFT JOIN summaries {alias} ON {on}", (field.number,))
            # NaN is NULL in the table: it comes after numbers, before runs without the metric.
            return join, f"{alias}.count", [f"{alias}.{field.column}"]


def _aggregate(field: Field, value: str) -> str:
    if field.kind == "setting" and value.endswith(".number"):
        return "AVG"
    return "SUM" if field.kind == "number" else "MAX"
