"""The labels or the reward model that a run starts with."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from backflip.core.checkpoint import CHECKPOINT, load_arrays
from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec
from backflip.core.trees import row_of, stack_rows, unflatten
from backflip.preferences.exchange import (
    check_fits,
    import_labels,
    importable,
    labels_of_run,
    read_labels,
)
from backflip.preferences.label_lines import ImportedLabel
from backflip.preferences.labels import LabelStore
from backflip.rewards.interface import RewardModel
from backflip.training.named_code import refuse_code_of
from backflip.training.teaching.config import saved_teaching
from runshelf.errors import DamagedFile, UsageError, UserFacingError
from runshelf.store.finding import find_run
from runshelf.store.run import Run, open_run

FILES = (".jsonl", ".csv")
REWARD = "reward"  # the checkpoint field with the reward model's parameters


class Start(NamedTuple):
    """The sources that a run starts with, as in its configuration.

    Attributes:
        labels_from: a file, or the folder of a run; empty if none.
        labels: the number of labels in it, for each seed.
        reward_from: the folder of a run; empty if none.
    """

    labels_from: str = ""
    labels: int = 0
    reward_from: str = ""


def find_start(home: Path, labels_from: str | None, reward_from: str | None) -> Start:
    """Return the sources that a run starts with.

    Raises:
        UsageError: both are given, or a source does not exist.
    """
    if labels_from and reward_from:
        raise UsageError(
            "give --labels-from or --reward-from, not both: a reward model is fitted to labels"
        )
    if labels_from:
        path = Path(labels_from)
        if path.suffix not in FILES:
            path = find_run(home, labels_from).folder
        return Start(str(path.resolve()), importable(_labels(path)))
    if reward_from:
        run = find_run(home, reward_from)
        _check_taught(run)
        refuse_code_of(run)
        return Start(reward_from=str(run.folder.resolve()))
    return Start()


def check_labels(start: Start, spec: EnvSpec, clip_length: int) -> None:
    """Refuse initial labels whose clips differ from those of this run.

    Raises:
        UsageError: the message has the difference and the option to use.
    """
    if not start.labels_from:
        return
    labels = _labels(Path(start.labels_from))
    lengths = {label.shapes["reward"][0][0] for label in labels if "reward" in label.shapes}
    if len(lengths) == 1:  # labels of another environment may have another length, too
        check_fits(labels, _shapes(spec), *lengths)
    if lengths and lengths != {clip_length}:
        found = ", ".join(map(str, sorted(lengths)))
        hint = f"; try --set clip_length={found}" if len(lengths) == 1 else ""
        raise UsageError(
            f"the clips in `{start.labels_from}` have {found} env steps, those of this run "
            f"{clip_length}{hint}"
        )
    check_fits(labels, _shapes(spec), clip_length)


def import_initial_labels(start: Start, store: LabelStore, seeds: Sequence[int]) -> None:
    """Add the initial labels to the store, unless an earlier session did.

    Raises:
        UsageError: their source no longer exists.
    """
    if start.labels_from and not store.imported():
        path = Path(start.labels_from)
        import_labels(store, _labels(path), seeds, path.name)


def from_elsewhere(start: Start, run: Run) -> str:
    """Return a note if labels or reward come from a run of another environment; else nothing.

    Their arrays fit, or the run would not begin, but they may mean something else here.
    """
    source = Path(start.reward_from or start.labels_from)
    if not start.reward_from and (not start.labels_from or source.suffix in FILES):
        return ""
    try:
        theirs = open_run(source)
    except UserFacingError:  # moved away since the run began
        return ""
    env, args = theirs.manifest["env"], theirs.config.get("env_args", {})
    if (env, args) == (run.manifest["env"], run.config["env_args"]):
        return ""
    what = "the reward model comes" if start.reward_from else "the labels come"
    other = "other arguments of" if env == run.manifest["env"] else "another environment than"
    return f"{what} from run `{theirs.short}` of `{env}`, {other} `{run.manifest['env']}`"


def with_reward_model(start: Start, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings, with the `reward_model` of the run in `reward_from`.

    Raises:
        UsageError: the settings have another reward model.
    """
    if not start.reward_from:
        return dict(settings)
    run = open_run(Path(start.reward_from))
    theirs = saved_teaching(run.config["teaching"]).reward_model
    named = settings.get("reward_model", theirs)
    if named != theirs:
        raise UsageError(
            f"run `{run.short}` has a reward model `{theirs}`, not `{named}`; "
            f"leave out --set reward_model={named}"
        )
    return {**settings, "reward_model": theirs}


def initial_reward(start: Start, model: RewardModel, env_id: str, seeds: int) -> Any:
    """Return the initial parameters of the reward model, a row for each seed.

    If the run in `reward_from` has fewer seeds, its rows are repeated.

    Raises:
        UsageError: that run has another environment.
        DamagedFile: its checkpoint cannot be read.
    """
    if not start.reward_from:
        return model.initial(seeds)
    folder = Path(start.reward_from)
    arrays = {
        name.removeprefix(f"{REWARD}."): array
        for name, array in load_arrays(folder / CHECKPOINT).arrays.items()
        if name.startswith(f"{REWARD}.")
    }
    rows = len(next(iter(arrays.values()))) if arrays else 1
    try:
        theirs = unflatten(model.initial(rows), arrays)
    except DamagedFile as error:
        first, *_ = str(error).split("; ")
        raise UsageError(
            f"the reward model of `{folder}` is for another environment than `{env_id}`: {first}"
        ) from error
    return stack_rows([row_of(theirs, seed % rows) for seed in range(seeds)])


def _labels(path: Path) -> list[ImportedLabel]:
    return read_labels(path) if path.suffix in FILES else labels_of_run(path)


def _check_taught(run: Run) -> None:
    if run.manifest["command"] != "teach" or not (run.folder / CHECKPOINT).is_file():
        raise UsageError(
            f"run `{run.short}` has no reward model: choose a run of teach with a checkpoint"
        )


def _shapes(spec: EnvSpec) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Return shape and dtype of the arrays of a clip, without the clip length."""
    box, action = spec.observation, spec.action
    seen = ((*box.shape[:-1], box.shape[-1] // spec.frame_stack), box.dtype)
    done = ((), np.dtype(np.int32))
    if not isinstance(action, Discrete):
        done = (action.shape, action.dtype)
    return {"obs": seen, "next_obs": seen, "action": done, "lived": ((), np.dtype(bool))}
