"""The result of a block, and the file that holds it. It is written once."""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, final

from runshelf.errors import UserFacingError
from runshelf.received_json import finite, parse_record
from runshelf.recorder.output_reader import read_output, read_part
from runshelf.store.machine_metrics import is_of_machine, may_be_measured
from runshelf.store.opening import read_whole
from runshelf.store.records import from_json, to_line
from runshelf.store.results import result_metric
from runshelf.store.run import Run
from runshelf.store.series import metric_names, read_series
from runshelf.store.summary import summarise
from runshelf.sweeps.blocks import Block, Purpose
from runshelf.sweeps.space import Values

BLOCKS = "blocks"
_DONE = ".done"
_MOST_OUTPUT = 1 << 20  # bytes of output that are searched for a number
_MOST_NAMED = 8


@final
class Measured(NamedTuple):
    """What a run says about its seeds.

    Attributes:
        metric: the metric.
        scores: its last value by seed.
        digests: by seed, a digest of everything that the run measured, except times.
        env_steps: env steps of all seeds together; None if the run does not say.
    """

    metric: str
    scores: Mapping[int, float]
    digests: Mapping[int, str]
    env_steps: int | None = None


@final
class BlockResult(NamedTuple):
    """The result of a block.

    Attributes:
        block: its name.
        purpose: whether it tunes or reports.
        configuration: the number of its configuration.
        values: the values of the configuration.
        first_seed: the first seed.
        seeds: the number of seeds.
        state: how it ended.
        run: the id of its run; empty if none was recorded.
        error: why it failed, in one line; else empty.
        metric: the metric of `scores`; empty if it failed.
        scores: the last value of the metric by seed.
        digests: a digest of all measured values by seed.
        seconds: how long its run took, all sessions together.
        env_steps: env steps of all seeds together, if known.
        worker: who ran it.
    """

    block: str
    purpose: Purpose
    configuration: int
    values: Values
    first_seed: int
    seeds: int
    state: Literal["finished", "failed"]
    run: str = ""
    error: str = ""
    metric: str = ""
    scores: Mapping[int, float] = {}
    digests: Mapping[int, str] = {}
    seconds: float = 0.0
    env_steps: int | None = None
    worker: str = ""

    def score_of(self, seed: int) -> float:
        """Return the score of a seed; NaN if it has none."""
        return self.scores.get(seed, math.nan)


def done_name(block: str) -> str:
    """Return the path of the result of a block within the sweep's folder."""
    return f"{BLOCKS}/{block}{_DONE}"


def to_data(result: BlockResult) -> bytes:
    """Return the content of the file of a result."""
    fields = result._asdict()
    for name in ("scores", "digests"):
        fields[name] = {str(seed): value for seed, value in fields[name].items()}
    return to_line(fields) + b"\n"


def read_results(folder: Path, known: dict[str, BlockResult]) -> dict[str, BlockResult]:
    """Return the results of the blocks in a sweep's folder; only new files are read.

    Args:
        folder: the folder of the sweep.
        known: results that were read before; it is updated.

    Raises:
        UserFacingError: the folder cannot be read.
    """
    names = _names(folder)
    for name in known.keys() - names:
        del known[name]
    for name in sorted(names - known.keys()):
        result = _read(folder, name)
        if result is not None:
            known[name] = result
    return known


def _names(folder: Path) -> set[str]:
    try:
        entries = [entry.name for entry in (folder / BLOCKS).iterdir()]
    except FileNotFoundError:
        return set()
    except OSError as error:
        raise UserFacingError(f"cannot read `{folder / BLOCKS}`: {error.strerror}") from error
    return {name.removesuffix(_DONE) for name in entries if name.endswith(_DONE)}


def _read(folder: Path, name: str) -> BlockResult | None:
    """Return a result; None if its file is damaged, so that the block is run again."""
    try:
        fields = from_json(parse_record(read_whole(folder, done_name(name)) or b""))
        for key in ("scores", "digests"):
            fields[key] = {int(seed): value for seed, value in fields[key].items()}
        return BlockResult(**fields)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def measured(run: Run, block: Block, wanted: str | None) -> Measured:
    """Return what a finished run says about the seeds of its block.

    A run without metrics may print its score: the last `NAME = number` or `NAME: number` counts.

    Args:
        run: the run.
        block: its block.
        wanted: the metric; None for the result of the run.

    Raises:
        UserFacingError: it has no such metric, or no value of some seed.
    """
    metric = wanted or result_metric({n: one.count for n, one in summarise(run.folder).items()})
    logged = metric_names(run.folder)
    if metric is None or metric not in logged:
        return _printed(run, block, wanted, logged)
    series = read_series(run.folder, [metric], "step")[metric]
    scores = {_seed(seed, block): float(one.y[-1]) for seed, one in series.items() if len(one.y)}
    missing = [seed for seed in _seeds(block) if seed not in scores]
    if missing:
        raise UserFacingError(
            f"run `{run.short}` has no `{metric}` of seed {missing[0]}: expected a value of each "
            f"seed from {block.first_seed} to {block.first_seed + block.seeds - 1}"
        )
    kept = {seed: scores[seed] for seed in _seeds(block)}
    return Measured(metric, kept, _digests(run, block, logged), _env_steps(run))


def _seeds(block: Block) -> range:
    return range(block.first_seed, block.first_seed + block.seeds)


def _seed(seed: int | None, block: Block) -> int:
    """Return the seed of a series; a program of one seed need not log it."""
    return block.first_seed if block.seeds == 1 else -1 if seed is None else seed


def _digests(run: Run, block: Block, logged: list[str]) -> dict[int, str]:
    names = [n for n in logged if not is_of_machine(n) and not may_be_measured(n)]
    found = {seed: hashlib.sha256() for seed in _seeds(block)}
    for name, by_seed in read_series(run.folder, names, "step").items():
        for seed, one in by_seed.items():
            if (digest := found.get(_seed(seed, block))) is not None:
                digest.update(name.encode() + one.y.tobytes())
    return {seed: digest.hexdigest()[:32] for seed, digest in found.items()}


def _env_steps(run: Run) -> int | None:
    results = [e["result"] for e in run.events() if isinstance(e.get("result"), dict)]
    each = finite(cast("dict[str, Any]", results[-1]).get("env_steps")) if results else None
    return None if each is None else int(each) * len(run.seeds)


def _printed(run: Run, block: Block, wanted: str | None, logged: list[str]) -> Measured:
    """Return the score that a program printed.

    Raises:
        UserFacingError: it printed none.
    """
    _, size = read_part(run.folder, 0, 0)
    texts = [line.text for line in read_output(run.folder, max(size - _MOST_OUTPUT, 0))]
    pattern = re.compile(
        rf"(?:^|[\s\"'{{,]){re.escape(wanted or '')}[\"']?\s*[:=]\s*"
        r"(-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|-?nan|-?inf)\b",
        re.IGNORECASE,
    )
    numbers = [m for text in texts for m in pattern.findall(text)] if wanted else []
    if not numbers or block.seeds > 1:
        has = ", ".join(logged[:_MOST_NAMED]) or "no metrics at all"
        what = f"no metric `{wanted}`" if wanted else "no metric that could rank it"
        raise UserFacingError(
            f"run `{run.short}` has {what} (it has: {has}); log it with runshelf.log, print a line "
            f"`{wanted or 'score'} = 1.5`, or name another with --metric"
        )
    digest = hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:32]
    seed = block.first_seed
    return Measured(wanted or "", {seed: float(numbers[-1])}, {seed: digest})
