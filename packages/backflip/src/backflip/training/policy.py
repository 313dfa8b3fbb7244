"""Policies that a run saves."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, final

import jax
import numpy as np

from backflip.algorithms.interface import Algorithm, EvaluationAction
from backflip.algorithms.registry import algorithms
from backflip.core.checkpoint import has_checkpoint, load_arrays
from backflip.core.spaces import InvalidValue, learned, row
from backflip.core.spec import EnvSpec, changes, within
from backflip.core.trees import unflatten
from backflip.training.algorithm_config import configure
from backflip.training.memory import check_network
from backflip.training.named_code import code_named_by, code_named_in, refuse_code_of
from backflip.training.renamed_settings import current_names
from backflip.training.spec_json import spec_from_json
from runshelf.errors import DamagedFile, UsageError
from runshelf.received_json import parse_record
from runshelf.store.records import from_json
from runshelf.store.run import Run, open_run
from runshelf.store.run_ids import short_id

POLICY = "policy.safetensors"
_POLICY_AFTER = "policy-{}.safetensors"
# The errors of values that this program did not write.
DAMAGED = (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError)
KEPT_POLICIES = 10  # of a run, if it has as many updates


@final
class Policy:
    """A trained policy: NumPy in, NumPy out, in the environment's own spaces.

    Policies that sample actions are deterministic for the same sequence of calls.

    Args:
        spec: the environment's spec.
        algorithm: the algorithm.
        state: its state of one seed, which has the policy.
    """

    def __init__(self, spec: EnvSpec, algorithm: Algorithm, state: Any) -> None:
        self._spec, self._name, self._state = spec, algorithm.name, state
        self._evaluate = jax.jit(acting_by_row(algorithm.evaluation_action))
        self._sample = algorithm.sample and jax.jit(acting_by_row(algorithm.sample))
        self._key = jax.random.key(0)

    def act(self, obs: Any, *, sample: bool = False) -> Any:
        """Return the action for one observation, or the actions for a batch.

        A batch has a leading axis in every array of an observation. Observations in the form that
        the algorithm is trained on (one-hot, flattened) are accepted, too.

        Args:
            obs: an observation, or a batch.
            sample: draw the action from the policy's distribution, as in training; by default, the
                evaluation action: the mode, or from pixels a sample.

        Raises:
            UsageError: the observation is not in its space or not finite, a batch is empty, or the
                policy is deterministic and cannot be sampled.
        """
        acts: Any = self._sample if sample else self._evaluate
        if acts is None:
            raise UsageError(
                f"`{self._name}` learns a deterministic policy, which has no distribution to "
                "sample from; leave out `sample`"
            )
        batch, single = self._as_trained_on(obs)
        self._key, key = jax.random.split(self._key)
        actions = within(self._spec.action, np.asarray(acts(self._state, batch, key)))
        taken = self._spec.own_spaces.take(actions)
        return row(taken, 0) if single else taken

    def _as_trained_on(self, obs: Any) -> tuple[np.ndarray, bool]:
        """Return observations as a batch for the algorithm, and whether there was only one."""
        if isinstance(obs, np.ndarray) and not obs.size:
            raise UsageError("`obs` is empty: give one observation, or a batch of at least one")
        try:
            batch, single = learned(self._spec.own_spaces.observation, obs, self._spec.observation)
        except InvalidValue as error:
            raise UsageError(str(error)) from error
        if not np.isfinite(batch).all():
            raise UsageError("`obs` has numbers that are not finite")
        return batch, single


def acting_by_row(act: EvaluationAction) -> Callable[[Any, Any, Any], Any]:
    """Return a function of (state, observations, key) that acts on each row by itself.

    The random numbers of row i follow from the key and i, so that they do not depend on the size of
    the batch.
    """

    def one(state: Any, obs: Any, key: Any, number: Any) -> Any:
        return act(state, obs[None], jax.random.fold_in(key, number))[0]

    def every(state: Any, batch: Any, key: Any) -> Any:
        return jax.vmap(one, (None, 0, None, 0))(state, batch, key, np.arange(len(batch)))

    return every


class SavedPolicy(NamedTuple):
    """A policy loaded from a file.

    Attributes:
        spec: the environment's spec, without the bounds of observations.
        algorithm: the algorithm.
        state: the algorithm's state of one seed, which has the policy.
        env_steps: env steps of training; None in old files.
    """

    spec: EnvSpec
    algorithm: Algorithm
    state: Any
    env_steps: int | None


def policy_file(part: int) -> str:
    """Return the name of the file with the policy after `part` of `KEPT_POLICIES` parts of a run.

    Runs of former versions counted phases.
    """
    return _POLICY_AFTER.format(f"{part:04}")


def policy_files(folder: Path) -> list[Path]:
    """Return the files of intermediate policies in a run's folder, oldest first."""
    return sorted(folder.glob(_POLICY_AFTER.format("*")))


