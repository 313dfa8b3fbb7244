"""The grammar of filters, and the runs that match them, compared with a slow reference."""

import math
import operator
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from packages.runshelf.tests.index.homes import make_run, ulid

from runshelf.errors import UsageError
from runshelf.index.filter_syntax import LONGEST, Term, parse_filter, parse_sort
from runshelf.index.run_index import Index, open_index


def term(key: str, operator: str, value: str, negated: bool = False, position: int = 1) -> Term:
    return Term(key, operator, value, negated, position)


def word_term(value: str, negated: bool = False, position: int = 1) -> Term:
    return Term("", "", value, negated, position)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        ("  \t\n", []),
        ("ppo", [word_term("ppo")]),
        ("-ppo", [word_term("ppo", negated=True)]),
        ("lr=1e-3", [term("lr", "=", "1e-3")]),
        ("a!=b", [term("a", "!=", "b")]),
        ("a!b", [word_term("a!b")]),
        ("a<=1 b>=2", [term("a", "<=", "1"), term("b", ">=", "2", position=6)]),
        ("a<1", [term("a", "<", "1")]),
        ("-a>1", [term("a", ">", "1", negated=True)]),
        ("a~b=c", [term("a", "~", "b=c")]),
        ("a==b", [term("a", "=", "=b")]),
        ('a="b c"', [term("a", "=", "b c")]),
        ('a=""', [term("a", "=", "")]),
        ('"a b"=c', [term("a b", "=", "c")]),
        ('"a=b"', [word_term("a=b")]),
        (r'a="\"\\x"', [term("a", "=", '"\\x')]),
        ('a=b"c', [term("a", "=", 'b"c')]),
        ("größe~ß", [term("größe", "~", "ß")]),
        (
            "'; DROP runs;--",
            [word_term("';"), word_term("DROP", position=4), word_term("runs;--", position=9)],
        ),
    ],
)  # fmt: skip
def test_terms_of_a_filter(text: str, terms: list[Term]) -> None:
    assert parse_filter(text) == terms


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("=3", "no key before `=` at character 1"),
        ("lr =3", "no key before `=` at character 4"),
        ("lr=", "no value after `lr=` at character 4"),
        ("a lr= 3", "no value after `lr=` at character 6"),
        ("-", "expected a word after `-` at character 2"),
        ('""', "expected a word at character 3"),
        ('a="b', "a quote is not closed at character 3"),
        ('a="b\\', "a quote is not closed at character 3"),
        ('a="b"c', "expected a space at character 6"),
        ('"a"b', "expected a space at character 4"),
        ("a" * (LONGEST + 1), "the filter has 10_001 characters"),
        ("a " * 101, "more than 100 terms"),
    ],
)
def test_errors_in_a_filter_name_the_position(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_filter(text)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 300


def test_sort_orders() -> None:
    assert [key[:2] for key in parse_sort('-created, lr ,-"a,b"')] == [
        ("created", True),
        ("lr", False),
        ("a,b", True),
    ]
    assert parse_sort("") == []
    for text in ("-", ",", "a,,b", '"a" b', "a," * 11 + "a"):
        with pytest.raises(UsageError):
            parse_sort(text)


# The manifests of the runs in the home.
RUNS: list[dict[str, Any]] = [
    {"name": "first", "config": {"lr": 1e-3, "net": {"width": 64}, "on": True}, "seeds": [1, 2],
     "tags": ["keep", "Größe"], "env": "dot", "algorithm": "ppo", "question": "does it learn?"},
    {"config": {"lr": 3e-4, "net": {"width": 256}, "on": False}, "seeds": [3], "env": "CartPole-v1",
     "question": "why \"not\"?"},
    {"config": {"lr": "auto", "note": "two words"}, "tags": ["broken"], "group": "STRASSE"},
    {"config": {"lr": 10**30, "note": "", "hidden": [64, 64]}, "group": "straße", "seeds": [-1]},
    {"config": {"lr": math.inf, "note": "lr=1", "hidden": []}, "name": "e\u0301"},
    {"config": {}, "env": "dot", "parent": ulid(0), "cost_per_hour": 2.0},
]  # fmt: skip
LOSSES: list[list[float]] = [[3.0, 1.0], [2.0], [math.nan], [math.inf, -math.inf], [0.0], []]
METRIC_KEYS = {
    "loss": "last",
    "metric.loss": "last",
    "loss.min": "min",
    "metric.loss.count": "count",
}
SETTING_KEYS = {
    "lr": "lr",
    "config.lr": "lr",
    "width": "net.width",
    "net.width": "net.width",
    "on": "on",
    "note": "note",
    "hidden": "hidden",
}
TEXT_KEYS = ("id", "state", "command", "env", "algorithm", "name", "group", "question", "parent")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    home: Path = tmp_path_factory.mktemp("home")
    for number, fields in enumerate(RUNS):
        config = {k: "Infinity" if v == math.inf else v for k, v in fields["config"].items()}
        make_run(
            home,
            number,
            records=[{"step": n, "loss": word(loss)} for n, loss in enumerate(LOSSES[number])],
            **(fields | {"config": config}),
        )
    with open_index(home) as index:
        assert index.refresh() == []
        yield index


def word(value: float) -> float | str:
    names = {math.inf: "Infinity", -math.inf: "-Infinity"}
    return "NaN" if math.isnan(value) else names.get(value, value)


COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def fold(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def number_of(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return None if math.isnan(value) else value


def holds(term: Term, number: int, groups: list[str]) -> bool:
    """Return whether a term holds for a run, computed in Python from the definition."""
    return holds_unnegated(term, number, groups) != term.negated


def holds_unnegated(term: Term, number: int, groups: list[str]) -> bool:
    run = RUNS[number]
    own: dict[str, str] = {key: run.get(key) or "" for key in TEXT_KEYS}
    own |= {"id": ulid(number), "state": "finished", "command": "run", "group": groups[number]}
    key, value = term.key, term.value
    if not term.operator:
        fields = ["id", "group", "name", "env", "algorithm", "question"]
        return any(
            fold(value) in fold(x) for x in [*(own[f] for f in fields), *run.get("tags", [])]
        )
    if key in TEXT_KEYS:
        return text_holds(term.operator, own[key], value)
    if key == "tag":
        if term.operator == "!=":
            return not any(fold(tag) == fold(value) for tag in run.get("tags", []))
        return any(text_holds(term.operator, tag, value) for tag in run.get("tags", []))
    if key == "seed":
        wanted = number_of(value)
        assert wanted is not None
        if term.operator == "!=":
            return wanted not in run.get("seeds", [])
        return any(COMPARE[term.operator](seed, wanted) for seed in run.get("seeds", []))
    if key in METRIC_KEYS:
        return metric_holds(term, number)
    return setting_holds(term, run["config"])


def text_holds(operator: str, text: str, value: str) -> bool:
    if operator == "~":
        return fold(value) in fold(text)
    return COMPARE[operator](fold(text), fold(value))


def metric_holds(term: Term, number: int) -> bool:
    losses = LOSSES[number]
    if not losses:
        return False
    finite = [loss for loss in losses if not math.isnan(loss)]
    found = {
        "last": losses[-1],
        "min": min(finite, default=math.nan),
        "count": len(losses),
    }[METRIC_KEYS[term.key]]
    if term.value.casefold() == "nan" and term.operator in ("=", "!="):
        return math.isnan(found) == (term.operator == "=")
    wanted = number_of(term.value)
    assert wanted is not None
    return COMPARE[term.operator](found, wanted)


def setting_holds(term: Term, config: dict[str, Any]) -> bool:
    flat = {**config, **{f"net.{key}": value for key, value in config.get("net", {}).items()}}
    name = SETTING_KEYS[term.key]
    if name not in flat:
        return False
    setting = flat[name]
    text = {True: "true", False: "false"}[setting] if isinstance(setting, bool) else str(setting)
    if isinstance(setting, list):
        text = ",".join(map(str, setting))
    wanted = number_of(term.value)
    is_number = isinstance(setting, int | float)
    if term.operator == "~":
        return fold(term.value) in fold(text)
    if term.operator in ("=", "!="):
        equal = fold(text) == fold(term.value) or (
            wanted is not None and is_number and setting == wanted
        )
        return equal == (term.operator == "=")
    if wanted is None:
        return not is_number and COMPARE[term.operator](fold(text), fold(term.value))
    return is_number and COMPARE[term.operator](setting, wanted)


KEYS = [*TEXT_KEYS, "tag", "seed", *METRIC_KEYS, *SETTING_KEYS]
VALUES = st.sampled_from(
    [
        *("1", "0.001", "1e-3", "3", "-1", "64", "64,64", "true", "TRUE", "auto", "dot", "DOT"),
        *(
            "größe",
            "strasse",
            "STRASSE",
            "\u00e9",
            "e",
            "does",
            "inf",
            "nan",
            "NaN",
            "-inf",
            "keep",
        ),
        *("'", '"', "\\", "%", "_", "' OR 1=1 --", ulid(2), "0", "run", "finished", "\ud800", "\0"),
        "1e30",
    ]
) | st.text(max_size=8)


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def term_texts() -> st.SearchStrategy[str]:
    compared = st.builds(
        lambda sign, key, op, value: f"{sign}{quoted(key)}{op}{quoted(value)}",
        st.sampled_from(["", "-"]),
        st.sampled_from(KEYS),
        st.sampled_from([*COMPARE, "~"]),
        VALUES,
    )
    word = VALUES.filter(bool).map(quoted)
    return compared | word | word.map(lambda text: f"-{text}")


@pytest.mark.medium
@given(text=st.lists(term_texts(), min_size=1, max_size=3).map(" ".join))
@example(text="lr<=0.001")
@example(text="-lr=0.001")
@example(text="lr!=0.001")
@example(text="loss=nan")
@example(text="loss!=nan")
@example(text="loss!=1")
@example(text="group=strasse")
@example(text="name~\u00e9")
@example(text="env!=dot")
@example(text="seed!=1")
@example(text="tag!=keep")
@example(text="lr>1000")
@example(text="hidden=64,64")
def test_a_filter_matches_the_runs_for_which_its_terms_hold(index: Index, text: str) -> None:
    groups = [row.group for row in index.runs(sort="id").rows]
    try:
        found = index.runs(text, sort="id")
    except UsageError:  # a text for a numeric key; another test checks the message
        return
    terms = [t._replace(value=clean(t.value), key=clean(t.key)) for t in parse_filter(text)]
    expected = [
        ulid(number)
        for number in range(len(RUNS))
        if all(holds(term, number, groups) for term in terms)
    ]
    assert [row.ulid for row in found.rows] == expected
    assert found.total == len(expected)


def clean(text: str) -> str:
    return text.encode(errors="replace").decode()


def message_of(query: Callable[[], object]) -> str:
    """Return the message of a usage error, if one is raised."""
    try:
        query()
    except UsageError as error:
        return str(error)
    return ""


@pytest.mark.medium
@given(text=st.text(max_size=60) | st.text(alphabet='ab=<>!~" \\-,.1', max_size=30))
def test_any_text_is_valid_or_a_usage_error(index: Index, text: str) -> None:
    for query in (
        lambda: index.runs(text),
        lambda: index.runs(sort=text),
        lambda: index.groups(text),
        lambda: index.groups(sort=text),
        lambda: index.runs(columns=[text]),
    ):
        assert len(message_of(query)) < 600


@pytest.mark.parametrize(
    ("filter", "says"),
    [
        ("lrr=1", "unknown key `lrr` at character 1, did you mean `lr`?"),
        ("dot widht=1", "unknown key `widht` at character 5, did you mean `width`?"),
        ("los>1", "did you mean `loss`?"),
        ("stat=lost", "did you mean `state`?"),
        ("config.nothing=1", "unknown key `config.nothing`"),
        ("loss.median>1", "unknown key `loss.median`"),
        ("loss>small", "`loss>small` at character 1: `loss` is a number"),
        ("seconds>long", "`seconds` is a number"),
        ("loss~1", "`loss` is a number"),
        ("seed=x", "`seed` is a number"),
        ("created>yesterday", "`created` is a time: type 2026-11-21"),
        ("created~2026", "`created` is a time"),
    ],
)
def test_errors_name_the_unknown_key_or_wrong_value(index: Index, filter: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        index.runs(filter)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("filter", "count"),
    [
        ("created=2026-11-21", 6),
        ("created=20261121", 6),
        ("created>20261121", 0),
        ("created=2026-W47-6", 6),
        ("created!=2026-11-21", 0),
        ("created>2026-11-21", 0),
        ("created>=2026-11-21", 6),
        ("created<=2026-11-21", 6),
        ("created<2026-11-21", 0),
        ("created=2026-11-21T10:00:00+00:00", 6),
        ("created>2026-11-21T09:59:59+00:00", 6),
        ("created<2026-11-22", 6),
        ("seconds=3600", 6),
        ("seconds>=1h", 6),
        ("seconds<60min", 0),
        ("seconds>0.5d", 0),
        ("cost=2", 1),
        ("cost!=3", 1),
        ("-cost=2", 5),
        ("seeds=2", 1),
        ("TAGS=keep", 1),
    ],
)
def test_times_durations_and_costs(
    index: Index, monkeypatch: pytest.MonkeyPatch, filter: str, count: int
) -> None:
    assert index.runs(filter).total == count


def test_injected_sql_is_a_value_and_changes_nothing(index: Index) -> None:
    payload = "x'; DROP TABLE runs; --"
    for filter in (quoted(payload), f"name={quoted(payload)}", f"lr={quoted(payload)}"):
        assert index.runs(filter).total == 0
    for key in (payload, 'x"; DROP TABLE runs; --', "1; DELETE FROM runs", "r.ulid", "number"):
        for query in ({"filter": f"{quoted(key)}=1"}, {"sort": quoted(key)}, {"columns": [key]}):
            with pytest.raises(UsageError, match="unknown key"):
                index.runs(**query)
    assert index.runs().total == len(RUNS)


def test_the_longest_filter_is_answered(index: Index) -> None:
    for text in ("a" * LONGEST, "lr<-" + "9" * (LONGEST - 4), "~" * LONGEST, "x" * 90 + " y" * 90):
        assert len(message_of(lambda text=text: index.runs(text))) < 600
