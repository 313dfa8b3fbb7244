"""Measure how often the experiments of `backflip doctor --prove` lead to the true cause.

    python benchmarks/faults/prove.py [GLOB ...] [--write]

It takes one seed of each of the first 20 faults that have an effect and a finding, the held-out
ones first, and repeats the broken training with one change at a time, as `--prove` does. What is
measured is kept in `.cache/faults/proofs.json`, and only missing faults are repeated. `--write`
puts the table into docs/faults.md.
"""

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from typing import Any

import numpy as np
from cases import TUNED, faulty
from effect import has_effect
from fault import Case, Fault, broken
from measure import healthy_name
from store import FOLDER, load
from tables import put

from backflip.doctor.diagnosis import Diagnosis, Ranked, diagnose
from backflip.doctor.proving import PART, SEEDS, Repeat, Repeated, prove
from backflip.training.train import train
from runshelf.errors import UsageError, UserFacingError

SAMPLE = 20
PROOFS = FOLDER / "proofs.json"
FIRST_SEED = 5000


def main() -> int:
    """Repeat what is missing, print the table, and return the exit status."""
    globs = [one for one in sys.argv[1:] if not one.startswith("--")] or ["*"]
    known = json.loads(PROOFS.read_text()) if PROOFS.exists() else {}
    for fault, case, found in _sample():
        name = f"{fault.name}@{case.name}"
        if name not in known and any(fnmatch(name, glob) for glob in globs):
            known[name] = _prove(fault, case, found)
            PROOFS.write_text(json.dumps(known, indent=1) + "\n")
            print(name, known[name], flush=True)
    text = "\n".join(_table(known))
    print(text)
    if "--write" in sys.argv[1:]:
        put({"proofs": text})
    return 0


def _sample() -> Iterator[tuple[Fault, Case, Diagnosis]]:
    pairs = sorted(faulty(), key=lambda pair: (pair[0].family in TUNED, pair[0].name, pair[1].name))
    left = SAMPLE
    for fault, case in pairs:
        path, clean = FOLDER / f"{fault.name}@{case.name}.npz", FOLDER / f"{healthy_name(case)}.npz"
        if not left or not path.exists() or not clean.exists():
            continue
        logs, returns = load(path)
        found = next((one for one in map(diagnose, logs) if one.findings), None)
        if found is not None and has_effect(load(clean)[1], returns):
            left -= 1
            yield fault, case, found


def _prove(fault: Fault, case: Case, found: Diagnosis) -> dict[str, Any]:
    """Return the places of the true cause before and after the experiments, from 0."""
    before = _rank(found.causes, fault)
    with tempfile.TemporaryDirectory() as home:
        try:
            proof = prove(found, _repetition(fault, case, home))
        except UsageError:  # no setting changes a probable cause
            return {"before": before, "after": before, "helped": []}
    helped = [one.cause for one in proof.trials if one.helped]
    return {"before": before, "after": _rank(proof.causes, fault), "helped": helped}


def _repetition(fault: Fault, case: Case, home: str) -> Repeat:
    def repeat(change: Mapping[str, Any], question: str) -> Repeated:
        del question
        settings = {**case.settings, **fault.settings, **change}
        env_steps = max(1, round(case.env_steps * PART))
        with broken(fault):
            try:
                result = train(
                    case.algorithm,
                    case.env,
                    seeds=SEEDS,
                    first_seed=FIRST_SEED,
                    env_steps=env_steps,
                    settings=settings,
                    home=home,
                )
            except UserFacingError as error:
                if "finite" not in str(error):
                    raise
                return Repeated((float("nan"),) * SEEDS, "")
        return Repeated(tuple(map(float, result.returns)), result.run)

    return repeat


def _rank(causes: list[Ranked], fault: Fault) -> int:
    order = [one.cause.id for one in causes]
    return min(order.index(cause) for cause in fault.causes if cause in order)


def _table(known: Mapping[str, Mapping[str, Any]]) -> list[str]:
    lines = ["| fault | cause before | cause after | changes that helped |", "|---|---|---|---|"]
    lines += [
        f"| {name} | {one['before'] + 1} | {one['after'] + 1} | {', '.join(one['helped'])} |"
        for name, one in sorted(known.items())
    ]
    if not known:
        return lines
    first = np.mean([[one["before"] == 0, one["after"] == 0] for one in known.values()], axis=0)
    return [
        f"Of {len(known)} faults, the true cause was first for {first[0]:.0%} before the "
        f"experiments and for {first[1]:.0%} after them.",
        "",
        *lines,
    ]


if __name__ == "__main__":
    sys.exit(main())
