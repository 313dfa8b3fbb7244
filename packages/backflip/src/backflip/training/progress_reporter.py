"""What one sitting tells of itself while it works, and keeps of what it told."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import final

from backflip.algorithms.interface import Algorithm
from backflip.drivers.driver import OnEnvSteps, OnEpisodes
from backflip.drivers.learning import env_steps_after
from backflip.training.clock import Clock
from backflip.training.output_recorder import OutputRecorder
from backflip.training.progress import Pace, Progress, Report
from runshelf.interrupts import check_interrupt

SECONDS_BETWEEN_REPORTS = 2.0  # of what is under way


@final
class ProgressReporter:
    """Reports progress: after every phase, and every few seconds of what takes longer.

    Args:
        report: is told.
        output: keeps notes, and how far the run is after each phase.
        clock: the sitting's.
        seeds: how many learn at once.

    Attributes:
        rate: env steps per second of the newest phase, all seeds together, compiling left out.
        note: goes with the next phase's report; or None.
    """

    def __init__(self, report: Report, output: OutputRecorder, clock: Clock, seeds: int) -> None:
        self._report, self._output, self._clock, self._seeds = report, output, clock, seeds
        self._newest = Progress(0, 0, 0, 0.0, 0.0, {})
        self._phases_here, self._answering_seconds = 0, 0.0
        self.rate = 0.0
        self.note: str | None = None

    def phase_done(
        self,
        phase: int,
        phases: int,
        env_steps: int,
        health: Mapping[str, float],
        answering_seconds: float = 0.0,
    ) -> None:
        """Report that so many phases are done, and answers will take so much longer."""
        self._phases_here, self._answering_seconds = self._phases_here + 1, answering_seconds
        eta = self._clock.trained / self._phases_here * (phases - phase) + answering_seconds
        self._newest = Progress(phase, phases, env_steps, self.rate, eta, health)
        self._keep_and_report(replace(self._newest, note=self.note))
        self.note = None

    def say(self, note: str) -> None:
        """Report something to tell the user at once."""
        self._keep_and_report(replace(self._newest, note=note))

    def wait(self, what: str) -> None:
        """Report what is waited for."""
        check_interrupt()
        self._keep_and_report(replace(self._newest, waiting_for=what))

    def learning(
        self, algorithm: Algorithm, phase: int, phases: int, *, done: int, updates: int
    ) -> OnEnvSteps:
        """Return a function that reports every few seconds how much of a phase is done.

        Args:
            algorithm: what learns.
            phase: phases done before it.
            phases: phases in all.
            done: updates done before it, of each seed.
            updates: updates it will do.
        """
        begun, in_all = env_steps_after(algorithm, done), updates * algorithm.rollout_length
        before = replace(self._newest, phase=phase, phases=phases, env_steps=begun)
        trained, answering = self._clock.trained, self._answering_seconds
        pace = Pace(before, self._seeds, self._phases_here, trained, answering)

        def at(lived: int) -> Progress:
            env_steps = begun + lived * algorithm.num_envs
            return pace.at(lived / in_all, env_steps, self._clock.unbooked)

        tell = self._every_few_seconds(at)
        return lambda lived: None if lived == in_all else tell(lived)

    def acting_at_random(self, what: str, env_steps: int, num_envs: int) -> OnEnvSteps:
        """Return a function that reports every few seconds how many random actions are taken.

        Args:
            what: is done with them.
            env_steps: in all, of all environments.
            num_envs: how many there are.
        """

        def at(lived: int) -> Progress:
            done = f"{lived * num_envs:,} of {env_steps:,} env steps"
            return replace(self._newest, doing=f"{what}: {done}")

        return self._every_few_seconds(at)

    def evaluating(self, episodes: int) -> OnEpisodes:
        """Return a function that reports every few seconds of so many episodes of each seed."""
        in_all = episodes * self._seeds

        def at(ended: int, env_steps: int) -> Progress:
            done = f"{min(ended, in_all):,} of {in_all:,} episodes"  # the last round may have more
            return replace(self._newest, doing=f"evaluating: {done}, {env_steps:,} env steps")

        return self._every_few_seconds(at)

    def _every_few_seconds(self, at: Callable[..., Progress]) -> Callable[..., None]:
        """Return a function that reports what `at` returns of its arguments, when that is due."""
        due = time.perf_counter() + SECONDS_BETWEEN_REPORTS

        def tell(*done: int) -> None:
            nonlocal due
            if time.perf_counter() >= due:
                due = time.perf_counter() + SECONDS_BETWEEN_REPORTS
                self._report(at(*done))

        return tell

    def _keep_and_report(self, progress: Progress) -> None:
        self._output.keep(progress)
        self._report(progress)
