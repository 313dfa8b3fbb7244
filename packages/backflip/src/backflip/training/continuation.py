"""Carries a run on: a child run trains the learners of its parent from where it ended.

The child has its parent's configuration with a larger budget, and starts from the parent's whole
checkpoint: networks, optimizers, statistics, replay, reward model, random keys. The checkpoint is
copied into the child's folder before the child exists as a run, so a child never needs its parent
again. Updates and env steps continue from those of the parent, so every schedule is that of one run
with both budgets. A learning rate that ended at 0 rises to the share of all updates that remain,
and falls to its end again.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from backflip.algorithms.interface import Settings
from backflip.algorithms.rollouts import rollouts_of
from backflip.core.checkpoint import CHECKPOINT, has_checkpoint, save_arrays
from backflip.core.paths import name_on_command_line
from backflip.core.settings import LARGEST_COUNT
from backflip.core.trees import flatten, unflatten
from backflip.drivers.learning import env_steps_after
from backflip.preferences.kept_labels import KeptLabels
from backflip.training import runtime
from backflip.training.build import Built, build, env_args_of, rebuild, teaching_of
from backflip.training.fingerprint import resolved
from backflip.training.named_code import refuse_code_of
from backflip.training.parents import Before, before_of
from backflip.training.planning import planned_phases
from backflip.training.policy import refuse_changed
from backflip.training.renamed_settings import current_names
from backflip.training.replay_rows import whole
from backflip.training.saved_state import Checkpoint, checkpoint_metadata, load_checkpoint
from backflip.training.teaching.config import saved_teaching
from backflip.training.teaching.schedules import updates_before_restart
from runshelf.errors import DamagedFile, UsageError
from runshelf.store.finding import find_run
from runshelf.store.run import Run, is_locked, open_run


class Parent(NamedTuple):
    """A run that can be carried on.

    Attributes:
        run: the run.
        settings: all settings of its algorithm.
        checkpoint: its newest checkpoint.
        updates: updates of each seed so far.
        env_steps: env steps of each seed so far.
        uncounted: the updates that its schedules do not count (`Before.uncounted`).
    """

    run: Run
    settings: Settings
    checkpoint: Checkpoint
    updates: int
    env_steps: int
    uncounted: int

    def before(self, labels: int = 0, open_queries: int = 0) -> Before:
        """Return what a child of this run starts from."""
        what = _configuration(self.run)
        return Before(self.updates, self.env_steps, labels, open_queries, what, self.uncounted)


def planned(run: Run, config: Settings) -> list[int]:
    """Return the updates of each phase of a run itself, without those of its parents.

    A run that explores before its first queries has one phase more, the first.
    """
    phases = run.config["phases"] if "phases" in run.config else run.config["teaching"]["phases"]
    updates = config.updates - before_of(run).updates
    return planned_phases(updates, phases, pretraining_updates(run, config))


def pretraining_updates(run: Run, config: Settings) -> int:
    """Return the updates of a run before its first queries; 0 for a child, whose parent asked."""
    if "teaching" not in run.config or before_of(run).updates:
        return 0
    env_steps = saved_teaching(run.config["teaching"]).pretrain_env_steps
    return rollouts_of(env_steps, config.num_envs, config.rollout_length)


def found_run(run: Run | Path | str, home: Path | str | None) -> Run:
    """Return a run, also from its folder or from its id in `home`.

    Raises:
        UsageError: there is no such run.
    """
    if isinstance(run, Run):
        return run
    return open_run(run) if isinstance(run, Path) else find_run(runtime.place_of(home).home, run)


def place_of_child(parent: Run, home: Path | str | None) -> runtime.Place:
    """Return the folders of a child: in its parent's home, where commands find both."""
    folder = parent.folder.resolve()
    return runtime.place_of(folder.parents[1] if folder.parent.name == "runs" else home)


def open_parent(run: Run, command: str) -> Parent:
    """Return a run that `command` can carry on.

    Raises:
        UsageError: it is a run of another command, it is running, or it has no checkpoint.
        DamagedFile: its checkpoint is damaged.
    """
    name, kind = name_on_command_line(run), run.manifest["command"]
    if kind not in ("train", "teach"):
        raise UsageError(f"run `{name}` is a run of `{kind}`; only `train` and `teach` have --more")
    if kind != command:
        raise UsageError(f"run `{name}` is a run of `{kind}`; try backflip {kind} --more {name}")
    refuse_code_of(run)
    if is_locked(run):
        raise UsageError(f"run `{name}` is running: wait for its end, or stop it with Ctrl-C")
    if not has_checkpoint(run.folder / CHECKPOINT):
        raise UsageError(
            f"run `{name}` ended before its first phase was over, so there is nothing to carry on; "
            f"try backflip resume {name}"
        )
    checkpoint, built = load_checkpoint(run), rebuild(run)
    try:
        refuse_changed(run, built.driver.spec)
        algorithm, own = built.driver.algorithm, before_of(run)
        done = sum(planned(run, built.config)[: checkpoint.phases])
        updates, uncounted = own.updates + done, own.uncounted
        teaching = teaching_of(run)
        if teaching is not None and not own.updates and algorithm.replay is None:
            restarted = updates_before_restart(teaching, built.config)
            uncounted = restarted if done > restarted else 0
        env_steps = env_steps_after(algorithm, updates)
        return Parent(run, built.config, checkpoint, updates, env_steps, uncounted)
    finally:
        built.driver.close()


def build_child(parent: Parent, env_steps: int) -> Built:
    """Return driver and settings of a child that makes `env_steps` more env steps of each seed.

    Raises:
        UsageError: `env_steps` is out of range.
    """
    most = LARGEST_COUNT - parent.env_steps
    if not 1 <= env_steps <= most:
        raise UsageError(f"`env_steps` must lie between 1 and {most:,}, got {env_steps:,}")
    run = parent.run
    total = {"env_steps": parent.env_steps + env_steps}
    return build(
        run.manifest["algorithm"],
        run.manifest["env"],
        env_args=env_args_of(run),
        settings=current_names(run.config["settings"]) | total,
        complete=True,
        teaching=teaching_of(run),
        before=parent.before(),
    )


def check_fits(parent: Parent, blank: Any) -> None:
    """Refuse a checkpoint whose arrays differ from those of `blank`, the state before training.

    Raises:
        UsageError: the message has the first difference and the version that wrote the run.
    """
    try:
        unflatten(blank, whole(parent.checkpoint.arrays, flatten(blank)))
    except DamagedFile as error:
        version = parent.run.manifest.get("versions", {}).get("backflip", "an unknown version")
        first = str(error).partition("; ")[0]
        raise UsageError(
            f"run `{name_on_command_line(parent.run)}` was written by backflip {version}, and "
            f"cannot be carried on by this version ({first}); start a new run instead"
        ) from error


def inherit_checkpoint(parent: Parent, labels: KeptLabels | None, child: Run) -> None:
    """Write the parent's state as the first checkpoint of a child, before its first phase.

    Args:
        parent: the parent.
        labels: the labels that a child of `teach` inherits.
        child: the child.
    """
    saved = parent.checkpoint
    metadata = checkpoint_metadata(child, phases=0, seconds={}, extra=saved.extra, labels=labels)
    save_arrays(child.folder / CHECKPOINT, saved.arrays, metadata)


def _configuration(run: Run) -> str:
    entries: Mapping[str, Any] = {**resolved(run), "seeds": None}
    text = json.dumps(entries, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
