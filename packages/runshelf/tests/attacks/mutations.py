"""Seeded mutations of the files of a run: bytes, lines, and the values at every path of JSON."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

# Values that a file can hold and that no reader expects, as JSON text.
HOSTILE = (
    *("null", "true", "0", "-1", "1.5", "[]", "{}", '""', "[null]", '{"a": null}'),
    *("1e400", "-1e400", "NaN", "Infinity", "1e308", "-1e308", "9" * 400, "-" + "9" * 400),
    *(str(2**53 + 1), str(2**63), str(2**64), '"NaN"', '"Infinity"', "9" * 5_000),
    *('"\\ud800"', '"\\u0000"', '"\\u001b[31m\\u202e"', '"<script>x</script>"', '"../../x"'),
    *('"2026-13-45T99:99"', '"9999-12-31T23:59:59.999999-23:59"', '"' + "x" * 70_000 + '"'),
    *("[" * 500 + "]" * 500, '{"a": ' * 500 + "1" + "}" * 500, "[" * 100_000),
    *("[" + "1, " * 3_000 + "1]", "{" + ", ".join(f'"k{n}": {n}' for n in range(3_000)) + "}"),
)

_MARK = "the value that is replaced"


class Mutation(NamedTuple):
    """A changed file, and how it was changed."""

    how: str
    data: bytes


def mutations(data: bytes, name: str, rng: random.Random) -> Iterator[Mutation]:
    """Yield endless mutations of the content of a file."""
    ways: list[Callable[[bytes, random.Random], Mutation]] = [_flip, _cut, _grow]
    if name.endswith((".json", ".jsonl", ".log", ".csv")):
        ways += [_lines, _lines]
    if name.endswith((".json", ".jsonl")):
        ways += [_json_value] * 8
    while True:
        yield rng.choice(ways)(data, rng)


def _flip(data: bytes, rng: random.Random) -> Mutation:
    changed = bytearray(data or b"x")
    for _ in range(rng.choice((1, 1, 3, 30))):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return Mutation("bytes changed", bytes(changed))


def _cut(data: bytes, rng: random.Random) -> Mutation:
    start, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    kept = rng.choice((data[:end], data[start:], data[:start] + data[end:]))
    return Mutation("cut", kept)


def _grow(data: bytes, rng: random.Random) -> Mutation:
    more = rng.choice((b"\0" * 5000, b"\n" * 5000, b"{", b"\xff\xfe", b"[" * 5000, data))
    at = rng.randrange(len(data) + 1)
    return Mutation("bytes added", data[:at] + more + data[at:])


def _lines(data: bytes, rng: random.Random) -> Mutation:
    lines = data.split(b"\n")
    one, other = (rng.randrange(len(lines)) for _ in range(2))
    if rng.random() < 0.5:
        lines[one], lines[other] = lines[other], lines[one]
    else:
        lines[one:one] = [lines[other]] * rng.choice((1, 5))
    return Mutation("lines swapped or repeated", b"\n".join(lines))


def _json_value(data: bytes, rng: random.Random) -> Mutation:
    """Replace one value, in one line or in the whole document, by a hostile one."""
    whole = _parsed(data)
    if whole is not None:
        return Mutation(*_with_hostile(whole, rng))
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    record = _parsed(lines[at])
    if record is None:
        return _flip(data, rng)
    how, lines[at] = _with_hostile(record, rng)
    return Mutation(f"line {at + 1}: {how}", b"\n".join(lines))


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def _with_hostile(value: Any, rng: random.Random) -> tuple[str, bytes]:
    changed = copy.deepcopy(value)
    path = rng.choice(list(_paths(changed, ())))
    hostile = rng.choice(HOSTILE)
    how = f"{'.'.join(map(str, path))} = {hostile[:40]}"
    if not path:
        return how, hostile.encode()
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    if rng.random() < 0.1:
        del holder[path[-1]]
        return f"{'.'.join(map(str, path))} removed", json.dumps(changed).encode()
    holder[path[-1]] = _MARK
    return how, json.dumps(changed).replace(f'"{_MARK}"', hostile).encode()


def _paths(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value; of long lists only of the first values."""
    yield path
    items = value.items() if isinstance(value, dict) else ()
    items = list(enumerate(value))[:3] if isinstance(value, list) else items
    for key, item in items:
        yield from _paths(item, (*path, key))
