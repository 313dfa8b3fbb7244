"""The driver for environments outside JAX: a host loop around the same `act` and `update`.

The environments of all S seeds are the rows of one batch of S N, seed by seed; `act` and `update`
are compiled once, `vmap`ped over the seeds. What the algorithm, the metrics and the clips get is
what `backflip.drivers.native` gives them.

The state inside a host environment cannot be saved. So every phase begins with a reset of all
environments, from seeds that follow from the learner's key, which follows from the seed and the
updates done. The episodes a phase leaves unfinished are cut there, as by a time limit: learned from
as far as they went, counted nowhere. A run killed and resumed after any phase is then equal to one
never killed. Phases should last several episodes.
"""

from collections.abc import Callable, Sequence
from typing import final

import jax
import numpy as np
from jaxtyping import Array

from backflip.algorithms.interface import Algorithm
from backflip.core.replay.layout import empty
from backflip.core.spec import EnvSpec
from backflip.core.trees import stack_rows
from backflip.core.types import Transition
from backflip.drivers.acting import HostPolicy
from backflip.drivers.driver import (
    Evaluation,
    Learner,
    OnEnvSteps,
    OnEpisodes,
    RewardFunction,
    RunPhase,
    ignore_progress,
    own_reward,
)
from backflip.drivers.host_evaluation import evaluate_on_host
from backflip.drivers.host_phase import prepare_phase
from backflip.drivers.host_random_play import random_record_on_host, warm_up_on_host
from backflip.drivers.learning import layout_of, rollouts_of_warm_up
from backflip.envs.spec import HostEnv

ENVS_OF_EVALUATION = 10  # of each seed, at least


@final
class HostDriver:
    """The driver of an environment outside JAX; the interface is `Driver`'s.

    Args:
        make_env: returns a batch of so many environments. Called with 1 for the spec, and again
            when a number of rows is needed that is not open.
        algorithm: the configured algorithm.
    """

    def __init__(self, make_env: Callable[[int], HostEnv], algorithm: Algorithm) -> None:
        self._make_env = make_env
        self._algorithm = algorithm
        self._env: HostEnv | None = None
        self._explorer = HostPolicy(algorithm.act)
        self._evaluator = HostPolicy(algorithm.evaluation_action)
        self._spec: EnvSpec | None = None

    @property
    def spec(self) -> EnvSpec:
        """The environment's public facts."""
        if self._spec is None:
            self._spec = (self._env or self._batch(1)).spec
        return self._spec

    @property
    def algorithm(self) -> Algorithm:
        """What acts and learns."""
        return self._algorithm

    @property
    def runs_compiled(self) -> bool:
        """Environments are stepped one call at a time."""
        return False

    @property
    def episodes_survive_phases(self) -> bool:
        """The state inside an environment cannot be saved: a phase begins with a reset."""
        return False

    @property
    def checks_env_steps(self) -> bool:
        """`HostEnv` refuses invalid observations and rewards at every env step."""
        return True

    @property
    def copies_of_learners(self) -> int:
        """A replay, the largest part of learners, is written in place."""
        return 1

    def start(self, seeds: Sequence[int]) -> Learner:
        """Return the learners of the given seeds before their first update, stacked."""

        def begin(seed: Array) -> Array:
            return jax.random.key_data(jax.random.split(jax.random.key(seed))[1])

        keys = np.asarray(jax.jit(jax.vmap(begin))(np.asarray(seeds)))
        learned = stack_rows([self._algorithm.init(seed) for seed in seeds])
        zeros = np.zeros((len(seeds), self._algorithm.num_envs), np.float32)
        memory = ()
        if self._algorithm.replay is not None:
            memory = empty(layout_of(self.spec, self._algorithm, len(seeds)))
        return Learner(learned, (), zeros, zeros.copy(), keys, memory)

    def warm_up(self, learners: Learner, tell: OnEnvSteps = ignore_progress) -> Learner:
        """Return the learners with a replay of random env steps to start learning from."""
        if not rollouts_of_warm_up(self._algorithm):
            return learners
        env = self._batch(learners.key.shape[0] * self._algorithm.num_envs)
        return warm_up_on_host(env, self._algorithm, learners, tell)

    def phase(
        self,
        updates: int,
        *,
        reward: RewardFunction = own_reward,
        record_rollouts: int = 0,
        record_envs: int = 0,
    ) -> RunPhase:
        """Return a function of (learners, reward parameters) that does `updates` updates."""
        return prepare_phase(
            self.spec,
            self._algorithm,
            self._batch,
            self._explorer,
            updates=updates,
            reward=reward,
            record_rollouts=record_rollouts,
            record_envs=record_envs,
        )

    def random_record(
        self,
        seeds: Sequence[int],
        *,
        envs: int,
        env_steps: int,
        repeat: float,
        tell: OnEnvSteps = ignore_progress,
    ) -> Transition:
        """Return transitions of a random policy, (seeds, env_steps, envs, ...) in NumPy.

        Invalid rows, where an environment only reset, are part of the record and marked.
        """
        env = self._batch(len(seeds) * envs)
        return random_record_on_host(env, seeds, env_steps, repeat, tell)

    def evaluate(
        self,
        learners: Learner,
        seeds: Sequence[int],
        *,
        episodes: int,
        tell: OnEpisodes = ignore_progress,
    ) -> Evaluation:
        """Play fresh episodes with each learner's policy; the same seed, the same starts.

        Episodes are played in rounds, one in each environment, every one from a seed of its own.
        There are N environments, or ten: a learner with one would take ten times as long. Where
        there is no time limit an episode is stopped after 10,000 env steps.
        """
        count = min(max(self._algorithm.num_envs, ENVS_OF_EVALUATION), episodes)
        env = self._batch(len(seeds) * count)
        return evaluate_on_host(env, self._evaluator, learners.algorithm, seeds, episodes, tell)

    def close(self) -> None:
        """Free what the environments hold, and the compiled policies."""
        self._explorer.forget()
        self._evaluator.forget()
        self._close_env()

    def _close_env(self) -> None:
        if self._env is not None:
            self._env.close()
            self._env = None

    def _batch(self, rows: int) -> HostEnv:
        """Return a batch of so many environments, the open one where it fits."""
        if self._env is None or self._env.num_envs != rows:
            self._close_env()
            self._env = self._make_env(rows)
        return self._env
