"""How many more runs? Groups compared at several looks, with one error rate for all of them.

After AdaStop (Mathieu et al. 2023, arXiv:2306.10882): a group-sequential permutation test. All
groups get a batch of runs, the pairs are tested, and only groups with an undecided pair get another
batch. The chance that any pair is called different although both groups are the same is at most
alpha over all pairs and looks together.

Nothing is stored: `decide` replays the looks from the runs so far. A decision taken at a look
depends on the runs of that look and earlier ones alone, so later runs do not change it.
"""

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, final

import numpy as np
from jaxtyping import Bool, Float, Int8

from runshelf.statistics.permutation import all_divisions, scaled

Pair = tuple[str, str]
Decision = Literal["better", "worse", "equal", "undecided"]

ROWS = 10_000
_DIGITS = 9  # of scaled scores; sums of the same runs in another order agree to more


@final
@dataclass(frozen=True)
class SequentialPlan:
    """What is fixed before the first run.

    Attributes:
        looks: K, how many times the groups are tested at most.
        runs_per_look: n, the runs that each group gets for a look.
        alpha: the chance of any false difference, over all pairs and looks.
        failure_value: the score of a run without a finite score. It must be fixed before, because
            a value taken from the runs could change earlier decisions.
        seed: of the permutations.

    Raises:
        ValueError: a number is out of its range.
    """

    looks: int
    runs_per_look: int
    alpha: float = 0.05
    failure_value: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.looks < 1 or self.runs_per_look < 1:
            raise ValueError(
                f"expected at least 1 look of at least 1 run, got {self.looks} looks of "
                f"{self.runs_per_look} runs"
            )
        if not 0.0 < self.alpha < 1.0:
            raise ValueError(f"expected alpha between 0 and 1, got {self.alpha}")
        if self.failure_value is not None and not math.isfinite(self.failure_value):
            raise ValueError(f"expected a finite failure value, got {self.failure_value}")

    @property
    def most_runs(self) -> int:
        """The runs that a group gets if it is never decided."""
        return self.looks * self.runs_per_look

    @property
    def first_decisive_look(self) -> int | None:
        """The first look at which a difference can be found; None if none can.

        Two groups that are as different as possible have p = 2 / C(2n, n)^k at look k, and no
        smaller one than one of the permutations used. That must be allowed at look k.
        """
        n = self.runs_per_look
        rows, divisions = _rows(n), math.comb(2 * n, n)
        for look in range(1, self.looks + 1):
            if max(2.0 * rows / divisions**look, 1.0) <= _allowed(self, look):
                return look
        return None


@final
class SequentialState(NamedTuple):
    """What has been decided, and which runs are needed next.

    Attributes:
        looks_done: the looks whose runs are complete.
        decisions: for each pair whether the first group's mean is better (higher) or worse. "equal"
            means that no difference was found in all looks; it is not a proof of equality.
        decided_at: the look of each decision; no entry for an undecided pair.
        needed: how many further runs each group needs before the next look; empty at the end.
    """

    looks_done: int
    decisions: Mapping[Pair, Decision]
    decided_at: Mapping[Pair, int]
    needed: Mapping[str, int]

    @property
    def finished(self) -> bool:
        """Whether every pair is decided."""
        return "undecided" not in self.decisions.values()


def decide(plan: SequentialPlan, runs: Mapping[str, Float[np.ndarray, " runs"]]) -> SequentialState:
    """Return the decisions after the runs so far.

    The statistic of a pair at look k is |Σ_(i ≤ k) (mean of the first group's batch i - mean of the
    second's)| / s, with s the standard deviation of the runs of both in their first batch. The
    division is not in AdaStop: without it, a pair with a large spread sets the boundary of all, and
    hides differences between quieter groups. The distribution without a difference comes from
    permutations of the two groups' runs inside each batch, independently for each pair.

    The boundary at look k is the smallest number that the largest statistic of all undecided pairs
    exceeds, at this look or an earlier one, in at most k alpha / K of the permutations, less a
    margin where they are drawn. The pair with the largest statistic is decided if it exceeds the
    boundary; then the boundary is computed again without that pair.

    Args:
        plan: what was fixed before the first run.
        runs: the scores of each group in the order of their seeds, which assigns them to looks.
            Runs of a group beyond its last look are ignored.

    Raises:
        ValueError: there are fewer than two groups, or a run failed and the plan has no failure
            value.
    """
    if len(runs) < 2:
        raise ValueError(f"expected at least two groups, got {len(runs)}")
    scores = {name: _without_failures(plan, name, group) for name, group in runs.items()}
    pairs = list(itertools.combinations(scores, 2))
    decisions: dict[Pair, Decision] = dict.fromkeys(pairs, "undecided")
    decided_at: dict[Pair, int] = {}
    looks = 0
    while looks < plan.looks and (undecided := _undecided(decisions)):
        missing = _missing(plan, scores, undecided, looks + 1)
        if missing:
            return SequentialState(looks, decisions, decided_at, missing)
        looks += 1
        found = _found(plan, scores, pairs, undecided, looks)
        decisions |= found
        decided_at |= dict.fromkeys(found, looks)
    for pair in _undecided(decisions):
        decisions[pair], decided_at[pair] = "equal", looks
    return SequentialState(looks, decisions, decided_at, {})


def _undecided(decisions: Mapping[Pair, Decision]) -> list[Pair]:
    """Return the pairs that are not decided yet."""
    return [pair for pair, decision in decisions.items() if decision == "undecided"]


def _groups_of(pairs: Sequence[Pair]) -> list[str]:
    """Return each group of some pairs once, in order."""
    return list(dict.fromkeys(itertools.chain.from_iterable(pairs)))