def load_policy(folder: Path, seed: int | None = None) -> Policy:
    """Return the last saved policy of one seed of a run, by default the first seed.

    Raises:
        UsageError: the run has no such seed.
        DamagedFile: there is no policy, or it cannot be read.
    """
    acting = load_saved_policy(folder / POLICY, seed)
    return Policy(acting.spec, acting.algorithm, acting.state)


def refuse_without_policy(run: Run) -> None:
    """Refuse a run that has saved no policy.

    Raises:
        UsageError: it has none.
    """
    if not has_checkpoint(run.folder / POLICY):
        kind = run.manifest["command"]
        raise UsageError(
            f"run `{run.short}` of kind `{kind}` has no policy: runs of train and teach save one "
            "after their first phase"
        )


def load_saved_policy(path: Path, seed: int | None = None) -> SavedPolicy:
    """Return one seed's policy in a file, by default the first seed's.

    Raises:
        UsageError: the run has no such seed.
        DamagedFile: there is no policy, or it cannot be read.
    """
    loaded = load_arrays(path)
    try:
        about = from_json(parse_record(loaded.metadata["about"]))
        _refuse_code(path, list(code_named_in(about["settings"])))
        spec, seeds = spec_from_json(about["spec"]), [int(seed) for seed in about["seeds"]]
        entry = algorithms()[about["algorithm"]]
        config = configure(entry, current_names(about["settings"]))
        check_network(config, spec)
        algorithm = entry.build(config, spec)
    except DAMAGED as error:
        raise DamagedFile(
            f"`{path}` was not written by this version of backflip; open it with the one that did"
        ) from error
    if seed is not None and seed not in seeds:
        run = short_id(path.parent.name)
        raise UsageError(f"run `{run}` has no seed {seed}; it has {_listed(seeds)}")
    row = seeds.index(seed) if seed is not None else 0
    if not all(array.shape[:1] == (len(seeds),) for array in loaded.arrays.values()):
        raise DamagedFile(f"`{path}` is damaged: it does not have one row for each seed")
    arrays = {name: np.asarray(array[row]) for name, array in loaded.arrays.items()}
    # The shapes are compared before memory is taken for them.
    unflatten(jax.eval_shape(lambda: algorithm.policy(algorithm.init(0))), arrays)
    state = algorithm.init(0)
    state = algorithm.with_policy(state, unflatten(algorithm.policy(state), arrays))
    return SavedPolicy(spec, algorithm, state, about.get("env_steps"))


def _refuse_code(path: Path, names: list[str]) -> None:
    """Refuse a policy that names code, unless its run names the same and is trusted.

    Raises:
        UsageError: the run is not trusted.
        DamagedFile: the run does not name the code.
    """
    if not names:
        return
    run = open_run(path.parent)
    refuse_code_of(run)
    if not set(names) <= set(code_named_by(run)):
        raise DamagedFile(
            f"`{path}` names code that its run does not name: restore both from a copy"
        )


def seed_of(run: Run, seed: int | None) -> int:
    """Return the seed whose policy is meant: by default the run's first."""
    return run.seeds[0] if seed is None else seed


def refuse_changed(run: Run, spec: EnvSpec) -> None:
    """Refuse an environment whose spec differs from that of a run's saved policy.

    Raises:
        UsageError: the message has the differences.
    """
    path = run.folder / POLICY
    if not has_checkpoint(path):
        return
    changed = ""
    with suppress(DamagedFile, *DAMAGED):  # loading the policy reports it
        about = from_json(parse_record(load_arrays(path).metadata["about"]))
        changed = changes(spec_from_json(about["spec"]), spec)
    if changed:
        raise UsageError(
            f"environment `{spec.id}` has changed since run `{run.short}` was trained: {changed}"
        )


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))
