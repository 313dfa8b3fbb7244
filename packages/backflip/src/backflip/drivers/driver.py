"""The interface of drivers, the same for both kinds of environment.

`native.NativeDriver` runs JAX environments, a whole phase in one compiled program.
`host.HostDriver` steps Gymnasium environments. Both call the same `act` and `update`, have a
leading axis of seeds, and return the same metrics.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Array, Float, UInt32

from backflip.algorithms.interface import Algorithm, State
from backflip.core.replay.layout import Replay
from backflip.core.spec import EnvSpec
from backflip.core.types import Transition

EnvStates = Any  # an environment's own pytree
RewardParameters = Any  # a reward model's own pytree

# Folded into the key of a seed. `split` folds in small numbers, which these cannot equal.
EVALUATION = 0x0E7A1000
RANDOM_POLICY = 0x0C11B000
REWARD_FIT = 0x0F17B000


class Learner(NamedTuple):
    """Everything one seed carries from one phase to the next; all of it is checkpointed.

    Attributes:
        algorithm: the algorithm's own state.
        env: (N, ...) states of native environments; `()` for host environments.
        episode_return: true reward so far in each unfinished episode.
        episode_length: env steps so far in each unfinished episode.
        key: raw key data, the source of all later randomness.
        replay: the replay of an off-policy algorithm; `()` for others. Host environments have one
            replay for all seeds, in NumPy arrays, which are written in place.
    """

    algorithm: State
    env: EnvStates
    episode_return: Float[Any, " N"]
    episode_length: Float[Any, " N"]
    key: UInt32[Any, " words"]
    replay: Replay | tuple[()] = ()


class Phase(NamedTuple):
    """Metrics and recorded transitions of a phase.

    Attributes:
        metrics: each of shape (seeds, records), one record for every `every` updates.
        record: transitions with *true* rewards of the last rollouts, (seeds, T', M, ...), or None.
        every: updates per record of the metrics; the last record may have fewer.
    """

    metrics: dict[str, Float[Any, "seeds records"]]
    record: Transition | None
    every: int = 1


class Evaluation(NamedTuple):
    """What evaluation episodes were like, each of shape (seeds, episodes).

    Attributes:
        returns: true returns.
        lengths: env steps.
        optimum: the best possible returns, or NaN.
        cut: whether the episode was stopped before it ended (`EnvSpec.longest_episode`).
    """

    returns: np.ndarray
    lengths: np.ndarray
    optimum: np.ndarray
    cut: np.ndarray


OnEnvSteps = Callable[[int], None]  # (env steps so far in each environment)
OnEpisodes = Callable[[int, int], None]  # (episodes ended so far, env steps so far)
OnUpdate = Callable[[int, State], None]  # (updates of the phase so far, states of all seeds)


def ignore_progress(*done: Any) -> None:
    """Do nothing: the default `OnEnvSteps`, `OnEpisodes` and `OnUpdate`."""
    del done


@runtime_checkable
class RewardFunction(Protocol):
    """The reward that an algorithm learns from."""

    def __call__(self, parameters: RewardParameters, batch: Transition, /) -> Float[Array, "T N"]:
        """Return the reward of every transition of a batch (T, N).

        Rows drawn from a replay come as single env steps, all along the axis T. `batch.reward` is
        the true reward; a learned reward must not read it.
        """
        ...


@runtime_checkable
class RunPhase(Protocol):
    """Does the updates of a phase."""

    def __call__(
        self,
        learners: Learner,
        parameters: RewardParameters,
        on_progress: OnEnvSteps = ignore_progress,
        on_update: OnUpdate = ignore_progress,
        /,
    ) -> tuple[Learner, Phase]:
        """Return the learners after the phase, and its metrics and recorded transitions.

        Args:
            learners: the learners before the phase; they may be overwritten.
            parameters: those of the reward function, with a leading axis of seeds. They are data:
                new values compile nothing.
            on_progress: called from time to time. During a compiled phase it gets an estimate;
                otherwise the last env step of a rollout counts after the update.
            on_update: called after each update, by a compiled phase only after the last; the next
                update overwrites the states.
        """
        ...


def own_reward(parameters: RewardParameters, batch: Transition) -> Float[Array, "T N"]:
    """Return the environment's own reward, for training without a reward model."""
    del parameters
    return batch.reward


@runtime_checkable
class Driver(Protocol):
    """Joins one environment and one algorithm."""

    @property
    def spec(self) -> EnvSpec:
        """The environment's public facts."""
        ...

    @property
    def algorithm(self) -> Algorithm:
        """The configured algorithm."""
        ...

    @property
    def runs_compiled(self) -> bool:
        """Whether phases and evaluations are compiled programs without side effects.

        Then a call whose result is dropped compiles ahead, a CPU runs seeds one by one, and a value
        that nothing reads takes no memory.
        """
        ...

    @property
    def episodes_survive_phases(self) -> bool:
        """Whether episodes continue from one phase to the next.

        If not, the end of a phase cuts them, and a phase should last several of the longest
        episodes.
        """
        ...

    @property
    def checks_env_steps(self) -> bool:
        """Whether every observation and reward is checked when the environment returns it.

        If not, invalid values appear in the metrics of the phase.
        """
        ...

    @property
    def drawing_problem(self) -> str:
        """Why the environment's own `render()` gave no pictures; empty if it has none or works."""
        ...

    def copies_of_learners(self, seeds: int) -> int:
        """Most copies of the learners of `seeds` seeds in memory at once, replays included."""
        ...

    def start(self, seeds: Sequence[int]) -> Learner:
        """Return the learners of the given seeds before their first update, stacked."""
        ...

    def fill_replay(self, learners: Learner, on_progress: OnEnvSteps = ignore_progress) -> Learner:
        """Return the learners with `learning_starts` random env steps in their replay.

        `learning.env_steps_after` counts these env steps. An algorithm without a replay needs none.
        Their rewards are looked up when rows are drawn, so they also serve a learned reward.

        Args:
            learners: the learners of `start`; they may be overwritten.
            on_progress: called from time to time.
        """
        ...

    def phase(
        self,
        updates: int,
        *,
        reward: RewardFunction = own_reward,
        record_rollouts: int = 0,
        record_envs: int = 0,
        pictures: int = 0,
    ) -> RunPhase:
        """Return a function of (learners, reward parameters) that does `updates` updates.

        Rewards of replayed rows are looked up when they are drawn, each of the n that a row sums:
        after a refit the whole replay has the new reward. (Priorities are the errors of rows when
        they were last drawn, with the reward model of that time.)

        Args:
            updates: updates of the phase.
            reward: the reward that the algorithm learns from.
            record_rollouts: how many rollouts the record has, the last of the phase.
            record_envs: how many environments the record has, the first ones.
            pictures: about how many pictures of each seed the record has at most, if the
                environment draws itself (see `backflip.envs.rendering`): those of whole
                environments, or of the end of one.
        """
        ...

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
        """Return transitions of a random policy, as NumPy arrays (seeds, env_steps, envs, ...).

        Actions are uniform over the action space (standard normal without bounds). Rewards are
        true, observations are the newest frame. The same seed gives the same record, with or
        without pictures.

        Args:
            seeds: the seeds.
            envs: environments of each seed.
            env_steps: env steps of each environment.
            repeat: the probability with which an action repeats the previous one.
            pictures: about how many pictures of each seed the record has at most, as in a phase.
            on_progress: called from time to time.
        """
        ...

    def evaluate(
        self,
        learners: Learner,
        seeds: Sequence[int],
        *,
        episodes: int,
        on_progress: OnEpisodes = ignore_progress,
    ) -> Evaluation:
        """Play new episodes with each learner's policy, and return what they were like.

        Args:
            learners: the learners, with a leading axis of seeds.
            seeds: they determine the first states.
            episodes: episodes of each seed.
            on_progress: called from time to time, with the sums over all seeds.
        """
        ...

    def close(self) -> None:
        """Close the environments and free the compiled programs."""
        ...
