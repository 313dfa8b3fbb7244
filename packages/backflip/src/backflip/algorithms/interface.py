"""The interface between algorithms and drivers: pure functions and static numbers.

An algorithm never logs, prints, reads a clock or a file. All that it learns is in its state, a
pytree of arrays. Drivers `vmap` the functions over seeds.
"""

from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Array, Float, Key, PRNGKeyArray, Shaped

from backflip.core.spec import EnvSpec
from backflip.core.types import Extra, Transition

State = Any  # an algorithm's own pytree: everything it has learned
SavedPolicy = Any  # an algorithm's own pytree: the part of its state that acts after training
Metrics = dict[str, Float[Array, ""]]


@runtime_checkable
class Settings(Protocol):
    """What the settings of every algorithm have."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def env_steps(self) -> int:
        """Env steps of one seed in total, random ones before learning included."""
        ...

    @property
    def num_envs(self) -> int:
        """N, environments side by side."""
        ...

    @property
    def rollout_length(self) -> int:
        """T, env steps of each between two updates."""
        ...

    @property
    def updates(self) -> int:
        """Calls of `Algorithm.update` of one seed in total: rollouts after learning starts."""
        ...


@runtime_checkable
class Init(Protocol):
    """Makes the first state."""

    def __call__(self, seed: int, /) -> State:
        """Return the state before the first update, as NumPy arrays, on the host."""
        ...


@runtime_checkable
class Act(Protocol):
    """Chooses actions during training."""

    def __call__(
        self, state: State, obs: Shaped[Array, "N ..."], key: Key[Array, "*octaves"], /
    ) -> tuple[Shaped[Array, "N ..."], Extra]:
        """Return an action for each of N observations, and what `update` needs of them.

        With `Algorithm.noise_octaves` K above 0, `key` has K keys.
        """
        ...


@runtime_checkable
class EvaluationAction(Protocol):
    """Chooses actions in an evaluation."""

    def __call__(
        self, state: State, obs: Shaped[Array, "N ..."], key: PRNGKeyArray, /
    ) -> Shaped[Array, "N ..."]:
        """Return an action for each of N observations."""
        ...


@runtime_checkable
class Update(Protocol):
    """Learns from a batch."""

    def __call__(
        self, state: State, batch: Transition, key: PRNGKeyArray, /
    ) -> tuple[State, Metrics]:
        """Return the state after learning from a batch, and metrics.

        The batch is a rollout (T, N), or with a replay U minibatches (U, B), for one gradient step
        each. Invalid rows must change nothing.
        """
        ...


@runtime_checkable
class Policy(Protocol):
    """Extracts the policy for a checkpoint."""

    def __call__(self, state: State, /) -> SavedPolicy:
        """Return the part of the state that acts after training."""
        ...


@runtime_checkable
class WithPolicy(Protocol):
    """Restores a policy from a checkpoint."""

    def __call__(self, state: State, part: SavedPolicy, /) -> State:
        """Return the state with the given policy."""
        ...


@runtime_checkable
class Assess(Protocol):
    """Predicts values of observations."""

    def __call__(
        self, state: State, obs: Shaped[Array, "N ..."], /
    ) -> dict[str, Float[Array, " N"]]:
        """Return predictions for each observation by name, such as `value` and `entropy`."""
        ...


@runtime_checkable
class Errors(Protocol):
    """Returns the errors of the last batch."""

    def __call__(self, state: State, /) -> Float[Any, "*batch"]:
        """Return the errors of the last batch's predictions, (U, B)."""
        ...


class Priorities(NamedTuple):
    """Prioritised experience replay.

    Attributes:
        exponent: α: a row is drawn with probability proportional to (|error| + ε)^α.
        correction: initial β of the weights (n P(i))^-β; it grows linearly to 1.
        corrected_after: updates after which β is 1.
        errors: the error of each row of the last batch.
    """

    exponent: float
    correction: float
    corrected_after: int
    errors: Errors


class Recency(NamedTuple):
    """How much of each minibatch is recent, since a learned reward is best where labels are new.

    Attributes:
        share: share of each minibatch from the newest env steps only.
        env_steps: how many those are, of one seed.
    """

    share: float = 0.0
    env_steps: int = 1


class ReplayPlan(NamedTuple):
    """The replay that an off-policy algorithm needs; the driver keeps it and draws from it.

    Attributes:
        capacity: env steps kept, of one seed.
        batch_size: B, rows of a minibatch.
        gradient_steps: U, after each rollout; static, so that one program is compiled.
        learning_starts: env steps of uniformly random actions before the first update.
        n_step: n, rewards summed before bootstrapping.
        discount: γ per env step, for those sums.
        priority: None draws rows uniformly.
        clip_rewards: clip true rewards to [-1, 1]; learned rewards, which have a scale of their
            own, are not clipped.
        keeps_successors: images are stored with their successors, which a learned reward needs.
        recency: how much of each minibatch is recent.
    """

    capacity: int
    batch_size: int
    gradient_steps: int
    learning_starts: int
    n_step: int = 1
    discount: float = 0.99
    priority: Priorities | None = None
    clip_rewards: bool = False
    keeps_successors: bool = False
    recency: Recency = Recency()


class Algorithm(NamedTuple):
    """A configured algorithm.

    Attributes:
        name: the name on the command line.
        num_envs: N, environments side by side for one seed.
        rollout_length: T, env steps of each environment between two updates.
        init: returns the state before the first update.
        act: chooses actions during training.
        evaluation_action: chooses actions in an evaluation.
        update: learns from a batch.
        policy: extracts the policy for a checkpoint.
        with_policy: restores a policy from a checkpoint.
        replay: the replay it needs; None learns from each rollout once.
        restarts: every rollout begins with a new episode in each environment.
        episode_steps: env steps after which training truncates an episode; 0: only the
            environment's own limit. Evaluations have whole episodes.
        whole_share: share of the N environments that `episode_steps` leaves alone.
        noise_octaves: K: `act` gets K keys for each env step, from which it draws noise that is
            correlated over env steps (`backflip.core.colored_noise`); 0: one key, independent.
        assess: predicts values of observations; None if the algorithm predicts nothing.
        sample: draws actions from the policy's distribution; None if the policy has none.
    """

    name: str
    num_envs: int
    rollout_length: int
    init: Init
    act: Act
    evaluation_action: EvaluationAction
    update: Update
    policy: Policy
    with_policy: WithPolicy
    replay: ReplayPlan | None = None
    restarts: bool = False
    episode_steps: int = 0
    whole_share: float = 0.0
    noise_octaves: int = 0
    assess: Assess | None = None
    sample: EvaluationAction | None = None


def for_learned_reward(algorithm: Algorithm, spec: EnvSpec, recency: Recency) -> Algorithm:
    """Return the algorithm with a replay that keeps everything a learned reward needs.

    A learned reward needs the successor of a terminated step, which a replay of images does not
    store by default. If nothing terminates, every successor is the next row's observation.
    """
    if algorithm.replay is None:
        return algorithm
    plan = algorithm.replay
    keeps = plan.keeps_successors or spec.terminates
    return algorithm._replace(replay=plan._replace(recency=recency, keeps_successors=keeps))
