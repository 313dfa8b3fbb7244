"""The figures of README and docs as data: one file for each row, in docs/scores.

A row is one command with the scores of its seeds, the commit that it was measured at, and the bar
that was set before. `figures.py` writes the pages from the rows, and `measure_rows.py` measures
them. The folder is a battery, too: `backflip battery docs/scores` says which rows a change made
better or worse. A new row is a file with `command` and `bar`; `measure_rows.py --rows NAME --write`
adds the rest.
"""

import json
import math
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from runshelf.statistics.intervals import mean_interval

ROOT = Path(__file__).parents[1]
SCORES = ROOT / "docs" / "scores"

SMALLEST_TOLERANCE = 0.01  # of the mean
ONE_SEED_TOLERANCE = 0.1  # of the return: one seed gives no interval


@dataclass(frozen=True)
class Row:
    """One row of figures.

    Attributes:
        command: what was measured, without `--json`.
        commit: the code that was measured; empty for a new row.
        seeds: of the command.
        mean: over the seeds.
        worst: of the seeds.
        margin: half of the 95 % interval of the mean; None for one seed, or if it is not known.
        scores: of each seed, in order; empty if only mean and worst were kept. Mean, worst and
            margin follow from them.
        metric: the metric that `backflip battery` takes as the score; None for the return.
        unit: `return`, `share` of the optimal return, or `turns`, complete backward turns in 1,000
            env steps.
        bar: the required `mean`, `worst`, `all_but_one` seed, and `share` (see there) at least, and
            `seconds` at most; empty if none was set.
        against: the row whose mean is 100 % of `share`; empty if the bar has none.
        full: the mean of that row.
        full_margin: its margin, read from that row; None if it is not known.
        floor: the mean return of random actions, 0 % of `share`.
        folder: where the command is typed, relative to the repository.
        env_steps: of each seed; None if they were not kept.
        labels: of each seed; None for training on the environment's reward.
        seconds: of the whole process; None if unknown. On another machine they differ.
        loaded: other work shared the cores, so `seconds` is an upper bound.
        machine: where it was measured.
        by_hand: the row takes more than this command, so `measure_rows.py` leaves it out.
        note: one remark for the reader.
    """

    command: str
    commit: str = ""
    seeds: Sequence[int] = ()
    mean: float = math.nan
    worst: float = math.nan
    margin: float | None = None
    scores: Sequence[float] = ()
    metric: str | None = None
    unit: str = "return"
    bar: dict[str, float] = field(default_factory=dict[str, float])
    against: str = ""
    full: float | None = None
    full_margin: float | None = None
    floor: float | None = None
    folder: str = ""
    env_steps: int | None = None
    labels: int | None = None
    seconds: float | None = None
    loaded: bool = False
    machine: str = ""
    by_hand: bool = False
    note: str = ""

    @property
    def words(self) -> list[str]:
        """The command in words."""
        return shlex.split(self.command)

    @property
    def tolerance(self) -> float:
        """How far another mean may be off, where the bits of another machine differ."""
        if len(self.seeds) == 1:
            return ONE_SEED_TOLERANCE * abs(self.mean)
        return max(self.margin or 0.0, SMALLEST_TOLERANCE * abs(self.mean))

    @property
    def share(self) -> float | None:
        """(mean - floor) / (full - floor); None without both, or if these are equal."""
        if self.full is None or self.floor is None or self.full == self.floor:
            return None
        return (self.mean - self.floor) / (self.full - self.floor)

    @property
    def share_margin(self) -> float | None:
        """Half of the 95 % interval of the share; None without the margins of both rows.

            √(m² + (share · m_full)²) / (full - floor)

        That is the error of a quotient to first order; the floor is taken as known.
        """
        share = self.share
        if share is None or self.margin is None or self.full_margin is None:
            return None
        assert self.full is not None
        assert self.floor is not None
        size = math.hypot(self.margin, share * self.full_margin)
        return size / abs(self.full - self.floor)

    @property
    def reached(self) -> dict[str, float]:
        """What the parts of a bar ask for at least, as far as it is known."""
        found = {"mean": self.mean, "worst": self.worst}
        if len(self.scores) > 1:
            found["all_but_one"] = sorted(self.scores)[1]
        return found if self.share is None else found | {"share": self.share}

    @property
    def missed(self) -> list[str]:
        """The parts of the bar that are not met; what is not known is not met."""
        reached = self.reached
        asked = {key: least for key, least in self.bar.items() if key != "seconds"}
        low = [key for key, least in asked.items() if not reached.get(key, -math.inf) >= least]
        late = self.seconds is not None and self.seconds > self.bar.get("seconds", np.inf)
        return low + ["seconds"] * late


def of_scores(scores: Sequence[float]) -> dict[str, float | list[float] | None]:
    """Return the fields of a row that follow from the scores of its seeds."""
    found = mean_interval(np.array(scores)[:, None])
    margin = None if len(scores) == 1 else round(float(found.high[0] - found.centre[0]), 3)
    return {
        "scores": [round(x, 3) for x in scores],
        "mean": round(float(np.mean(scores)), 3),
        "worst": round(float(min(scores)), 3),
        "margin": margin,
    }


def read_rows(folder: Path = SCORES) -> dict[str, Row]:
    """Return all rows by name, the name of the file without extension."""
    files = sorted(folder.glob("*.json"))
    rows = {path.stem: _row(json.loads(path.read_text())) for path in files}
    return {name: _beside(row, rows.get(row.against)) for name, row in rows.items()}


def _beside(row: Row, reference: Row | None) -> Row:
    """Return a row with the margin of the row that it is compared with."""
    return row if reference is None else replace(row, full_margin=reference.margin)


def _row(fields: dict[str, Any]) -> Row:
    return Row(**(fields | (of_scores(fields["scores"]) if fields.get("scores") else {})))


def write_row(name: str, row: Row, folder: Path = SCORES) -> None:
    """Write a row; fields that follow from others, or have their default value, are left out."""
    default = asdict(Row(""))
    follow = of_scores(row.scores).keys() - {"scores"} if row.scores else set[str]()
    follow |= {"full_margin"}
    kept = {
        key: value
        for key, value in asdict(row).items()
        if value != default[key] and key not in follow
    }
    (folder / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n")
