"""Groups: runs with the same configuration, code and packages, and different seeds.

A group has one sample per seed. A run that repeats a seed is listed as a repeat and not counted, so
that means and intervals are over independent samples. Everything that counts seeds uses `samples`.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, final

from runshelf.index.identity import (
    IMPORT,
    Identity,
    argv_without_seeds,
    has_settings,
    identity_of,
    label_of,
)
from runshelf.index.rows import Repeat, RunRow
from runshelf.store.run import Run

_LONGEST = 60
_DIGITS = 6  # of the hash in a group's name
# A run whose end is known is preferred to an import, and an import to a run that was cut.
_PREFERENCE = {"finished": 0, "imported": 1}


@final
class Sample(NamedTuple):
    """One seed of one run; `seed` is None if the run has none."""

    run: RunRow
    seed: int | None


@final
class Samples(NamedTuple):
    """The independent samples among some runs, newest run first, and the repeats."""

    counted: list[Sample]
    repeats: list[Repeat]

    def seeds_by_run(self) -> dict[str, list[int | None]]:
        """Return the counted seeds of each run that has any, by the run's id."""
        found: dict[str, list[int | None]] = {}
        for run, seed in self.counted:
            found.setdefault(run.ulid, []).append(seed)
        return found


def group_of(manifest: Mapping[str, Any], identity: Identity) -> str:
    """Return the name of a run's group.

    This is the group that the user gave, else the algorithm and environment (or the command line)
    with a hash of six digits of the identity.
    """
    given = manifest.get("group")
    if given:
        return str(given)
    digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()
    return f"{title_of(manifest)} {digest[:_DIGITS]}"


def group_of_run(run: Run) -> str:
    """Return the name of the group of a run."""
    return group_of(run.manifest, identity_of(run.folder, run.manifest))


def title_of(manifest: Mapping[str, Any]) -> str:
    """Return the algorithm and environment, the command line, or the folder of an import."""
    env, algorithm = manifest.get("env"), manifest.get("algorithm")
    if manifest.get("command") == IMPORT:
        named = [algorithm, env] if has_settings(manifest) else []
        return _shortened(" ".join(str(word) for word in named if word) or label_of(manifest))
    if env:
        return f"{algorithm or manifest.get('command')} {env}"
    words = " ".join(argv_without_seeds(manifest))
    return _shortened(words or str(manifest.get("command") or "run"))


def samples(rows: Iterable[RunRow]) -> Samples:
    """Return the independent samples among the runs of a group.

    Each seed counts once: in the newest run that has finished, else in the newest run. Runs without
    seeds count once per folder that they were imported from, and once if all their values are
    identical.
    """
    counted: list[Sample] = []
    repeats: list[Repeat] = []
    taken: dict[tuple[str, object], str] = {}
    newest_first = sorted(rows, key=_age, reverse=True)
    for row in sorted(newest_first, key=_rank):
        for seed in dict.fromkeys(row.seeds) or [None]:
            own = [*_keys_without_seed(row)]
            keys = own if seed is None else [("seed", seed)]
            known = next((key for key in keys if key in taken), None)
            if known:
                repeats.append(Repeat(row.ulid, seed, taken[known], known[0]))
            else:
                counted.append(Sample(row, seed))
                taken |= dict.fromkeys([*keys, *own], row.ulid)
    counted.sort(key=lambda sample: _age(sample.run), reverse=True)
    return Samples(counted, repeats)


def seeds_of_samples(counted: Sequence[Sample]) -> list[int]:
    """Return the seeds of samples, in order."""
    return sorted(sample.seed for sample in counted if sample.seed is not None)


def _age(row: RunRow) -> tuple[float, str]:
    return row.created, row.ulid


def _rank(row: RunRow) -> tuple[bool, int]:
    """Return a key that sorts runs: those with seeds first, then those whose end is known."""
    return not row.seeds, _PREFERENCE.get(row.state, len(_PREFERENCE))


def _keys_without_seed(row: RunRow) -> Iterator[tuple[str, object]]:
    if row.source:
        yield "source", row.source
    if row.content:
        yield "values", row.content


def _shortened(words: str) -> str:
    words = re.sub(r"\s+", " ", words)
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 3]}..."
