"""The driver for environments outside JAX: a host loop around the same `act` and `update`.

The environments of all S seeds are the rows of one batch of S N, seed by seed. `act` and `update`
are compiled once, `vmap`ped over the seeds. Algorithms, metrics and clips get the same data as from
`backflip.drivers.native`.

The state inside a host environment cannot be saved. So every phase begins with a reset of all
environments, with seeds derived from the learner's key, which depends only on the seed and the
number of updates. The end of a phase cuts unfinished episodes, like a time limit: the algorithm
learns from them, the episode statistics leave them out. A run that is killed and resumed after any
phase is then equal to an uninterrupted run. Phases should last several episodes.
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
from backflip.drivers.host_evaluation import FEWEST_EPISODES, evaluate_on_host
from backflip.drivers.host_phase import prepare_phase
from backflip.drivers.host_policy import HostPolicy
from backflip.drivers.host_random_play import fill_replay_on_host, random_record_on_host
from backflip.drivers.learning import layout_of, random_rollouts
from backflip.envs.spec import DrawsItself, HostEnv

ENVS_OF_EVALUATION = 10  # per seed, at least


@final
class HostDriver:
    """The `Driver` of an environment outside JAX.

    Args:
        make_env: (number of rows) -> a batch of that many environments. Called with 1 for the spec,
            and again whenever another number of rows is needed.
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
        """The configured algorithm."""
        return self._algorithm

    @property
    def runs_compiled(self) -> bool:
        """False: environments are stepped one call at a time."""
        return False

    @property
    def episodes_survive_phases(self) -> bool:
        """False: the state inside an environment cannot be saved."""
        return False

    @property
    def checks_env_steps(self) -> bool:
        """True: `HostEnv` refuses invalid observations and rewards at every env step."""
        return True

    def copies_of_learners(self, seeds: int) -> int:
        """2: the replay, which phases write in place, and the file of a checkpoint."""
        del seeds
        return 2

    @property
    def drawing_problem(self) -> str:
        """Why the environment's own `render()` gave no pictures."""
        render = self._env.own_render if isinstance(self._env, DrawsItself) else None
        return "" if render is None else render.problem

    def start(self, seeds: Sequence[int]) -> Learner:
        """Return the learners of the given seeds before their first update, stacked."""

        def begin(seed: Array) -> Array:
            return jax.random.key_data(jax.random.split(jax.random.key(seed))[1])

        keys = np.asarray(jax.jit(jax.vmap(begin))(np.asarray(seeds)))
        learned = stack_rows([self._algorithm.init(seed) for seed in seeds])
        zeros = np.zeros((len(seeds), self._algorithm.num_envs), np.float32)
        replay = ()
        if self._algorithm.replay is not None:
            replay = empty(layout_of(self.spec, self._algorithm, len(seeds)))
        return Learner(learned, (), zeros, zeros.copy(), keys, replay)

    def fill_replay(self, learners: Learner, on_progress: OnEnvSteps = ignore_progress) -> Learner:
        """Return the learners with `learning_starts` random env steps in their replay."""
        if not random_rollouts(self._algorithm):
            return learners
        env = self._batch(learners.key.shape[0] * self._algorithm.num_envs)
        return fill_replay_on_host(env, self._algorithm, learners, on_progress)

    def phase(
        self,
        updates: int,
        *,
        reward: RewardFunction = own_reward,
        record_rollouts: int = 0,
        record_envs: int = 0,
        pictures: int = 0,
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
            pictures=pictures,
        )

    def random_record(
        self,
        seeds: Sequence[int],
        *,
        envs: int,
        env_steps: int,
        repeat: float,
        pictures: int = 0,
        on_progress: OnEnvSteps = ignore_progress,
    ) -> Transition:
        """Return transitions of a random policy, (seeds, env_steps, envs, ...) in NumPy.

        Invalid rows, on which an environment only reset, are included and marked.
        """
        env = self._batch(len(seeds) * envs)
        return random_record_on_host(env, seeds, env_steps, repeat, pictures, on_progress)

    def evaluate(
        self,
        learners: Learner,
        seeds: Sequence[int],
        *,
        episodes: int,
        on_progress: OnEpisodes = ignore_progress,
    ) -> Evaluation:
        """Play new episodes with each learner's policy; the seeds determine the first states.

        Episodes are played in rounds, at most one in each environment, each with its own seed.
        There are N environments, at least ten: with one, an evaluation takes ten times as long.
        Without a time limit an episode is stopped after 10,000 env steps, and the evaluation after
        the round in which each seed has 20 episodes and 100,000 env steps.
        """
        count = min(max(self._algorithm.num_envs, ENVS_OF_EVALUATION), episodes)
        if self.spec.max_episode_steps is None:
            count = min(count, FEWEST_EPISODES)
        env = self._batch(len(seeds) * count)
        return evaluate_on_host(
            env, self._evaluator, learners.algorithm, seeds, episodes, on_progress
        )

    def close(self) -> None:
        """Close the environments and free the compiled policies."""
        self._explorer.forget()
        self._evaluator.forget()
        self._close_env()

    def _close_env(self) -> None:
        if self._env is not None:
            self._env.close()
            self._env = None

    def _batch(self, rows: int) -> HostEnv:
        """Return a batch of `rows` environments; reuse the open one if it has that size."""
        if self._env is None or self._env.num_envs != rows:
            self._close_env()
            self._env = self._make_env(rows)
        return self._env
