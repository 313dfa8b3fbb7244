"""Measure the rows of docs/scores again and say which figures no longer hold.

    python benchmarks/measure_rows.py [--rows 'ppo-*' ...] [--seconds 300] [--again]
    python benchmarks/measure_rows.py --write [--keep-times] [--rows 'ppo-*' ...]

Cheap rows come first. A row holds if every seed has the same return, as on the same machine; else
if the mean is within the row's tolerance and all parts of the bar that were met still are. Times
are printed, never compared. Rows that were measured at this commit are skipped, so the program can
be stopped and started again. The exit status is 1 if a row does not hold.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from typing import Any

from backflips import turns_of_run
from rows import ROOT, SCORES, Row, of_scores, read_rows, write_row

CHECKED = ROOT / ".cache" / "measured_rows.json"
UNKNOWN_SECONDS = 600.0  # assumed for a row without a time
NEW, SAME, WITHIN = "new", "same", "within tolerance"  # verdicts of rows that hold


def main() -> int:
    """Measure the chosen rows, print a table, and return the exit status."""
    options = parse(__doc__ or "")
    rows = chosen(read_rows(options.scores), options.rows, options.seconds)
    if not rows:
        sys.exit(f"error: no row can be measured: {' '.join(options.rows)}; rows: docs/scores")
    return run(rows, options)


def run(rows: Mapping[str, Row], options: argparse.Namespace) -> int:
    """Measure rows in their order, print a table, and return the exit status."""
    commit = clean_commit()
    if options.write and commit is None:
        sys.exit("error: --write records a commit, but packages/ has changes: commit them first")
    known = {} if options.again or options.write else checked(commit)
    verdicts: dict[str, str] = {}
    measured = read_rows(options.scores)
    for place, name in enumerate(rows):
        left = sum(cost(row) for row in list(rows.values())[place:]) / 60
        print(f"{place + 1}/{len(rows)} {name}, about {left:.0f} min left ...", flush=True)
        verdicts[name] = known.get(name, "")
        if not verdicts[name]:
            row = with_full(rows[name], measured)
            verdicts[name], measured[name] = measure(name, row, commit, options)
        print(f"    {verdicts[name]}", flush=True)
    print_table(rows, verdicts)
    return int(any(not held(verdict) for verdict in verdicts.values()))


def measure(
    name: str, row: Row, commit: str | None, options: argparse.Namespace
) -> tuple[str, Row]:
    """Measure a row, keep the verdict, with `--write` also the figures; return both."""
    began = time.perf_counter()
    found, now = check(row)
    seconds = round(time.perf_counter() - began, 1)
    if options.write and now is not None:
        kept = now if options.keep_times else replace(now, seconds=seconds, loaded=False)
        write_row(name, replace(kept, commit=commit or "", machine=machine()), options.scores)
    found = f"{found}, {seconds:.0f} s"
    remember(commit, name, found)
    return found, now or row


def with_full(row: Row, measured: Mapping[str, Row]) -> Row:
    """Return a row with the mean that 100 % stands for, if that row was measured."""
    full = measured.get(row.against)
    return row if full is None else replace(row, full=full.mean)


def parse(about: str) -> argparse.Namespace:
    """Return the options of a program that is described as `about`."""
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    parser.add_argument("--rows", nargs="*", default=["*"], metavar="GLOB", help="default: all")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="stop before the sum of recorded times"
    )
    parser.add_argument(
        "--write", action="store_true", help="replace the figures by the new ones, with this commit"
    )
    parser.add_argument(
        "--keep-times", action="store_true", help="leave the recorded times: the cores are shared"
    )
    parser.add_argument("--again", action="store_true", help="measure rows of this commit again")
    parser.add_argument("--scores", type=Path, default=SCORES, help="default: docs/scores")
    return parser.parse_args()


def chosen(rows: Mapping[str, Row], globs: Sequence[str], budget: float) -> dict[str, Row]:
    """Return the rows to measure, cheap ones first, as many as the budget in seconds allows."""
    found = {
        name: row
        for name, row in rows.items()
        if any(fnmatch(name, glob) for glob in globs) and is_measured_here(row)
    }
    cheap_first: dict[str, Row] = {}
    for name, row in sorted(found.items(), key=lambda item: cost(item[1])):
        budget -= cost(row)
        if budget < 0:
            break
        cheap_first[name] = row
    return cheap_first


def is_measured_here(row: Row) -> bool:
    """Return whether this program can measure a row; it counts turns itself."""
    return not row.by_hand or row.unit == "turns"


def cost(row: Row) -> float:
    """Return the expected seconds of a row."""
    return UNKNOWN_SECONDS if row.seconds is None else row.seconds


def check(row: Row) -> tuple[str, Row | None]:
    """Return the verdict on a row, and the row with its new figures; None if its command failed."""
    try:
        now = measured(row)
    except subprocess.CalledProcessError as error:
        return f"FAILED: status {error.returncode}", None
    return verdict(row, now), now


def machine() -> str:
    """Return the machine in words."""
    return f"{platform.machine()}, {os.cpu_count()} cores"


def measured(row: Row) -> Row:
    """Return the row with the returns of a new run of its command, in a temporary home.

    Raises:
        CalledProcessError: the command failed; its messages are on stderr.
    """
    with tempfile.TemporaryDirectory() as home:
        result = output_of([*row.words, "--home", home], row.folder)
        returns = result["score"] if row.unit == "share" else result["returns"]
        if row.unit == "turns":
            returns = turns_of_run(Path(result["folder"]))
    counted = {"seeds": result["seeds"], "env_steps": result["env_steps"]}
    floor = random_return(row) if row.against else None
    of = of_scores(returns)
    return replace(row, labels=result.get("labels"), floor=floor, **counted, **of)


def random_return(row: Row) -> float:
    """Return the mean return of random actions in the environment of a row; 0 of a share."""
    if row.unit == "share":
        return 0.0
    env = row.words[2] if row.words[1] == "teach" else row.words[3]
    given = [f"--env-arg={b}" for a, b in pairwise(row.words) if a == "--env-arg"]
    with tempfile.TemporaryDirectory() as home:
        clip = ["--out", str(Path(home) / "clip.png")]
        look = ["backflip", "look", env, "--episodes", "100", *given, *clip, "--home", home]
        return round(output_of(look, row.folder)["returns"]["mean"], 3)


def output_of(words: Sequence[str], folder: str) -> dict[str, Any]:
    """Return the JSON that a command prints.

    Raises:
        CalledProcessError: the command failed; its messages are on stderr.
    """
    done = subprocess.run(
        [sys.executable, "-m", *words, "--json"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=ROOT / folder,
    )
    return json.loads(done.stdout.splitlines()[-1])


def verdict(then: Row, now: Row) -> str:
    """Return whether the figures of a row hold."""
    if not then.commit:
        missed = f", MISSES the bar ({', '.join(now.missed)})" if now.missed else ""
        return f"{NEW}: {words(now)}{missed}"
    if then.scores and list(then.scores) == list(now.scores):
        return SAME
    lost = [part for part in now.missed if part not in then.missed and part != "seconds"]
    if lost:
        return f"MISSES the bar ({', '.join(lost)}): {words(then)} before, {words(now)} now"
    if abs(now.mean - then.mean) > then.tolerance:
        return f"DIFFERS by more than {then.tolerance:.3g}: {words(then)} before, {words(now)} now"
    return f"{WITHIN}: {words(then)} before, {words(now)} now"


def words(row: Row) -> str:
    """Return mean and worst seed, and the share of the row that it is compared with."""
    share = "" if row.share is None else f", {row.share:.0%} of `{row.against}`"
    return f"{row.mean:.4g} (worst {row.worst:.4g}){share}"


def held(verdict: str) -> bool:
    """Return whether a verdict says that the figures hold."""
    return verdict.startswith((NEW, SAME, WITHIN))


def clean_commit() -> str | None:
    """Return the commit of the code that runs; None if it has changes that are not committed."""
    status = git("status", "--porcelain", "--", "packages", "requirements")
    return None if status else git("rev-parse", "HEAD")


def git(*words: str) -> str:
    """Return the output of git in the repository."""
    command = ["git", *words]
    return subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()


def checked(commit: str | None) -> dict[str, str]:
    """Return the verdicts of rows measured at this commit; none for code with changes."""
    if commit is None or not CHECKED.exists():
        return {}
    saved = json.loads(CHECKED.read_text())
    return saved["verdicts"] if saved["commit"] == commit else {}


def remember(commit: str | None, name: str, verdict: str) -> None:
    """Keep a verdict, so that the next call at this commit skips the row."""
    if commit is not None:
        CHECKED.parent.mkdir(exist_ok=True)
        saved = {"commit": commit, "verdicts": checked(commit) | {name: verdict}}
        CHECKED.write_text(json.dumps(saved, indent=1))


def print_table(rows: Mapping[str, Row], verdicts: Mapping[str, str]) -> None:
    """Print every row's verdict, those that do not hold last."""
    print()
    for name in sorted(rows, key=lambda name: not held(verdicts[name])):
        print(f"{'holds' if held(verdicts[name]) else 'FAILS':6} {name:36} {verdicts[name]}")
    failed = sum(not held(verdict) for verdict in verdicts.values())
    print(f"\n{len(rows) - failed} of {len(rows)} rows hold")


if __name__ == "__main__":
    sys.exit(main())