def _missing(
    plan: SequentialPlan,
    scores: Mapping[str, Float[np.ndarray, " runs"]],
    undecided: Sequence[Pair],
    look: int,
) -> dict[str, int]:
    """Return how many runs each group with an undecided pair lacks for a look."""
    wanted = look * plan.runs_per_look
    groups = _groups_of(undecided)
    return {name: wanted - len(scores[name]) for name in groups if len(scores[name]) < wanted}


def _found(
    plan: SequentialPlan,
    scores: Mapping[str, Float[np.ndarray, " runs"]],
    pairs: Sequence[Pair],
    undecided: Sequence[Pair],
    look: int,
) -> dict[Pair, Decision]:
    """Return the pairs that differ at a look, by stepping down from the largest statistic."""
    shape = look, plan.runs_per_look
    batches = {g: scores[g][: math.prod(shape)].reshape(shape) for g in _groups_of(undecided)}
    sums = np.stack(
        [_permuted_sums(plan, pairs.index(pair), *(batches[g] for g in pair)) for pair in undecided]
    )
    statistics = np.abs(sums)
    left = np.ones(len(undecided), bool)
    found: dict[Pair, Decision] = {}
    while left.any():
        boundary = _boundary(plan, statistics[left].max(axis=0))
        largest = int(np.argmax(np.where(left, statistics[:, look - 1, 0], -1.0)))
        if statistics[largest, look - 1, 0] <= boundary:
            break
        found[undecided[largest]] = "better" if sums[largest, look - 1, 0] > 0 else "worse"
        left[largest] = False
    return found


def _permuted_sums(
    plan: SequentialPlan,
    pair: int,
    first: Float[np.ndarray, "looks runs"],
    second: Float[np.ndarray, "looks runs"],
) -> Float[np.ndarray, "looks rows"]:
    """Return the sum of differences of batch means up to each look; row 0 is the observed one.

    In units of the pair's standard deviation in its first batch that has any spread. Permutations
    inside batches and later runs do not change that unit.
    """
    both = scaled(np.concatenate([first, second], axis=1))
    apart = [
        _signs(plan.seed, pair, look, plan.runs_per_look) @ batch for look, batch in enumerate(both)
    ]
    sums = np.round(np.cumsum(apart, axis=0) / plan.runs_per_look, _DIGITS)
    spread = next((batch.std() for batch in both if np.ptp(batch) > 0), 1.0)
    return sums / spread


@functools.lru_cache(maxsize=128)
def _signs(seed: int, pair: int, look: int, n: int) -> Int8[np.ndarray, "rows both"]:
    """Return which group each run of a batch is put in, +1 the first: permutations of 2n runs.

    Row 0 leaves the runs where they are. If the batch has few divisions, the rows of the first look
    hold each of them equally often, so the test is exact there.
    """
    rng = np.random.default_rng((seed, pair, look))
    rows = _rows(n)
    if look == 0 and _is_enumerated(n):
        divisions = all_divisions(2 * n, n).T
        chosen = np.tile(divisions, (rows // len(divisions), 1))
        order = np.concatenate([[0], 1 + rng.permutation(len(chosen) - 1)])
        signs = np.full((len(chosen), 2 * n), -1, np.int8)
        np.put_along_axis(signs, chosen[order], 1, axis=1)
        return signs
    signs = np.tile(np.repeat(np.array([1, -1], np.int8), n), (rows, 1))
    signs[1:] = rng.permuted(signs[1:], axis=1)
    return signs


def _boundary(plan: SequentialPlan, largest: Float[np.ndarray, "looks rows"]) -> float:
    """Return the boundary at the last look, from the largest statistic of each permutation.

    `_allowed` says how many rows may have exceeded a boundary at this or earlier looks.
    """
    rows = largest.shape[1]
    within: Bool[np.ndarray, " rows"] = np.ones(rows, bool)
    boundary = math.inf
    for look, values in enumerate(largest, start=1):
        left = values[within]
        allowed = _allowed(plan, look) - (rows - len(left))
        at = max(len(left) - 1 - max(allowed, 0), 0)
        boundary = float(np.partition(left, at)[at])
        within &= values <= boundary
    return boundary


def _allowed(plan: SequentialPlan, look: int) -> int:
    """Return how many rows may have exceeded a boundary at this or earlier looks.

    Drawn rows are a sample of all permutations, so the share that exceeds a boundary is uncertain.
    Two standard errors are left as a margin: the level is kept by an unlucky sample, too.
    """
    spent = look * plan.alpha / plan.looks * _rows(plan.runs_per_look)
    exact = look == 1 and _is_enumerated(plan.runs_per_look)
    # The small number keeps a product that should be whole from being rounded down.
    return math.floor((spent if exact else spent - 2.0 * math.sqrt(spent)) + 1e-9)


def _rows(n: int) -> int:
    """Return how many permutations are used: a multiple of the divisions of a batch, if few."""
    divisions = math.comb(2 * n, n)
    return -(-ROWS // divisions) * divisions if _is_enumerated(n) else ROWS


def _is_enumerated(n: int) -> bool:
    """Return whether the first look has every division of a batch."""
    return math.comb(2 * n, n) <= ROWS


def _without_failures(
    plan: SequentialPlan, name: str, group: Float[np.ndarray, " runs"]
) -> Float[np.ndarray, " runs"]:
    """Return a group's scores with the plan's failure value for failed runs."""
    scores = np.asarray(group, float)
    failed = ~np.isfinite(scores)
    if not failed.any():
        return scores
    if plan.failure_value is None:
        raise ValueError(
            f"{name}: {failed.sum()} of {len(scores)} runs have no finite score, and the plan has "
            "no failure value: choose one before the first run"
        )
    return np.where(failed, plan.failure_value, scores)
