"""Policies that a run saves."""

import json
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, final

import jax
import numpy as np

from backflip.algorithms.interface import Algorithm
from backflip.algorithms.registry import algorithms
from backflip.core.checkpoint import has_checkpoint, load_arrays
from backflip.core.spec import Box, Discrete, EnvSpec, changes, within
from backflip.core.trees import unflatten
from backflip.training.algorithm_config import configure
from backflip.training.renamed_settings import current_names
from backflip.training.spec_json import spec_from_json
from runshelf.errors import DamagedFile, UsageError
from runshelf.store.records import from_json
from runshelf.store.run import Run
from runshelf.store.run_ids import short_id

POLICY = "policy.safetensors"
_POLICY_AFTER = "policy-{}.safetensors"


@final
class Policy:
    """A trained policy that takes evaluation actions: NumPy in, NumPy out.

    Policies that sample actions (from pixels) are deterministic for the same sequence of calls.
    """

    def __init__(self, spec: EnvSpec, algorithm: Algorithm, state: Any) -> None:
        self._spec = spec
        self._act = jax.jit(partial(algorithm.evaluation_action, state))
        self._key = jax.random.key(0)

    def act(self, obs: Any) -> "np.ndarray | np.integer[Any]":
        """Return the action for one observation, or the actions for a batch.

        Observations and actions are in the environment's own spaces. Observations in the form that
        the algorithm is trained on (one-hot, flattened) are accepted, too.

        Raises:
            UsageError: the shape is invalid, or a number is not in the space.
        """
        batch, single = _as_trained_on(self._spec, np.asarray(obs))
        self._key, key = jax.random.split(self._key)
        actions = np.asarray(self._act(batch, key))
        actions = within(self._spec.action, actions)
        if self._spec.own is not None:
            actions = self._spec.own.take(actions)
        if not single:
            return actions
        return actions[0] if isinstance(self._spec.action, Discrete) else np.asarray(actions[0])


def _as_trained_on(spec: EnvSpec, obs: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return observations as a batch that an algorithm accepts, and whether there was only one."""
    box = spec.observation
    own: Box | Discrete = box if spec.own is None else spec.own.observation
    if isinstance(own, Discrete) and obs.ndim < 2 and obs.dtype.kind in "iu":
        places = np.atleast_1d(obs) - own.start
        if ((places < 0) | (places >= own.n)).any():
            last = own.start + own.n - 1
            raise UsageError(f"`obs` must be a number from {own.start} to {last}, got {obs}")
        return (places[:, None] == np.arange(own.n)).astype(box.dtype), obs.ndim == 0
    shapes = [box.shape] if isinstance(own, Discrete) else [own.shape, box.shape]
    for shape in shapes:
        if obs.shape == shape or obs.shape[1:] == shape:
            return obs.astype(box.dtype).reshape(-1, *box.shape), obs.shape == shape
    must = "be a whole number" if isinstance(own, Discrete) else f"have shape {own.shape}"
    raise UsageError(f"`obs` must {must}, or (B, ...) of them, got {obs.shape}")


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


def policy_file(phases: int) -> str:
    """Return the name of the file with the policy after `phases` phases."""
    return _POLICY_AFTER.format(f"{phases:04}")


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


def load_saved_policy(path: Path, seed: int | None = None) -> SavedPolicy:
    """Return one seed's policy in a file, by default the first seed's.

    Raises:
        UsageError: the run has no such seed.
        DamagedFile: there is no policy, or it cannot be read.
    """
    loaded = load_arrays(path)
    try:
        about: dict[str, Any] = from_json(json.loads(loaded.metadata["about"]))
        spec, seeds = spec_from_json(about["spec"]), about["seeds"]
        entry = algorithms()[about["algorithm"]]
        algorithm = entry.build(configure(entry, current_names(about["settings"])), spec)
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedFile(f"`{path}` was not written by this backflip") from error
    if seed is not None and seed not in seeds:
        run = short_id(path.parent.name)
        raise UsageError(f"run `{run}` has no seed {seed}; it has {_listed(seeds)}")
    row = seeds.index(seed) if seed is not None else 0
    arrays = {name: np.asarray(array[row]) for name, array in loaded.arrays.items()}
    state = algorithm.init(0)
    state = algorithm.with_policy(state, unflatten(algorithm.policy(state), arrays))
    return SavedPolicy(spec, algorithm, state, about.get("env_steps"))


def refuse_changed(run: Run, spec: EnvSpec) -> None:
    """Refuse an environment whose spec differs from that of a run's saved policy.

    Raises:
        UsageError: the message has the differences.
    """
    path = run.folder / POLICY
    if not has_checkpoint(path):
        return
    changed = ""
    with suppress(DamagedFile, KeyError, TypeError, ValueError):  # loading the policy reports it
        about = from_json(json.loads(load_arrays(path).metadata["about"]))
        changed = changes(spec_from_json(about["spec"]), spec)
    if changed:
        raise UsageError(
            f"environment `{spec.id}` has changed since run `{run.short}` was trained: {changed}"
        )


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))
