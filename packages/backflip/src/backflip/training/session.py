"""One session of a run: the work of one process, with its metrics, checkpoints and result.

`run.json` is written before the first step. After each phase its metrics are appended, then
`checkpoint.safetensors` (the full state) and `policy.safetensors` (the policy) are replaced. A
policy is kept after each tenth of the updates, as `policy-<tenths>.safetensors`. A run that is
killed and resumed continues from its last checkpoint and computes the same bits as an
uninterrupted run.
"""

import dataclasses
import json
import signal
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from numbers import Integral
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, final

import numpy as np

from backflip.core.checkpoint import CHECKPOINT, has_checkpoint, save_arrays
from backflip.core.errors import EnvironmentFailed
from backflip.core.paths import name_on_command_line
from backflip.core.trees import flatten, unflatten
from backflip.drivers.driver import Driver, Evaluation, Learner, OnUpdate, Phase
from backflip.drivers.learning import env_steps_after
from backflip.preferences.kept_labels import KeptLabels
from backflip.preferences.teachers import TeacherFailed
from backflip.training import runtime
from backflip.training.build import Built
from backflip.training.clock import Clock
from backflip.training.health import health_of, refuse_nonfinite
from backflip.training.invocation import Invocation
from backflip.training.output_recorder import OutputRecorder, captured
from backflip.training.parents import CONTINUES
from backflip.training.planning import cut_episodes_warning
from backflip.training.policy import KEPT_POLICIES, POLICY, policy_file
from backflip.training.progress import Progress, Report
from backflip.training.progress_reporter import ProgressReporter
from backflip.training.replay_rows import trimmed, whole
from backflip.training.result import Result
from backflip.training.saved_state import checkpoint_metadata, load_checkpoint
from backflip.training.spec_json import spec_to_json
from runshelf.errors import Ended, Interrupted, UsageError, shown
from runshelf.interrupts import Terminated, interruptible
from runshelf.learning_curve import write_curve
from runshelf.received_json import finite
from runshelf.registrations.carrying import registered_info
from runshelf.store.metrics import MetricsWriter
from runshelf.store.records import to_json
from runshelf.store.run import Run, RunWriter, create_run, resume_run
from runshelf.store.summary import write_summary

LARGEST_KEPT_POLICY = 10_000_000  # bytes


class Restored(NamedTuple):
    """A restored checkpoint.

    Attributes:
        state: the saved state, or the initial state if nothing was saved.
        phases: finished phases.
        extra: the JSON values saved with the state.
        begun: something was saved, by an earlier session or by a parent.
    """

    state: Any
    phases: int
    extra: Mapping[str, Any]
    begun: bool


