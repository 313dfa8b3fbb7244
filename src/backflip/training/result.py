"""What a finished run gives back, and the policies that act."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, final

import jax
import numpy as np

from backflip.algorithms.interface import Algorithm
from backflip.archive.checkpoint import load_arrays
from backflip.archive.metrics import from_json
from backflip.core.errors import DamagedFile, UsageError
from backflip.core.spec import Box, Discrete, EnvSpec
from backflip.core.trees import unflatten
from backflip.training.offers import ALGORITHMS
from backflip.training.settings import resolve

POLICY = "policy.safetensors"


@final
class Policy:
    """A trained policy as evaluations play it: NumPy in, NumPy out.

    Where it draws its actions (from pixels), the same calls in the same order draw the same.
    """

    def __init__(self, spec: EnvSpec, algorithm: Algorithm, state: Any) -> None:
        self._spec = spec
        self._act = jax.jit(partial(algorithm.exploit, state))
        self._key = jax.random.key(0)

    def act(self, obs: Any) -> np.ndarray:
        """Return the action for one observation, or those for a batch of them.

        Raises:
            UsageError: the shape is neither.
        """
        box = self._spec.observation
        array = np.asarray(obs, box.dtype)
        single = array.shape == box.shape
        if not single and array.shape[1:] != box.shape:
            raise UsageError(
                f"`obs` must have shape {box.shape}, or (B, ...) of them, got {array.shape}"
            )
        self._key, key = jax.random.split(self._key)
        actions = np.asarray(self._act(array[None] if single else array, key))
        if isinstance(self._spec.action, Box):
            actions = np.clip(actions, self._spec.action.low, self._spec.action.high)
        return np.asarray(actions[0]) if single else actions


@dataclass(frozen=True)
class Result:
    """What `train` and `teach` return.

    Attributes:
        folder: where the run lives.
        run: its id.
        env: the environment's id.
        algorithm: the algorithm's name.
        seeds: the seeds, in order.
        env_steps: of training, of each seed.
        labels: of each seed, or None where nothing was taught.
        returns: mean true return of the final policy, per seed, in the environment's unit.
        optimum: the best mean return from the same starts, per seed, where it is known.
        seconds: `setup`, `compile`, `train`, `answers` (waiting for people), `evaluate` and
            `total`, over all sessions of the run.
    """

    folder: Path
    run: str
    env: str
    algorithm: str
    seeds: Sequence[int]
    env_steps: int
    labels: int | None
    returns: Sequence[float]
    optimum: Sequence[float] | None
    seconds: Mapping[str, float]

    @property
    def score(self) -> list[float] | None:
        """Share of the optimum from the same starts, per seed, where it is known."""
        if self.optimum is None:
            return None
        return [a / b for a, b in zip(self.returns, self.optimum, strict=True)]

    def in_words(self) -> str:
        """Return what came of the run on one line."""
        returns = sum(self.returns) / len(self.returns)
        best = ""
        if self.optimum is not None:
            best = f" of at most {sum(self.optimum) / len(self.optimum):.4g}"
        labels = "" if self.labels is None else f"{self.labels} labels, "
        steps = f"{labels}{self.env_steps:,} env steps"
        return f"{steps}; true return {returns:.4g}{best}; in {self.folder}"

    def policy(self, seed: int | None = None) -> Policy:
        """Return the trained policy of a seed, by default the first."""
        return load_policy(self.folder, seed)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values; those that do not apply are left out."""
        fields = {
            "run": self.run,
            "env": self.env,
            "algorithm": self.algorithm,
            "seeds": list(self.seeds),
            "env_steps": self.env_steps,
            "labels": self.labels,
            "returns": list(self.returns),
            "optimum": None if self.optimum is None else list(self.optimum),
            "score": self.score,
            "seconds": dict(self.seconds),
            "folder": str(self.folder),
        }
        return {name: value for name, value in fields.items() if value is not None}


class Acting(NamedTuple):
    """A policy as saved, with all that acting takes.

    Attributes:
        spec: the environment's public facts, without the bounds of observations.
        algorithm: how it acts.
        state: one seed's, with the policy in it.
        env_steps: how long it had learnt; None where that was not written down.
    """

    spec: EnvSpec
    algorithm: Algorithm
    state: Any
    env_steps: int | None


def kept_policy(phases: int) -> str:
    """Return the name of the file that keeps the policy after so many phases."""
    return f"policy-{phases:04}.safetensors"


def load_policy(folder: Path, seed: int | None = None) -> Policy:
    """Return the policy of a run as last saved, of one seed, by default the first.

    Raises:
        UsageError: the run has no such seed.
        DamagedFile: there is no policy, or it cannot be read.
    """
    acting = load_acting(folder / POLICY, seed)
    return Policy(acting.spec, acting.algorithm, acting.state)


def load_acting(path: Path, seed: int | None = None) -> Acting:
    """Return what acts by a policy's file, of one seed, by default the first.

    Raises:
        UsageError: the run has no such seed.
        DamagedFile: there is no policy, or it cannot be read.
    """
    loaded = load_arrays(path)
    try:
        about: dict[str, Any] = from_json(json.loads(loaded.metadata["about"]))
        spec, seeds = spec_from_json(about["spec"]), about["seeds"]
        offer = ALGORITHMS[about["algorithm"]]
        algorithm = offer.build(resolve(offer.config, about["settings"]), spec)
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedFile(f"`{path}` was not written by this backflip") from error
    if seed is not None and seed not in seeds:
        raise UsageError(f"run `{path.parent.name}` has no seed {seed}; it has {_listed(seeds)}")
    row = seeds.index(seed) if seed is not None else 0
    arrays = {name: np.asarray(array[row]) for name, array in loaded.arrays.items()}
    state = algorithm.init(0)
    state = algorithm.with_policy(state, unflatten(algorithm.policy(state), arrays))
    return Acting(spec, algorithm, state, about.get("env_steps"))


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))


def spec_from_json(facts: Mapping[str, Any]) -> EnvSpec:
    """Return the spec that `spec_to_json` wrote; the bounds of observations are not in it."""
    dtype, shape = np.dtype(facts["observation"]["dtype"]), tuple(facts["observation"]["shape"])
    low, high = -np.inf, np.inf
    if dtype == np.uint8:
        low, high = 0, facts["observation"].get("high", 255)
    seen = Box(np.full(shape, low, dtype), np.full(shape, high, dtype), dtype)
    action = facts["action"]
    return EnvSpec(
        facts["id"],
        seen,
        Discrete(action["n"]) if "n" in action else _box(action["low"], action["high"]),
        facts["max_episode_steps"],
        facts["frame_stack"],
    )


def _box(low: Any, high: Any) -> Box:
    kind = np.dtype(np.float32)
    return Box(np.asarray(low, kind), np.asarray(high, kind), kind)
