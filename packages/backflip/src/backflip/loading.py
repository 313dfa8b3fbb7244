"""Opens runs from Python: their policies, rewards, settings and numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from jaxtyping import Float64

from backflip.core.paths import default_home
from runshelf.errors import UsageError
from runshelf.store.finding import find_run
from runshelf.store.run import Run
from runshelf.store.series import Series, metric_names, read_series
from runshelf.store.state import state_of

if TYPE_CHECKING:
    from backflip.export.learned_reward import LearnedReward
    from backflip.preferences.label_lines import ImportedLabel
    from backflip.training.policy import Policy

RETURN = "evaluation_return"


@final
@dataclass(frozen=True)
class LoadedRun:
    """What a run has recorded. Nothing is changed, and a run may still be in progress.

    Attributes:
        folder: the run's folder.
        run: its id.
        command: `train`, `teach`, or another kind of run.
        env: the environment's id; None for other kinds of runs.
        env_args: arguments of the environment's constructor.
        algorithm: the algorithm's name; None for other kinds of runs.
        seeds: the seeds, in order.
        settings: all settings of the algorithm; of `teach`, those of teaching too.
        state: `running`, `finished`, `failed`, `interrupted`, `stopped` or `lost`.
        manifest: everything in `run.json`: command line, versions, hardware, code.
    """

    folder: Path
    run: str
    command: str
    env: str | None
    env_args: Mapping[str, Any]
    algorithm: str | None
    seeds: tuple[int, ...]
    settings: Mapping[str, Any]
    state: str
    manifest: Mapping[str, Any]

    @cached_property
    def metrics(self) -> Mapping[str, Mapping[int | None, Series]]:
        """All metrics, by name and seed: arrays `x` (env steps of the seed) and `y` (values).

        The seed is None for values without one. `x` is what another program logged as its step, or
        the position among the values if it logged none.
        """
        return read_series(self.folder, metric_names(self.folder), "step")

    def returns(self) -> Float64[np.ndarray, " seeds"]:
        """Return the evaluated return of each seed's final policy; NaN before the evaluation."""
        found = self.metrics.get(RETURN, {})
        last = [found[seed].y[-1] if seed in found else np.nan for seed in self.seeds]
        return np.array(last, np.float64)

    def labels(self) -> "list[ImportedLabel]":
        """Return all answers that were not undone, with their clips as arrays.

        Raises:
            UsageError: the run has no labels.
            DamagedFile: labels of the run are lost, or damaged.
        """
        from backflip.preferences.exchange import labels_of_run  # noqa: PLC0415

        return labels_of_run(self.folder)

    def policy(self, seed: int | None = None) -> "Policy":
        """Return the last saved policy of a seed, by default the first; see `load_policy`."""
        return load_policy(self.folder, seed)

    def reward(self, seed: int | None = None) -> "LearnedReward":
        """Return the newest reward model of a seed, by default the first; see `load_reward`."""
        return load_reward(self.folder, seed)


def load_run(run: str | Path, *, home: str | Path | None = None) -> LoadedRun:
    """Open a run of any kind.

    Args:
        run: an id, the beginning of one, a folder, `latest`, or a unique name.
        home: the folder that has `runs/`; BACKFLIP_HOME or the current folder if None.

    Raises:
        UsageError: no run or several runs match.
        DamagedFile: the run cannot be read.
    """
    found = _find(run, home)
    config, manifest = found.config, found.manifest
    return LoadedRun(
        folder=found.folder,
        run=found.ulid,
        command=manifest["command"],
        env=manifest.get("env"),
        env_args=config.get("env_args", {}),
        algorithm=manifest.get("algorithm"),
        seeds=tuple(found.seeds),
        settings={**config.get("settings", {}), **config.get("teaching", {})},
        state=state_of(found).name,
        manifest=manifest,
    )


def load_policy(
    run: str | Path, seed: int | None = None, *, home: str | Path | None = None
) -> "Policy":
    """Return the last saved policy of one seed of a run of `train` or `teach`.

    Args:
        run: an id, the beginning of one, a folder, `latest`, or a unique name.
        seed: the seed; by default the run's first.
        home: the folder that has `runs/`; BACKFLIP_HOME or the current folder if None.

    Raises:
        UsageError: no run or several runs match, the run has no policy, or not this seed.
        DamagedFile: the policy cannot be read.
    """
    found = _find(run, home)
    from backflip.training import policy  # noqa: PLC0415  (imports JAX)

    policy.refuse_without_policy(found)
    return policy.load_policy(found.folder, seed)


def load_reward(
    run: str | Path, seed: int | None = None, *, home: str | Path | None = None
) -> "LearnedReward":
    """Return the newest reward model of one seed of a run of `teach`.

    Args:
        run: an id, the beginning of one, a folder, `latest`, or a unique name.
        seed: the seed; by default the run's first.
        home: the folder that has `runs/`; BACKFLIP_HOME or the current folder if None.

    Raises:
        UsageError: no run or several runs match, the run has no reward model, or not this seed.
        DamagedFile: the reward model cannot be read.
    """
    found = _find(run, home)
    from backflip.export.learned_reward import load_learned_reward  # noqa: PLC0415  (imports JAX)

    return load_learned_reward(found, seed)


def _find(run: str | Path, home: str | Path | None) -> Run:
    if isinstance(run, Path):
        run = str(run.absolute())
    if not isinstance(run, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"a run must be its id, name or folder, got {run!r}")
    return find_run(default_home() if home is None else Path(home), run)
