"""Hostile values that a program logs or records: named once, and the program goes on."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.attack_figures import Tried

from runshelf.errors import UsageError
from runshelf.received_json import DEEPEST
from runshelf.store.metrics import read_metrics
from runshelf.store.records import LinesWriter, read_lines, to_json
from runshelf.store.run import create_run

pytestmark = pytest.mark.attack

PROGRAM = r"""
import decimal, fractions, itertools, math, runshelf
from collections.abc import Mapping, Sequence

def nested(levels, make):
    found = make(None)
    for _ in range(levels):
        found = make(found)
    return found

class Mute(Exception):
    def __repr__(self): raise self
    __str__ = __float__ = __hash__ = __repr__

class Silent(Mute):
    pass

class Shape:
    shape = property(lambda self: 1 / 0)

class Array:
    def __array__(self, *_, **__): raise RecursionError

class Rows(Mapping):
    def __getitem__(self, key): return 1
    def __len__(self): return 1
    def __iter__(self): raise Mute

class Long(str):
    def __len__(self): return 1

class Endless(Sequence):
    def __len__(self): return 3
    def __getitem__(self, at): return 1.0

class EndlessList(list):
    def __iter__(self): return itertools.count()

class EndlessRow(Mapping):
    def __len__(self): return 3
    def __iter__(self): return map(str, itertools.count())
    def __getitem__(self, key): return 1.0

loop = []
loop.append(loop)
values = [
    nested(900, lambda x: [x]), nested(100_000, lambda x: [x]), nested(100_000, lambda x: {"a": x}),
    loop, Mute(), Shape(), Array(), Long("x" * 100_000), "x" * 100_000, 10**400, 10**5_000,
    -10**5_000, fractions.Fraction(10**400), decimal.Decimal("1e400"), decimal.Decimal("sNaN"),
    [10**400], [Mute()], ["a"], [[1], [1, 2]], b"x", {1, 2}, 1j, None, {1: 2}, {Mute: 1},
    {f"k{n}": n for n in range(60_000)}, math.nan, math.inf, "\ud800", "\0",
    Endless(), [Endless()], EndlessList(), [EndlessList()], EndlessRow(), [loop, loop],
]
loop += [loop, loop]
names = [
    EndlessRow(), Endless(), EndlessList(),
    Mute(), None, 5, [], "", "\0", "\ud800", "x" * 1000, "a\nb", ("a",), math.nan, {1: 2},
    {"\0": 1}, {None: 1}, {"": 1}, {("a",): 1}, Rows(), {n: n for n in range(60_000)},
    {"x" * 1000 + str(n): n for n in range(9_000)}, {f"k{n}": n for n in range(60_000)},
]
for value in values:
    runshelf.log("value", value)
    runshelf.log({"value": value, "good": 1})
    runshelf.log("other", 1, step=value)
    runshelf.log("other", 1, seed=value)
    runshelf.rate("events", value)
    runshelf.image("picture", value)
for name in names:
    runshelf.log(name, 1)
    runshelf.log(name)
    runshelf.rate(name)
    with runshelf.timed(name):
        pass
runshelf.log("other", 1, step=Silent())  # reported outside of a row
runshelf.log("last", 1.0)
print(len(values), len(names))
"""


@pytest.mark.slow
def test_hostile_values_do_not_end_the_program(tmp_path: Path, tried: Tried) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env=os.environ | {"RUNSHELF_HOME": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-500:]
    assert "Traceback" not in done.stderr
    values, names = map(int, done.stdout.split())
    said = [line for line in done.stderr.splitlines() if "not logged" in line]
    assert len(said) == len(set(said))
    assert all(len(line) < 500 for line in said)
    (folder,) = [path for path in (tmp_path / "runs").iterdir() if (path / "run.json").exists()]
    read = read_metrics(folder)
    assert read.torn == 0
    assert sum("good" in record for record in read.records) == values
    assert sum("k59999" in record for record in read.records) == 1
    assert read.records[-1]["last"] == 1.0
    tried(6 * values + 4 * names, "hostile values and names that a program logs")


def nested(levels: int, kind: type) -> Any:
    found: Any = 1
    for _ in range(levels):
        found = [found] if kind is list else {"a": found}
    return found


LOOP: list[Any] = []
LOOP.append(LOOP)
HOSTILE = [
    *(nested(levels, kind) for levels in (DEEPEST + 1, 900, 100_000) for kind in (list, dict)),
    *(LOOP, {1: 2}, b"x", {1, 2}, object()),
]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_what_no_reader_accepts_is_not_recorded(tmp_path: Path, number: int, tried: Tried) -> None:
    with LinesWriter(tmp_path / "x.jsonl") as writer:
        with pytest.raises(UsageError, match="recorded"):
            writer.write({"a": HOSTILE[number]})
        writer.write({"a": nested(DEEPEST - 1, list)})
    assert len(read_lines(tmp_path / "x.jsonl").records) == 1
    with pytest.raises(UsageError, match="recorded"):
        create_run(tmp_path, command="script", config={"a": HOSTILE[number]}, argv=["x"])
    assert not list(tmp_path.glob("runs/*"))
    tried(2, "hostile values that are recorded")


def test_ordinary_values_are_recorded() -> None:
    values = [2**63, -1, float("inf"), 10**300, 10**400, -(10**5_000)]
    assert to_json(values) == [2**63, -1, "Infinity", 10**300, "Infinity", "-Infinity"]
