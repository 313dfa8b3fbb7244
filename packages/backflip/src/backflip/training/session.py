"""One sitting at a run: its folder, metrics, checkpoints, and how it may end.

`run.json` is there before the first step. After each phase its metrics are appended, then
`checkpoint.safetensors` (everything) and `policy.safetensors` (what acting needs) are replaced;
about ten of the latter are kept, as `policy-<phases>.safetensors`. A run killed at any moment goes
on from its last checkpoint and ends as if it had never been killed.
"""

import dataclasses
import json
import shlex
import signal
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, final

import numpy as np

from backflip.core.checkpoint import has_checkpoint, load_arrays, save_arrays
from backflip.core.trees import flatten, unflatten
from backflip.drivers.driver import Evaluation, Learner, Phase
from backflip.drivers.learning import env_steps_after
from backflip.training import runtime
from backflip.training.build import Built
from backflip.training.clock import Clock
from backflip.training.fingerprint import differences, fingerprint, resolved
from backflip.training.health import health_of, refuse_nonfinite
from backflip.training.output_recorder import OutputRecorder, captured
from backflip.training.planning import cut_episodes_warning
from backflip.training.policy import POLICY, policy_file
from backflip.training.progress import Progress, Report
from backflip.training.progress_reporter import ProgressReporter
from backflip.training.replay_rows import trimmed, whole
from backflip.training.result import Result
from backflip.training.spec_json import spec_to_json
from runshelf.errors import DamagedFile, Ended, Interrupted, UsageError
from runshelf.interrupts import Terminated, interruptible
from runshelf.learning_curve import write_curve
from runshelf.store.files import write_whole
from runshelf.store.metrics import MetricsWriter
from runshelf.store.records import from_json, to_json
from runshelf.store.run import Run, RunInfo, RunWriter, create_run, resume_run
from runshelf.store.summary import write_summary

CHECKPOINT = "checkpoint.safetensors"
KEPT_POLICIES = 10  # about, of a run, beside the last one
LARGEST_KEPT_POLICY = 10_000_000  # bytes


class Restored(NamedTuple):
    """Where a run stands.

    Attributes:
        state: what was last saved, or what was offered if nothing was.
        phases: phases done.
        extra: the JSON values saved beside the state.
    """

    state: Any
    phases: int
    extra: Mapping[str, Any]


