"""The driver for environments in JAX: many updates of many seeds in one compiled program.

A phase advances each seed's `Learner` by a number of updates: a rollout of T env steps in N
environments, rewards from the environment or a reward model, one `update`. An off-policy algorithm
learns from rows of its replay, which is part of the learner. Seeds are distributed over the
devices. On a CPU they run one after the other, which is as fast as `vmap` there and makes a seed's
bits independent of the other seeds; elsewhere they are `vmap`ped. The parameters of a reward model
are data: a new reward model never recompiles anything.
"""

from collections.abc import Callable, Sequence
from typing import Any, final

import jax
import numpy as np
from jaxtyping import Array

from backflip.algorithms.interface import Algorithm
from backflip.core.replay.layout import empty
from backflip.core.spec import EnvSpec
from backflip.core.trees import copies, stack_rows
from backflip.core.types import Transition
from backflip.drivers.driver import (
    EVALUATION,
    RANDOM_POLICY,
    EnvStates,
    Evaluation,
    Learner,
    OnEnvSteps,
    OnEpisodes,
    RewardFunction,
    RunPhase,
    ignore_progress,
    own_reward,
)
from backflip.drivers.learning import layout_of, random_rollouts
from backflip.drivers.native_evaluation import Evaluate, compile_evaluation
from backflip.drivers.native_phase import compile_fill_replay, compile_phase
from backflip.drivers.native_random_play import compile_random_play
from backflip.drivers.seeds import seed_keys
from backflip.drivers.waiting import wait_for
from backflip.envs.spec import NativeEnv


@final
class NativeDriver:
    """The `Driver` of an environment in JAX."""

    def __init__(self, env: NativeEnv, algorithm: Algorithm) -> None:
        self._env = env
        self._algorithm = algorithm
        self._evaluations: dict[int, Evaluate] = {}
        self._random: dict[tuple[int, int], Callable[..., Any]] = {}

    @property
    def spec(self) -> EnvSpec:
        """The environment's public facts."""
        return self._env.spec

    @property
    def algorithm(self) -> Algorithm:
        """The configured algorithm."""
        return self._algorithm

    @property
    def runs_compiled(self) -> bool:
        """True: a phase is one compiled program."""
        return True

    @property
    def episodes_survive_phases(self) -> bool:
        """True: environment states are part of the learners."""
        return True

    @property
    def checks_env_steps(self) -> bool:
        """False: a compiled program cannot stop at a non-finite number."""
        return False

    @property
    def drawing_problem(self) -> str:
        """Empty: views of ours draw environments in JAX."""
        return ""

    def copies_of_learners(self, seeds: int) -> int:
        """2: a phase's arguments and results, or the learners and a checkpoint's file.

        4 if seeds are distributed: a checkpoint first gathers all rows, then those that are filled.
        """
        return 2 if seeds == 1 else 4

    def start(self, seeds: Sequence[int]) -> Learner:
        """Return the learners of the given seeds before their first update, stacked."""

        def begin(seed: Array) -> tuple[EnvStates, Array]:
            reset, rest = jax.random.split(jax.random.key(seed))
            keys = jax.random.split(reset, self._algorithm.num_envs)
            return jax.vmap(self._env.reset)(keys), jax.random.key_data(rest)

        states, keys = jax.tree.map(np.asarray, jax.jit(jax.vmap(begin))(np.array(seeds)))
        learned = stack_rows([self._algorithm.init(seed) for seed in seeds])
        zeros = np.zeros((len(seeds), self._algorithm.num_envs), np.float32)
        return Learner(learned, states, zeros, zeros.copy(), keys, self._empty_replays(len(seeds)))

    def _empty_replays(self, seeds: int) -> Any:
        if self._algorithm.replay is None:
            return ()
        return copies(empty(layout_of(self.spec, self._algorithm)), seeds)

    def fill_replay(self, learners: Learner, on_progress: OnEnvSteps = ignore_progress) -> Learner:
        """Return the learners with `learning_starts` random env steps in their replay."""
        if not random_rollouts(self._algorithm):
            return learners
        running = compile_fill_replay(self._env, self._algorithm)(learners)
        (filled,) = wait_for(running, lambda _: on_progress(0))
        return filled

    def phase(
        self,
        updates: int,
        *,
        reward: RewardFunction = own_reward,
        record_rollouts: int = 0,
        record_envs: int = 0,
        pictures: int = 0,
    ) -> RunPhase:
        """Compile `updates` updates into one function of (learners, reward parameters).

        Without `pictures`: environments in JAX do not draw themselves.
        """
        del pictures
        return compile_phase(
            self._env,
            self._algorithm,
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
        pictures: int = 0,
        on_progress: OnEnvSteps = ignore_progress,
    ) -> Transition:
        """Return transitions of a random policy, (seeds, env_steps, envs, ...) in NumPy."""
        del pictures
        shape = (envs, env_steps)
        if shape not in self._random:
            self._random[shape] = compile_random_play(self._env, *shape)
        chances = np.full(len(seeds), repeat, np.float32)
        running = self._random[shape](seed_keys(seeds, RANDOM_POLICY), chances)
        (record,) = wait_for(running, lambda _: on_progress(0))
        return jax.tree.map(np.asarray, record)

    def evaluate(
        self,
        learners: Learner,
        seeds: Sequence[int],
        *,
        episodes: int,
        on_progress: OnEpisodes = ignore_progress,
    ) -> Evaluation:
        """Play new episodes with each learner's policy; the seeds determine the first states."""
        if episodes not in self._evaluations:
            self._evaluations[episodes] = compile_evaluation(self._env, self._algorithm, episodes)
        keys = seed_keys(seeds, EVALUATION)
        return self._evaluations[episodes](learners.algorithm, keys, on_progress)

    def close(self) -> None:
        """Free the compiled programs that are kept for evaluations and random play."""
        self._evaluations.clear()
        self._random.clear()
