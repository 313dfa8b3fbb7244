"""What a driver is: the loop around an algorithm, the same for both kinds of environment.

`native.NativeDriver` runs environments in JAX, a whole phase in one compiled program;
`host.HostDriver` steps Gymnasium's. Both call the same `act` and `update`, carry a leading axis of
seeds, and measure the same things under the same names.
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

# Env steps after which an evaluation stops an episode of an environment without a time limit.
LONGEST_EPISODE = 10_000

# Folded into the key of a seed. `split` uses the small numbers: these are out of its reach.
EVALUATION = 0x0E7A1000
RANDOM_POLICY = 0x0C11B000


class Learner(NamedTuple):
    """Everything one seed carries from one phase to the next; all of it is checkpointed.

    Attributes:
        algorithm: the algorithm's own state.
        env: (N, ...) states of native environments; `()` for host environments.
        episode_return: the true reward that each unfinished episode has paid so far.
        episode_length: its env steps so far.
        key: raw key data, from which all later randomness comes.
        replay: the memory of an off-policy algorithm; `()` for others. Outside JAX it is one for
            all seeds, in NumPy arrays, which are written in place.
    """

    algorithm: State
    env: EnvStates
    episode_return: Float[Any, " N"]
    episode_length: Float[Any, " N"]
    key: UInt32[Any, " words"]
    replay: Replay | tuple[()] = ()


class Phase(NamedTuple):
    """What a phase leaves beside the learners.

    Attributes:
        metrics: each of shape (seeds, records), a record for every `every` updates.
        record: transitions with *true* rewards of the last rollouts, (seeds, T', M, ...), or None.
        every: updates that a record of the metrics stands for; the last may stand for fewer.
    """

    metrics: dict[str, Float[Any, "seeds records"]]
    record: Transition | None
    every: int = 1


class Evaluation(NamedTuple):
    """Episodes of one policy: true returns and lengths (seeds, episodes), optimum or NaN."""

    returns: np.ndarray
    lengths: np.ndarray
    optimum: np.ndarray


OnEnvSteps = Callable[[int], None]  # told of the env steps done so far in each environment
OnEpisodes = Callable[[int, int], None]  # told of episodes that ended, and env steps, so far


def ignore_progress(*done: int) -> None:
    """Report no progress: a `OnEnvSteps` and a `OnEpisodes`."""
    del done


@runtime_checkable
class RewardFunction(Protocol):
    """The reward that an algorithm learns from."""

    def __call__(self, parameters: RewardParameters, batch: Transition, /) -> Float[Array, "T N"]:
        """Return the reward of every transition of a batch (T, N).

        Rows that were drawn from a replay come as single env steps, all of them along the axis T.
        `batch.reward` is the true reward, as the environment paid it: a learned reward must not
        look at it.
        """
        ...


@runtime_checkable
class RunPhase(Protocol):
    """What does the updates of a phase."""

    def __call__(
        self, learners: Learner, parameters: RewardParameters, tell: OnEnvSteps = ignore_progress, /
    ) -> tuple[Learner, Phase]:
        """Return the learners after the phase, and what it leaves beside them.

        Reward parameters have a leading axis of seeds; they are data: new ones compile nothing.
        `tell` is called every now and then: where all updates are one compiled program, with an
        estimate; elsewhere the last env step of a rollout is done once it is learned from. The
        learners handed in may be used up.
        """
        ...


def own_reward(parameters: RewardParameters, batch: Transition) -> Float[Array, "T N"]:
    """Return the environment's own reward: what plain training learns from."""
    del parameters
    return batch.reward


@runtime_checkable
class Driver(Protocol):
    """One environment and one algorithm, and the loop that joins them."""

    @property
    def spec(self) -> EnvSpec:
        """The environment's public facts."""
        ...

    @property
    def algorithm(self) -> Algorithm:
        """What acts and learns."""
        ...

    @property
    def runs_compiled(self) -> bool:
        """Phases and evaluations are compiled programs without side effects.

        They can be compiled ahead by a call whose result is dropped, seeds go through them one by
        one on a CPU, and a value that nothing reads takes no memory.
        """
        ...

    @property
    def episodes_survive_phases(self) -> bool:
        """Episodes go on from one phase to the next.

        If not, a phase's end cuts them, and a phase should last several of the longest episodes.
        """
        ...

    @property
    def checks_env_steps(self) -> bool:
        """Every observation and reward is checked when the environment returns it.

        If not, an invalid one shows in the metrics of the phase.
        """
        ...

    @property
    def copies_of_learners(self) -> int:
        """How many copies of the learners, replays included, memory holds during a phase."""
        ...

    def start(self, seeds: Sequence[int]) -> Learner:
        """Return the learners of the given seeds before their first update, stacked."""
        ...

    def warm_up(self, learners: Learner, tell: OnEnvSteps = ignore_progress) -> Learner:
        """Return the learners with the random env steps in their replay that learning starts from.

        They belong to the env steps that `learning.env_steps_after` counts. An algorithm without
        a replay needs none. Their rewards are looked up when they are drawn, as those of all rows:
        a warm-up fits learning from a learned reward as well. The learners handed in may be used
        up. `tell` is called as in a phase.
        """
        ...

    def phase(
        self,
        updates: int,
        *,
        reward: RewardFunction = own_reward,
        record_rollouts: int = 0,
        record_envs: int = 0,
    ) -> RunPhase:
        """Return a function of (learners, reward parameters) that does `updates` updates.

        Rows drawn from a replay have their rewards looked up when they are drawn, each of the n
        that a row sums: after a refit the whole past has the new reward. (Priorities of a replay
        are the errors of rows when they were last drawn, with the reward of then.)

        The last `record_rollouts` rollouts of the first `record_envs` environments come back.
        """
        ...

    def random_record(
        self,
        seeds: Sequence[int],
        *,
        envs: int,
        env_steps: int,
        repeat: float,
        tell: OnEnvSteps = ignore_progress,
    ) -> Transition:
        """Return transitions of a random policy, as NumPy arrays (seeds, env_steps, envs, ...).

        Actions are uniform over the action space (standard normal where it has no bound); each
        repeats the one before with probability `repeat`. Rewards are true, observations their
        newest frame. The same seed gives the same record. `tell` is called as in a phase.
        """
        ...

    def evaluate(
        self,
        learners: Learner,
        seeds: Sequence[int],
        *,
        episodes: int,
        tell: OnEpisodes = ignore_progress,
    ) -> Evaluation:
        """Play fresh episodes with each learner's policy; the same seed, the same starts.

        `tell` is called as in a phase, with what all seeds have played.
        """
        ...

    def close(self) -> None:
        """Free what the environments hold, and the compiled programs that the driver keeps."""
        ...