@final
class Session:
    """Carries out a new or a resumed run; a context manager.

    Ctrl-C and SIGTERM inside the block become `Interrupted`, which says how to resume.

    Args:
        writer: the run, locked.
        report: told of progress after every phase, and outside JAX every few seconds of one.
        began: `time.perf_counter()` when the work for this run began.

    Attributes:
        writer: the run, locked.
        run: what it is.
        clock: what its time is spent on.
        reporter: what reports progress.
    """

    def __init__(self, writer: RunWriter, report: Report | None, began: float) -> None:
        self.writer = writer
        self.run = writer.run
        self.clock = Clock(began)
        self._output = OutputRecorder(writer.run)
        self.reporter = ProgressReporter(
            report or _ignore_progress, self._output, self.clock, len(writer.run.seeds)
        )
        self._metrics = MetricsWriter(writer.folder, "train")
        self._env_steps = 0  # of each seed, with the phase last logged
        self._warned_of_cuts = False
        self._signals = ExitStack()

    @property
    def folder(self) -> Path:
        """Where the run lives."""
        return self.writer.folder

    def restore(self, state: Any) -> Restored:
        """Return what the run's newest usable checkpoint holds, in the structure of `state`.

        Raises:
            UsageError: the configuration is not the one the checkpoint was made with.
            DamagedFile: no checkpoint of this run can be used.
        """
        path = self.folder / CHECKPOINT
        if not has_checkpoint(path):
            return Restored(state, 0, {})
        loaded = load_arrays(path)
        self.reporter.note = loaded.note
        try:
            about = from_json(json.loads(loaded.metadata["about"]))
            phases, config = about["phases"], about["config"]
            self.clock.resume_from(about["seconds"])
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedFile(f"`{path}` was not written by this backflip") from error
        if loaded.metadata["fingerprint"] != fingerprint(self.run):
            raise UsageError(
                f"run `{self.run.ulid}` cannot be resumed with a changed configuration: "
                f"{'; '.join(differences(config, resolved(self.run)))}; start a new run instead"
            )
        arrays = whole(loaded.arrays, flatten(state))
        return Restored(unflatten(state, arrays), phases, about["extra"])

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
        """Append the records of each seed; return the newest values for a health line.

        Args:
            built: what ran.
            phase: what it measured.
            learners: after it.
            done: updates done before it, of each seed.
            updates: updates it did.
            learns_own_reward: the reward learnt from was the environment's own.
            extra: values for every record of the phase.

        Raises:
            EnvironmentFailed: an environment in JAX returned a number that is not finite.
            UserFacingError: learning itself went beyond finite numbers.
        """
        metrics = {name: np.asarray(values) for name, values in phase.metrics.items()}
        seconds = self.clock.book("train")
        algorithm, records = built.driver.algorithm, next(iter(metrics.values())).shape[1]
        lived = env_steps_after(algorithm, done + updates) - env_steps_after(algorithm, done)
        beside = {
            "env_steps_per_second": len(self.run.seeds) * lived / max(seconds, 1e-9),
            "memory_mib": runtime.peak_memory_mib(),
            **(extra or {}),
        }
        total = self.clock.seconds["total"]
        self.reporter.rate = beside["env_steps_per_second"]
        self._env_steps = env_steps_after(algorithm, done + updates)
        numbers = [done + min((place + 1) * phase.every, updates) for place in range(records)]
        for place, number in enumerate(numbers):
            where = {"updates": number, "env_steps": env_steps_after(algorithm, number)}
            for row, seed in enumerate(self.run.seeds):
                record = {"seed": seed, **where, "seconds": total}
                record |= {name: values[row, place].item() for name, values in metrics.items()}
                self._metrics.write(record | beside)
        refuse_nonfinite(
            self.run,
            metrics,
            learners,
            numbers,
            learns_own_reward=learns_own_reward,
            checked=built.driver.checks_env_steps,
        )
        if not self._warned_of_cuts and (cut := cut_episodes_warning(built.driver, phase, updates)):
            self._warned_of_cuts = True  # once is enough
            self.reporter.say(cut)
        return health_of(metrics)

    def save(
        self,
        built: Built,
        state: Any,
        learners: Learner,
        *,
        phases: int,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Replace the checkpoint by `state` after so many phases, and the policy beside it."""
        self._metrics.sync()
        self.clock.book("train")
        about = {
            "config": resolved(self.run),
            "phases": phases,
            "seconds": self.clock.seconds,
            "extra": extra or {},
        }
        metadata = {"fingerprint": fingerprint(self.run), "about": json.dumps(to_json(about))}
        save_arrays(self.folder / CHECKPOINT, trimmed(flatten(state)), metadata)
        acting = {
            "spec": spec_to_json(built.driver.spec),
            "algorithm": built.driver.algorithm.name,
            "settings": self.run.config["settings"],
            "seeds": self.run.seeds,
            "env_steps": self._env_steps,
        }
        part = built.driver.algorithm.policy(learners.algorithm)
        save_arrays(self.folder / POLICY, flatten(part), {"about": json.dumps(to_json(acting))})
        self._keep_policy(phases)

    def _keep_policy(self, phases: int) -> None:
        """Keep the policy just saved for good, after every tenth of the run, if it is small."""
        every = max(round(self.run.config.get("phases", 1) / KEPT_POLICIES), 1)
        path = self.folder / POLICY
        if phases % every == 0 and path.stat().st_size <= LARGEST_KEPT_POLICY:
            write_whole(self.folder / policy_file(phases), path.read_bytes())

    def finish(
        self, evaluation: Evaluation, *, env_steps: int, labels: int | None = None
    ) -> Result:
        """Record the evaluation and return the result; the run is finished."""
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
            returns=evaluation.returns.mean(1).tolist(),
            optimum=None if np.isnan(optimum).any() else optimum.tolist(),
            seconds={name: round(value, 3) for name, value in self.clock.seconds.items()},
        )
        best = None if result.optimum is None else float(np.mean(result.optimum))
        write_curve(self.folder, title=f"{self.run.manifest['command']} {result.env}", optimum=best)
        self._log_evaluation(result)
        self._output.write(result.summary())
        write_summary(self.folder)
        self.writer.record("finished", result=result.to_json(), seconds=result.seconds["total"])
        return result

    def _log_evaluation(self, result: Result) -> None:
        """Append a record per seed of what the final policy is worth."""
        with MetricsWriter(self.folder, "evaluation") as metrics:
            for row, seed in enumerate(result.seeds):
                record: dict[str, float] = {"seed": seed, "env_steps": result.env_steps}
                record["evaluation_return"] = result.returns[row]
                if result.optimum is not None and result.score is not None:
                    record["evaluation_optimum"] = result.optimum[row]
                    record["evaluation_score"] = result.score[row]
                metrics.write(record)

    def __enter__(self) -> "Session":
        """Return the session."""
        self._signals.enter_context(interruptible(signal.SIGINT, signal.SIGTERM))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Record how it ended; turn Ctrl-C into a sentence."""
        self._metrics.close()
        self._output.close()
        self.writer.__exit__(kind, error, trace)
        self._signals.close()
        if isinstance(error, KeyboardInterrupt):
            saved = has_checkpoint(self.folder / CHECKPOINT)
            kept = "all finished phases are saved" if saved else "no phase was finished"
            resume = f"backflip resume {_name_to_type(self.run)}"
            stopped = Ended if isinstance(error, Terminated) else Interrupted
            raise stopped(f"interrupted ({kept}); go on with: {resume}") from None


def _name_to_type(run: Run) -> str:
    """Return what to type for a run: its id, or its folder where that is not in the usual home."""
    folder = run.folder.resolve()
    usual = runtime.default_home().resolve() / "runs"
    return run.ulid if folder.parent == usual else shlex.quote(str(folder))


def begin_session(
    place: runtime.Place,
    *,
    command: str,
    env: str,
    algorithm: str,
    config: Mapping[str, Any],
    seeds: Sequence[int],
    argv: Sequence[str],
    info: RunInfo,
    report: Report | None,
    began: float,
) -> Session:
    """Make the run's folder and return the session that carries it out.

    Args:
        place: where it belongs.
        command: `train` or `teach`.
        env: the environment's id.
        algorithm: the algorithm's name.
        config: the resolved configuration; `settings` in it are the algorithm's.
        seeds: the seeds, in order.
        argv: the command line.
        info: what a person says of the run.
        report: told of progress.
        began: `time.perf_counter()` when the work began.
    """
    tell = report or _ignore_progress
    nothing_done = Progress(0, 0, 0, 0.0, 0.0, {})
    kept = captured(
        place.home, argv, info, lambda said: tell(dataclasses.replace(nothing_done, note=said))
    )
    writer = create_run(
        place.home,
        command=command,
        config=config,
        seeds=seeds,
        env=env,
        algorithm=algorithm,
        argv=kept.argv,
        cwd=place.cwd,
        info=kept.info,
        capture=kept.keep,
    )
    with _closed_on_error(writer):
        return Session(writer, report, began)


def resume_session(run: Run, report: Report | None, began: float) -> Session:
    """Return the session that carries on with an old run."""
    writer = resume_run(dataclasses.replace(run, folder=run.folder.absolute()))
    with _closed_on_error(writer):
        return Session(writer, report, began)


def seeds_from(first_seed: int, seeds: int) -> list[int]:
    """Return `seeds` seeds in a row.

    Raises:
        UsageError: there would be none, or they are no seeds.
    """
    if isinstance(seeds, bool) or seeds < 1:
        raise UsageError(f"`seeds` must be at least 1, got {seeds}; try --seeds 10")
    if first_seed < 0 or first_seed + seeds > 2**31:
        raise UsageError(f"seeds must lie between 0 and 2^31 - 1, got {first_seed} and following")
    return list(range(first_seed, first_seed + seeds))


def _ignore_progress(progress: Progress) -> None:
    del progress


@contextmanager
def _closed_on_error(writer: RunWriter) -> Generator[None, None, None]:
    try:
        yield
    except BaseException:
        writer.close()
        raise
