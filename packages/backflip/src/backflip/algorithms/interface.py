"""What a driver needs of an algorithm: pure functions and two static numbers.

An algorithm never logs, prints, reads a clock or a file. Everything it learns is in its state, a
pytree of arrays; drivers `vmap` the functions over seeds.
"""

from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Array, Float, PRNGKeyArray, Shaped

from backflip.core.spec import EnvSpec
from backflip.core.types import Extra, Transition

State = Any  # an algorithm's own pytree: all that it has learned
ActingPart = Any  # an algorithm's own pytree: the part of its state that acting needs
Metrics = dict[str, Float[Array, ""]]


@runtime_checkable
class Settings(Protocol):
    """What every algorithm's frozen dataclass of settings has."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def env_steps(self) -> int:
        """Env steps of one seed in all, a warm-up's included."""
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
        """Calls of `Algorithm.update` of one seed in all: rollouts after the warm-up."""
        ...


@runtime_checkable
class Init(Protocol):
    """How learning starts."""

    def __call__(self, seed: int, /) -> State:
        """Return the state before the first update, as NumPy arrays, on the host."""
        ...


@runtime_checkable
class Act(Protocol):
    """How actions are chosen while learning."""

    def __call__(
        self, state: State, obs: Shaped[Array, "N ..."], key: PRNGKeyArray, /
    ) -> tuple[Shaped[Array, "N ..."], Extra]:
        """Return an action for each of N observations, and what `update` needs to know of them."""
        ...


@runtime_checkable
class EvaluationAction(Protocol):
    """How actions are chosen in an evaluation."""

    def __call__(
        self, state: State, obs: Shaped[Array, "N ..."], key: PRNGKeyArray, /
    ) -> Shaped[Array, "N ..."]:
        """Return an action for each of N observations."""
        ...


@runtime_checkable
class Update(Protocol):
    """How an algorithm learns."""

    def __call__(
        self, state: State, batch: Transition, key: PRNGKeyArray, /
    ) -> tuple[State, Metrics]:
        """Return the state after learning from a batch, and what was measured of it.

        The batch has axes (T, N): a rollout. With a replay it has axes (U, B): U minibatches, for
        one gradient step each. Rows with `valid` false must change nothing.
        """
        ...


@runtime_checkable
class Policy(Protocol):
    """What a checkpoint of the policy alone holds."""

    def __call__(self, state: State, /) -> ActingPart:
        """Return the part of the state that acting needs."""
        ...


@runtime_checkable
class WithPolicy(Protocol):
    """How a policy comes back from a checkpoint."""

    def __call__(self, state: State, part: ActingPart, /) -> State:
        """Return the state with such a part in it."""
        ...


@runtime_checkable
class Assess(Protocol):
    """What an algorithm predicts for observations."""

    def __call__(
        self, state: State, obs: Shaped[Array, "N ..."], /
    ) -> dict[str, Float[Array, " N"]]:
        """Return numbers of each observation by name, as `value` and `entropy`."""
        ...


@runtime_checkable
class Errors(Protocol):
    """How wrong the last predictions of a state were."""

    def __call__(self, state: State, /) -> Float[Any, "*batch"]:
        """Return the errors of the rows of the last batch, (U, B)."""
        ...


class Priorities(NamedTuple):
    """How rows of a replay are preferred, as in prioritised experience replay.

    Attributes:
        exponent: α: a row is drawn with a chance proportional to (|error| + ε)^α.
        correction: β at the start, of the weights (n P(i))^-β; it goes to 1 on a line.
        corrected_after: updates after which β is 1.
        errors: how wrong each row of the last batch was.
    """

    exponent: float
    correction: float
    corrected_after: int
    errors: Errors


class ReplayPlan(NamedTuple):
    """What an off-policy algorithm wants of the past; a driver keeps it and draws from it.

    Attributes:
        capacity: env steps kept, of one seed.
        batch_size: B, rows of a minibatch.
        gradient_steps: U, after each rollout; static, so that one program is compiled.
        warm_up: env steps of uniformly random actions before the first rollout.
        n_step: n, rewards summed before bootstrapping.
        discount: γ per env step, for those sums.
        priority: how rows are preferred; None draws them uniformly.
        clip_rewards: true rewards are learned from as the nearest in [-1, 1]; learned rewards,
            which have a scale of their own, are not clipped.
        keeps_successors: images are stored with their successors, which a learned reward looks at.
    """

    capacity: int
    batch_size: int
    gradient_steps: int
    warm_up: int
    n_step: int = 1
    discount: float = 0.99
    priority: Priorities | None = None
    clip_rewards: bool = False
    keeps_successors: bool = False


def rollouts_of(env_steps: int, num_envs: int, rollout_length: int) -> int:
    """Return how many rollouts make so many env steps; the last may go a little beyond."""
    return -(-env_steps // (num_envs * rollout_length))


class Algorithm(NamedTuple):
    """A configured algorithm.

    Attributes:
        name: what a person types.
        num_envs: N, environments stepped side by side for one seed.
        rollout_length: T, env steps of each of them between two updates.
        init: the state before the first update.
        act: actions while learning.
        evaluation_action: actions in an evaluation.
        update: learning from a batch.
        policy: the part of the state that acting needs, for a checkpoint of that alone.
        with_policy: the state with such a part in it.
        replay: what to keep of the past and to draw from it; None learns each rollout once.
        restarts: every rollout begins with a new episode in each environment.
        assess: what it predicts for observations; None where it predicts nothing.
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
    assess: Assess | None = None


def for_learned_reward(algorithm: Algorithm, spec: EnvSpec) -> Algorithm:
    """Return the algorithm with a replay that keeps all that a learned reward looks at.

    A learned reward looks at the successor of a terminated step, which is not otherwise kept of
    images. Where nothing terminates, every successor that is needed is the next row's observation.
    """
    if algorithm.replay is None or not spec.terminates:
        return algorithm
    return algorithm._replace(replay=algorithm.replay._replace(keeps_successors=True))
