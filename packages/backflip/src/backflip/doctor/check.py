"""What a check is: a number that is measured while training goes on, and a limit for it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, final

from backflip.doctor.log import OF_TEACHING, Log, Values
from runshelf.formatting import number

LOGARITHM = "decimal logarithm of "  # the beginning of a quantity
MOST_POWER = 308.0  # 10 to the power of more is no float
LimitFrom = Literal["identity", "setting", "calibrated", "convention"]
Change = Callable[[Any, Log], Any]  # of the present value of a setting, in the log of the run
Severity = Literal["finding", "warning", "remark"]


@final
class Running(NamedTuple):
    """A number measured at each env step from what was logged until then.

    Attributes:
        x: env steps, ascending.
        value: what was measured; NaN where nothing could be measured yet.
    """

    x: Values
    value: Values


@final
@dataclass(frozen=True, kw_only=True)
class Check:
    """One sign of a broken training run.

    Attributes:
        id: its name in reports, such as `PI-KL-HIGH`.
        title: the finding in a few words.
        quantity: what is measured, in words.
        measure: measures it; None if the log does not have what is needed.
        needs: the signals that are needed, in our names.
        bad_side: which side of the limit is bad.
        limit_from: where the limit comes from. `identity`: a correct program cannot be beyond it.
            `setting`: what the program was told to do, beyond all settings that are known to learn.
            `calibrated`: beyond everything that healthy runs showed. `convention`: the literature.
        explanation: what the finding means, in one sentence.
        causes: ids of causes, each with the probability that the check finds something if this
            cause is at work.
        source: where the sign comes from.
        limit: the limit; None if it is calibrated.
        algorithms: the algorithms that it applies to; empty for all.
        least_margin: the smallest distance of a calibrated limit from the worst healthy value, in
            the unit of what is measured.
        is_pooled: whether one calibrated limit holds for all kinds of runs: what is measured
            depends on the environment, not on the algorithm.
        healthy_share: for a remark, the share of the healthy runs of the calibration that show it;
            None if it was not measured.
        is_conclusive: whether it detects nearly every case of its causes, so that finding nothing
            counts fully against them.
        extreme: the worst value that can be measured; None without a bound. A calibrated limit at
            or beyond it cannot be crossed: then the check is not made.
        from_start: whether it compares with how the training run began. It is not made in a log
            that begins later.
        superseded_by: the ids of checks that say the same with more certainty: if one of them found
            something, this one does not count.
        is_direct: whether it measures a cause itself, not an effect that other causes may have,
            too: then its finding counts in full, as that of an identity does.
        unmeasured: why a log with the signals may have nothing to measure; empty if no one reason
            is usual.
        severity: what it means to be beyond the limit. `finding`: something is wrong. `warning`:
            look at this, healthy runs may show it, too. `remark`: a fact about the task or its
            progress, which counts for the causes and is not a sign of a mistake by itself.
    """

    id: str
    title: str
    quantity: str
    measure: Callable[[Log], Running | None]
    needs: tuple[str, ...]
    bad_side: Literal["above", "below"]
    limit_from: LimitFrom
    explanation: str
    causes: Mapping[str, float]
    source: str
    limit: float | None = None
    algorithms: tuple[str, ...] = ()
    least_margin: float = 0.05
    is_pooled: bool = False
    healthy_share: float | None = None
    is_conclusive: bool = False
    extreme: float | None = None
    from_start: bool = False
    superseded_by: tuple[str, ...] = ()
    is_direct: bool = False
    unmeasured: str = ""
    severity: Severity = "finding"

    @property
    def is_of_logarithms(self) -> bool:
        """Whether it measures decimal logarithms; reports show the numbers themselves."""
        return self.quantity.startswith(LOGARITHM)

    def shown(self, value: float) -> str:
        """Return a measured number in words."""
        if not self.is_of_logarithms:
            return number(value)
        return number(10.0**value if value < MOST_POWER else math.inf)

    @property
    def is_about_teaching(self) -> bool:
        """Whether it looks at a learned reward."""
        return any(name.startswith(OF_TEACHING) for name in self.needs)

    def applies_to(self, log: Log) -> bool:
        """Return whether the check is about the algorithm of a log, or that is unknown."""
        if self.is_about_teaching and not log.teaches:
            return False
        if self.from_start and log.began_at:
            return False
        return not self.algorithms or log.algorithm is None or log.algorithm in self.algorithms


@final
@dataclass(frozen=True)
class Experiment:
    """A short rerun with one change, that tells one cause from others.

    Attributes:
        change: what to change, in words.
        if_cause: what the rerun shows if this is the cause.
        if_not: what it shows otherwise.
        settings: the change as settings of ours, by name. A change that returns the present value
            has nothing to change.
    """

    change: str
    if_cause: str
    if_not: str
    settings: Mapping[str, Change] = field(default_factory=dict[str, Change])


@final
@dataclass(frozen=True, kw_only=True)
class Cause:
    """Something that may be wrong in a training run.

    Attributes:
        id: its name in reports.
        text: the cause as a sentence.
        fix: what to do about it.
        experiment: the next experiment that proves or refutes it.
        prior: its probability before any check, relative to that of the others.
        algorithms: the algorithms in which it can be at work; empty for all.
        is_of_teaching: whether it can only be at work where a reward is learned.
        probes: the probes that fail if it is a mistake in the code of the algorithm, each with the
            probability that it does; empty if only settings, data or the environment can be wrong.
    """

    id: str
    text: str
    fix: str
    experiment: Experiment
    prior: float = 1.0
    algorithms: tuple[str, ...] = ()
    is_of_teaching: bool = False
    probes: Mapping[str, float] = field(default_factory=dict[str, float])

    def is_possible(self, log: Log) -> bool:
        """Return whether it can be at work in a training run, as far as that is known."""
        if self.is_of_teaching and not log.teaches:
            return False
        return not self.algorithms or log.algorithm is None or log.algorithm in self.algorithms