@final
class Session:
    """A session of a new or resumed run; a context manager.

    Ctrl-C, SIGTERM and SIGHUP inside the block become `Interrupted`, whose message says how to
    resume.

    Args:
        writer: the run, locked.
        report: the progress callback, called after every phase and every few seconds outside JAX.
        began: `time.perf_counter()` when the session began.

    Attributes:
        writer: the run, locked.
        run: the run.
        clock: the session's clock.
        reporter: the progress reporter.
    """

    def __init__(self, writer: RunWriter, report: Report | None, began: float) -> None:
        self.writer = writer
        self.run = writer.run
        self.clock = Clock(began)
        self._output = OutputRecorder(writer.run)
        self.reporter = ProgressReporter(
            report or _ignore_progress,
            self._output,
            writer.folder,
            self.clock,
            len(writer.run.seeds),
        )
        self._metrics = MetricsWriter(writer.folder, "train")
        self._env_steps = 0  # of each seed, after the last logged phase
        self._warned_of_cuts = False
        self._signals = ExitStack()

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.writer.folder

    def restore(self, state: Any) -> Restored:
        """Return the run's newest readable checkpoint, in the structure of `state`.

        Raises:
            UsageError: the configuration differs from that of the checkpoint.
            DamagedFile: no checkpoint of this run can be read.
        """
        if not has_checkpoint(self.folder / CHECKPOINT):
            return Restored(state, 0, {}, begun=False)
        saved = load_checkpoint(self.run)
        self.reporter.note = saved.note
        self.clock.resume_from(saved.seconds)
        arrays = whole(saved.arrays, flatten(state))
        return Restored(unflatten(state, arrays), saved.phases, saved.extra, begun=True)

    def log_phase(
        self,
        built: Built,
        phase: Phase,
        learners: Learner,
        *,
        done: int,
        updates: int,
        learns_own_reward: bool,
        extra: Mapping[str, Any] | None = None,
    ) -> Mapping[str, float]:
        """Append the metrics of a phase; return the newest values for the health line.

        Args:
            built: driver and settings.
            phase: the results of the phase.
            learners: the learners after the phase.
            done: updates of each seed before the phase.
            updates: updates of each seed in the phase.
            learns_own_reward: the algorithm trains on the environment's own reward.
            extra: values for every record of the phase.

        Raises:
            EnvironmentFailed: an environment in JAX returned a number that is not finite.
            UserFacingError: learning produced a number that is not finite.
        """
        metrics = {name: np.asarray(values) for name, values in phase.metrics.items()}
        seconds = self.clock.book("train")
        algorithm, records = built.driver.algorithm, next(iter(metrics.values())).shape[1]
        env_steps = env_steps_after(algorithm, done + updates) - env_steps_after(algorithm, done)
        common = {
            "env_steps_per_second": len(self.run.seeds) * env_steps / max(seconds, 1e-9),
            "memory_mib": runtime.peak_memory_mib(),
            **(extra or {}),
        }
        total = self.clock.seconds["total"]
        self.reporter.rate = common["env_steps_per_second"]
        self._env_steps = env_steps_after(algorithm, done + updates)
        numbers = [done + min((place + 1) * phase.every, updates) for place in range(records)]
        for place, number in enumerate(numbers):
            where = {"updates": number, "env_steps": env_steps_after(algorithm, number)}
            for row, seed in enumerate(self.run.seeds):
                record = {"seed": seed, **where, "seconds": total}
                record |= {name: values[row, place].item() for name, values in metrics.items()}
                self._metrics.write(record | common)
        refuse_nonfinite(
            self.run,
            metrics,
            learners,
            numbers,
            learns_own_reward=learns_own_reward,
            checked=built.driver.checks_env_steps,
        )
        warning = cut_episodes_warning(built.driver, phase, updates)
        if warning and not self._warned_of_cuts:
            self._warned_of_cuts = True
            self.reporter.say(warning)
        return health_of(metrics)

    def save(
        self,
        built: Built,
        state: Any,
        learners: Learner,
        *,
        phases: int,
        extra: Mapping[str, Any] | None = None,
        labels: KeptLabels | None = None,
    ) -> None:
        """Replace the checkpoint and the policy after `phases` phases.

        Args:
            built: driver and settings.
            state: the full state.
            learners: the part of it whose policy is saved.
            phases: finished phases.
            extra: JSON values to save with the state.
            labels: the labels of a run of `teach`.
        """
        self._metrics.sync()
        self.clock.book("train")
        metadata = checkpoint_metadata(
            self.run,
            phases=phases,
            seconds=self.clock.seconds,
            extra=extra or {},
            labels=labels,
        )
        save_arrays(self.folder / CHECKPOINT, trimmed(flatten(state)), metadata)
        part = built.driver.algorithm.policy(learners.algorithm)
        self._save_policy(POLICY, built, flatten(part), self._env_steps)

    def policy_keeper(self, built: Built, *, done: int) -> OnUpdate:
        """Return a callback of a phase that keeps the policy after each tenth of the updates.

        Args:
            built: driver and settings.
            done: updates of each seed before the phase.
        """

        def tenths(updates: int) -> int:
            return KEPT_POLICIES * updates // built.config.updates

        kept = tenths(done)

        def keep(updates: int, state: Any) -> None:
            nonlocal kept
            if tenths(done + updates) == kept:
                return
            kept = tenths(done + updates)
            arrays = flatten(built.driver.algorithm.policy(state))
            if sum(array.nbytes for array in arrays.values()) <= LARGEST_KEPT_POLICY:
                env_steps = env_steps_after(built.driver.algorithm, done + updates)
                self._save_policy(policy_file(kept), built, arrays, env_steps)

        return keep

    def _save_policy(
        self, name: str, built: Built, arrays: Mapping[str, np.ndarray], env_steps: int
    ) -> None:
        """Write the policies of all seeds to the file `name`."""
        about = {
            "spec": spec_to_json(built.driver.spec),
            "algorithm": built.driver.algorithm.name,
            "settings": self.run.config["settings"],
            "seeds": self.run.seeds,
            "env_steps": env_steps,
        }
        save_arrays(self.folder / name, arrays, {"about": json.dumps(to_json(about))})

    def finish(
        self,
        evaluation: Evaluation,
        *,
        updates: int,
        env_steps: int,
        labels: int | None = None,
        teacher: str | None = None,
        reward_alarm: Mapping[str, Any] | None = None,
        careless: Mapping[str, str] | None = None,
        reward_measures: Mapping[str, Any] | None = None,
    ) -> Result:
        """Record the evaluation, mark the run as finished, and return the result."""
        self.clock.book("evaluate")
        optimum = evaluation.optimum.mean(1)
        result = Result(
            folder=self.folder,
            run=self.run.ulid,
            env=self.run.manifest["env"],
            algorithm=self.run.manifest["algorithm"],
            seeds=self.run.seeds,
            env_steps=env_steps,
            labels=labels,
            teacher=teacher,
            reward_alarm=reward_alarm,
            careless=careless,
            reward_measures=reward_measures,
            **_own_share(self.run, env_steps, labels),
            returns=evaluation.returns.mean(1).tolist(),
            cut_episodes=int(evaluation.cut.sum()) or None,
            optimum=None if np.isnan(optimum).any() else optimum.tolist(),
            seconds={name: round(value, 3) for name, value in self.clock.seconds.items()},
        )
        best = None if result.optimum is None else float(np.mean(result.optimum))
        write_curve(self.folder, title=f"{self.run.manifest['command']} {result.env}", optimum=best)
        self._log_evaluation(result, updates)
        self._output.write(result.summary())
        write_summary(self.folder)
        seconds = self._unrecorded_seconds(result.seconds["total"])
        self.writer.record("finished", result=result.to_json(), seconds=seconds)
        return result

    def _unrecorded_seconds(self, total: float) -> float:
        """Return the seconds of this session, and of earlier ones that were killed.

        Sessions that were not killed have recorded theirs.
        """
        recorded = (finite(event.get("seconds")) for event in self.run.events())
        return round(max(total - sum(filter(None, recorded)), self.clock.session), 3)

    def _log_evaluation(self, result: Result, updates: int) -> None:
        """Append the evaluation metrics of each seed.

        After a kill before the end is recorded, they are appended again. Readers know by `updates`
        that they are the same measurement.
        """
        with MetricsWriter(self.folder, "evaluation") as metrics:
            for row, seed in enumerate(result.seeds):
                record: dict[str, float] = {"seed": seed, "updates": updates}
                record["env_steps"] = result.env_steps
                record["evaluation_return"] = result.returns[row]
                if result.optimum is not None:
                    record["evaluation_optimum"] = result.optimum[row]
                score = None if result.score is None else result.score[row]
                if score is not None:
                    record["evaluation_score"] = score
                metrics.write(record)

    def __enter__(self) -> "Session":
        """Return the session."""
        self._signals.enter_context(interruptible(signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Record the end of the session; convert Ctrl-C to `Interrupted`.

        If code of the user failed, the command that continues the run is printed.
        """
        resume = f"backflip resume {name_on_command_line(self.run)}"
        if isinstance(error, TeacherFailed | EnvironmentFailed):
            self.reporter.say(f"once the error below is fixed, continue with: {resume}")
        self._metrics.close()
        self._output.close()
        self.writer.__exit__(kind, error, trace)
        self._signals.close()
        if isinstance(error, KeyboardInterrupt):
            saved = has_checkpoint(self.folder / CHECKPOINT)
            kept = "all finished phases are saved" if saved else "no phase was finished"
            stopped = Ended if isinstance(error, Terminated) else Interrupted
            raise stopped(f"interrupted ({kept}); resume with: {resume}") from None


def _own_share(run: Run, env_steps: int, labels: int | None) -> dict[str, Any]:
    """Return the fields of a result that only a run with a parent has."""
    before = run.config.get(CONTINUES)
    if not before:
        return {}
    own = {"parent": run.manifest["parent"], "own_env_steps": env_steps - before["env_steps"]}
    return own if labels is None else own | {"own_labels": labels - before["labels"]}


def begin_session(
    place: runtime.Place,
    invocation: Invocation,
    *,
    command: str,
    env: str,
    algorithm: str,
    config: Mapping[str, Any],
    seeds: Sequence[int],
    parent: str | None = None,
    inherit: Callable[[Run], None] | None = None,
) -> Session:
    """Create the run's folder and return its first session.

    Args:
        place: the folders of the run.
        invocation: how the run was called.
        command: `train` or `teach`.
        env: the environment's id.
        algorithm: the algorithm's name.
        config: the resolved configuration; its `settings` are the algorithm's.
        seeds: the seeds, in order.
        parent: the id of the run that this run carries on, if any.
        inherit: writes files into the folder before it is a run, such as those of a parent.
    """
    show = invocation.report or _ignore_progress
    nothing_done = Progress(0, 0, 0, 0.0, 0.0, {})

    def say(note: str) -> None:
        show(dataclasses.replace(nothing_done, note=note))

    info = registered_info(place.home, invocation.info)
    kept = captured(place.home, place.cwd, invocation.argv, info, say)
    about: dict[str, Any] = {
        "command": command,
        "env": env,
        "algorithm": algorithm,
        "config": config,
    }

    def capture(folder: Path, cwd: Path) -> Mapping[str, Any]:
        if inherit is not None:
            manifest = json.dumps(to_json({"run": folder.name, "seeds": list(seeds), **about}))
            inherit(Run(folder, json.loads(manifest)))
        return kept.keep(folder, cwd)

    writer = create_run(
        place.home,
        **about,
        seeds=seeds,
        argv=kept.argv,
        cwd=place.cwd,
        info=dataclasses.replace(kept.info, parent=kept.info.parent or parent),
        capture=capture,
    )
    with closed_on_error(writer):
        return Session(writer, invocation.report, invocation.began)


def resume_session(run: Run, report: Report | None, began: float) -> Session:
    """Return a new session of a saved run."""
    writer = resume_run(dataclasses.replace(run, folder=run.folder.absolute()))
    with closed_on_error(writer):
        return Session(writer, report, began)


def seeds_from(first_seed: int, seeds: int) -> list[int]:
    """Return `seeds` consecutive seeds.

    Raises:
        UsageError: `seeds` is below 1, or a seed is out of range.
    """
    if isinstance(seeds, bool) or not isinstance(seeds, Integral) or seeds < 1:
        raise UsageError(f"`seeds` must be at least 1, got {shown(seeds)}; try --seeds 10")
    if not isinstance(first_seed, Integral) or first_seed < 0 or first_seed + seeds > 2**31:
        raise UsageError(
            f"seeds must lie between 0 and {2**31 - 1}, got {shown(seeds)} seeds from "
            f"{shown(first_seed)} on; try --seed 0"
        )
    return list(range(first_seed, first_seed + seeds))


@contextmanager
def closed_on_error(resource: Driver | RunWriter) -> Generator[None, None, None]:
    """Close a resource if the block raises."""
    try:
        yield
    except BaseException:
        resource.close()
        raise


def _ignore_progress(progress: Progress) -> None:
    del progress
