"""Simulate a week of an irregular labeller: how far does training run ahead, and who waits?

    python benchmarks/pace.py

`this rule` is `backflip.labelling.pace` with the schedule of queries of `teach`. People, durations
of phases and the clock are simulated. Two other rules are compared: `lock step` starts a phase when
every query is answered, `never wait` at once; both ask the queries of each round as planned. A
second table has a person who stays and answers a pair every three seconds: in which share of the
time is a pair ready, depending on how long a phase and the drawing of a pair take? Its last two
columns have no queries that come sooner than planned.
"""

import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from backflip.labelling.pace import open_pairs_allowed, pairs_to_stay_busy
from backflip.preferences.schedule import queries_due
from backflip.training.teaching.config import TeachConfig

DAY = 24 * 3600.0
TICK = 0.25  # seconds of simulated time
FRESH_SHARE = TeachConfig.fresh_share
Rule = Callable[[int, int, float, float | None], bool]


def ours(unanswered: int, newest_round: int, seconds: float, per_minute: float | None) -> bool:
    """The rule of `teach`."""
    return unanswered <= open_pairs_allowed(
        newest_round, phase_seconds=seconds, per_minute=per_minute
    )


def lock_step(unanswered: int, newest_round: int, seconds: float, per_minute: float | None) -> bool:
    """Start when every query is answered."""
    del newest_round, seconds, per_minute
    return unanswered == 0


def never_wait(
    unanswered: int, newest_round: int, seconds: float, per_minute: float | None
) -> bool:
    """Start at once."""
    del unanswered, newest_round, seconds, per_minute
    return True


RULES: dict[str, Rule] = {"this rule": ours, "lock step": lock_step, "never wait": never_wait}


def week(rng: random.Random) -> list[tuple[float, float]]:
    """Return the visits (from, to) of a person: a few short ones on most days."""
    visits: list[tuple[float, float]] = []
    for day in range(7):
        if rng.random() < 0.2:
            continue
        for hour in sorted(rng.sample(range(8, 22), rng.randint(1, 4))):
            begin = day * DAY + hour * 3600 + rng.uniform(0, 1800)
            visits.append((begin, begin + rng.uniform(30, 900)))
    return visits


