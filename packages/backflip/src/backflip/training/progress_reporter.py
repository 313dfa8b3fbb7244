"""Reports the progress of a session to the progress callback and to the output recorder."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import final

from backflip.algorithms.interface import Algorithm
from backflip.drivers.driver import OnEnvSteps, OnEpisodes
from backflip.drivers.learning import env_steps_after
from backflip.training.clock import Clock
from backflip.training.output_recorder import OutputRecorder
from backflip.training.progress import Pace, Progress, Report
from runshelf.interrupts import check_interrupt

SECONDS_BETWEEN_REPORTS = 2.0  # within a phase


@final
class ProgressReporter:
    """Reports progress after every phase, and every few seconds within longer activities.

    Args:
        report: the progress callback.
        output: records notes, and the progress after each phase.
        folder: the run's folder.
        clock: the session's clock.
        seeds: the number of seeds.

    Attributes:
        rate: env steps per second of the newest phase, all seeds together, without compiling.
        note: a note for the next phase's report, or None.
    """

    def __init__(
        self, report: Report, output: OutputRecorder, folder: Path, clock: Clock, seeds: int
    ) -> None:
        self._report, self._output, self._folder = report, output, folder
        self._clock, self._seeds = clock, seeds
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
        """Report that `phase` phases are done and answers will take `answering_seconds` more."""
        self._phases_here, self._answering_seconds = self._phases_here + 1, answering_seconds
        eta = self._clock.trained / self._phases_here * (phases - phase) + answering_seconds
        self._newest = Progress(
            phase, phases, env_steps, self.rate, eta, health, folder=self._folder
        )
        self._record_and_report(replace(self._newest, note=self.note))
        self.note = None

    def say(self, note: str) -> None:
        """Report a note to the user."""
        self._record_and_report(replace(self._newest, note=note))

    def wait(self, what: str) -> None:
        """Report what training waits for."""
        check_interrupt()
        self._record_and_report(replace(self._newest, waiting_for=what))

    def learning(
        self, algorithm: Algorithm, phase: int, phases: int, *, done: int, updates: int
    ) -> OnEnvSteps:
        """Return a callback that reports the progress within a phase every few seconds.

        Args:
            algorithm: the algorithm.
            phase: phases finished before this one.
            phases: all phases.
            done: updates of each seed before this phase.
            updates: updates of each seed in this phase.
        """
        begun, in_all = env_steps_after(algorithm, done), updates * algorithm.rollout_length
        before = replace(self._newest, phase=phase, phases=phases, env_steps=begun)
        trained, answering = self._clock.trained, self._answering_seconds
        pace = Pace(before, self._seeds, self._phases_here, trained, answering)

        def at(steps: int) -> Progress:
            env_steps = begun + steps * algorithm.num_envs
            return pace.at(steps / in_all, env_steps, self._clock.unbooked)

        report = self._every_few_seconds(at)
        return lambda steps: None if steps == in_all else report(steps)

    def acting_at_random(self, what: str, env_steps: int, num_envs: int) -> OnEnvSteps:
        """Return a callback that reports the number of random actions every few seconds.

        Args:
            what: the activity.
            env_steps: total env steps of all environments.
            num_envs: the number of environments.
        """

        def at(steps: int) -> Progress:
            done = f"{steps * num_envs:,} of {env_steps:,} env steps"
            return replace(self._newest, doing=f"{what}: {done}")

        return self._every_few_seconds(at)

    def evaluating(self, episodes: int, longest: int) -> OnEpisodes:
        """Report that an evaluation begins; return a callback that reports its progress.

        Compiling or making environments may take many seconds before the first env step.

        Args:
            episodes: of each seed.
            longest: the most env steps of an episode.
        """
        in_all = episodes * self._seeds

        def at(ended: int, env_steps: int) -> Progress:
            done = f"{ended:,} of {in_all:,} episodes"
            steps = f"{env_steps:,} of at most {in_all * longest:,} env steps"
            return replace(self._newest, doing=f"evaluating: {done}, {steps}")

        self._report(at(0, 0))
        return self._every_few_seconds(at)

    def _every_few_seconds(self, at: Callable[..., Progress]) -> Callable[..., None]:
        """Return a callback that reports `at(...)` at most every few seconds."""
        due = time.perf_counter() + SECONDS_BETWEEN_REPORTS

        def report(*done: int) -> None:
            nonlocal due
            if time.perf_counter() >= due:
                due = time.perf_counter() + SECONDS_BETWEEN_REPORTS
                self._report(at(*done))

        return report

    def _record_and_report(self, progress: Progress) -> None:
        self._output.record(progress)
        self._report(progress)
