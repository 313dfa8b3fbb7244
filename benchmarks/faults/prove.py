"""Measure how often the experiments of `backflip doctor --prove` lead to the true cause.

    python benchmarks/faults/prove.py [GLOB ...] [--write]

It takes one seed of each of the first 20 faults that have an effect and a finding, the held-out
ones first, puts the broken algorithm through the probes, and repeats the broken training run with
one change at a time, as `--prove` does. What is measured is kept in `.cache/faults/proofs.json`,
and only missing faults are repeated. `--write` puts the table into docs/faults.md.
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
from backflip.doctor.probe_evidence import failures, weigh_by_probes
from backflip.doctor.probing.outcome import Outcome
from backflip.doctor.probing.own import probe_own
from backflip.doctor.proving import (
    SEEDS,
    OnProgress,
    Probe,
    Repeat,
    Repeated,
    part_of,
    prove,
    weigh,
)
from backflip.training.train import train
from runshelf.errors import UserFacingError

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
            known[name] = _proved(fault, case, found)
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


def _proved(fault: Fault, case: Case, found: Diagnosis) -> dict[str, Any]:
    """Return the places of the true cause, from 0, and what the experiments showed."""
    with tempfile.TemporaryDirectory() as home:
        proof = prove(found, _repetition(fault, case, home), probe=_probe(fault, case))
    by_probes = weigh_by_probes(found.causes, proof.outcomes)
    by_repetitions = weigh(found.causes, proof.trials[1:])
    return {
        "before": _rank(found.causes, fault),
        "after": _rank(proof.causes, fault),
        "after_probes": _rank(by_probes, fault),
        "after_repetitions": _rank(by_repetitions, fault),
        "failed": [name for name, bad in failures(proof.outcomes).items() if bad],
        "helped": [one.cause for one in proof.trials if one.helped],
    }


def _probe(fault: Fault, case: Case) -> Probe:
    """Return a function that probes the broken algorithm, with the settings of the probes."""

    def probe(on_progress: OnProgress) -> list[Outcome]:
        with broken(fault):
            return probe_own(case.algorithm, {}, on_progress)

    return probe


def _repetition(fault: Fault, case: Case, home: str) -> Repeat:
    def repeat(change: Mapping[str, Any], question: str) -> Repeated:
        del question
        settings = {**case.settings, **fault.settings, **change}
        env_steps = part_of(case.env_steps, settings)
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
    places = ("before", "after_probes", "after_repetitions", "after")
    lines = [
        "| fault | before | after probes | after repetitions | after both | failed probes "
        "| changes that helped |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, one in sorted(known.items()):
        cells = [str(one[place] + 1) for place in places]
        cells += [", ".join(one["failed"]), ", ".join(one["helped"])]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    if not known:
        return lines
    first = [np.mean([one[place] == 0 for one in known.values()]) for place in places]
    return [
        f"Of {len(known)} faults, the true cause was first for {first[0]:.0%} before the "
        f"experiments, {first[1]:.0%} after the probes alone, {first[2]:.0%} after the repetitions "
        f"alone, and {first[3]:.0%} after both.",
        "",
        *lines,
    ]


if __name__ == "__main__":
    sys.exit(main())