@dataclass
class Simulation:
    """One run of `teach` with simulated people and durations.

    Attributes:
        rule: decides when the next phase may start.
        visits: times at which a person is present, (from, to) in seconds, in order.
        labels: the budget.
        phases: number of phases.
        phase_seconds: duration of a phase.
        answer_seconds: time per answer.
        draw_seconds: time to draw a pair; the pairs of a round come one after the other.
        sooner: queries of the last rounds come sooner, if a person would wait.
    """

    rule: Rule
    visits: Sequence[tuple[float, float]]
    labels: int
    phases: int
    phase_seconds: float
    answer_seconds: float
    draw_seconds: float = 0.0
    sooner: bool = True

    def __post_init__(self) -> None:
        self.plan = queries_due(self.labels, self.phases, 1, FRESH_SHARE)
        self.now, self.done, self.answered = 0.0, 0, 0
        self.open: list[int] = []  # unanswered queries, by round
        self.undrawn: list[float] = []  # when the pairs that are being drawn will be ready
        self._add_round()
        self.busy_until: float | None = None
        self.looked = 0.0  # at the pair on the screen, in seconds
        self.overdue = 0  # phases started while answers of an earlier round were missing
        self.in_a_row = self.most_in_a_row = 0  # phases started since the newest answer
        self.attended = self.person_waited = self.trainer_idle = 0.0

    def run(self) -> "Simulation":
        """Simulate until the last phase is done or the last visit is over."""
        while self.done < self.phases and self.now < self.visits[-1][1] + DAY:
            self._end_phase()
            self._draw()
            self._begin_phase()
            if self._present():
                self._look()
                self.now += TICK
            else:
                self._wait_for_something()
        return self

    def _present(self) -> bool:
        return any(begin <= self.now < end for begin, end in self.visits)

    def _end_phase(self) -> None:
        if self.busy_until is not None and self.now >= self.busy_until:
            self.busy_until, self.done = None, self.done + 1
            if self.done < self.phases:
                self._add_round()

    def _add_round(self) -> None:
        if self.sooner and self.done and self._present():
            self._ask_sooner()
        self.open.append(0)
        count = self.plan.every[self.done]
        self.undrawn = [self.now + self.draw_seconds * (pair + 1) for pair in range(count)]

    def _ask_sooner(self) -> None:
        per_minute = 60.0 / self.answer_seconds if self.answered > 1 else None
        needed = pairs_to_stay_busy(
            phase_seconds=self.phase_seconds, per_minute=per_minute, people=1
        )
        self.plan = self.plan.sooner(self.done, needed - sum(self.open))

    def _draw(self) -> None:
        """Add the pairs that are ready by now."""
        while self.undrawn and self.undrawn[0] <= self.now:
            self.undrawn.pop(0)
            self.open[-1] += 1

    def _begin_phase(self) -> None:
        if self.busy_until is not None or self.undrawn or self.done == self.phases:
            return
        length = self.phase_seconds if self.done else 0.0
        per_minute = 60.0 / self.answer_seconds if self.answered > 1 else None
        is_last = self.done + 1 == self.phases  # every answer is waited for
        newest = 0 if is_last else self.plan.every[self.done]
        if self.rule(sum(self.open), newest, length, per_minute):
            self.overdue += sum(self.open[:-1]) > 0
            self.in_a_row += self._asking()
            self.most_in_a_row = max(self.most_in_a_row, self.in_a_row)
            self.busy_until = self.now + self.phase_seconds

    def _asking(self) -> bool:
        """Return whether there are, or will be, queries to answer."""
        return sum(self.open) > 0 or bool(self.undrawn) or any(self.plan.every[self.done + 1 :])

    def _look(self) -> None:
        """Let the person look at a pair for one tick, if there is a pair."""
        if not self._asking():
            return
        self.attended += TICK
        if not sum(self.open):
            self.person_waited += TICK
            return
        self.trainer_idle += TICK * (self.busy_until is None)
        self.looked += TICK
        if self.looked >= self.answer_seconds:
            oldest = next(i for i, count in enumerate(self.open) if count)
            self.open[oldest] -= 1
            self.answered, self.looked, self.in_a_row = self.answered + 1, 0.0, 0

    def _wait_for_something(self) -> None:
        """Skip the time without a person, up to the next event."""
        coming = [begin for begin, _ in self.visits if begin > self.now]
        ending = [] if self.busy_until is None else [self.busy_until]
        self.now = min([*coming, *ending, *self.undrawn[:1]], default=self.now + DAY)
        self.looked = 0.0


def table(labels: int = 300, phases: int = 20, seed: int = 0) -> list[str]:
    """Return a table of the rules for three durations of a phase."""
    visits = week(random.Random(seed))
    minutes = sum(end - begin for begin, end in visits) / 60
    lines = [
        f"{len(visits)} visits in a week, {minutes:.0f} minutes in all; {labels} labels, "
        f"{phases} phases, 3 s per answer",
        "",
        "| a phase takes | rule | labels | phases | phases started with overdue answers "
        "| phases in a row without an answer | person waits "
        "| trainer idle while a person labels |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for seconds in (1.5, 30.0, 300.0):
        for name, rule in RULES.items():
            sooner = rule is ours
            end = Simulation(rule, visits, labels, phases, seconds, 3.0, sooner=sooner).run()
            waits, idle = (
                x / max(end.attended, TICK) for x in (end.person_waited, end.trainer_idle)
            )
            lines.append(
                f"| {seconds:g} s | {name} | {end.answered} | {end.done} | {end.overdue} | "
                f"{end.most_in_a_row} | {waits:.0%} | {idle:.0%} |"
            )
    return lines


def ready_table(labels: int = 150, phases: int = 20) -> list[str]:
    """Return a table of a person who stays, for durations of a phase and of drawing a pair."""
    lines = [
        f"one person who stays; {labels} labels, {phases} phases, 3 s per answer",
        "",
        "| a phase takes | a pair is drawn in | a pair is ready | time for all labels "
        "| as planned: ready | time |",
        "|---|---|---|---|---|---|",
    ]
    for seconds in (5.0, 10.0, 20.0, 30.0, 40.0, 60.0):
        for draw in (6.0, 0.5):
            cells = [f"{seconds:g} s", f"{draw:g} s"]
            for sooner in (True, False):
                stays = [(0.0, DAY)]
                end = Simulation(ours, stays, labels, phases, seconds, 3.0, draw, sooner).run()
                ready = 1 - end.person_waited / end.attended
                cells += [f"{ready:.0%}", f"{end.attended:.0f} s"]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    sys.stdout.write("\n".join([*table(), "", *ready_table()]) + "\n")
