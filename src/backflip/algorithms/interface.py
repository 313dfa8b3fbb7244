"""What a driver needs of an algorithm: pure functions and two static numbers.

An algorithm never logs, prints, reads a clock or a file. Everything it learns is in its state, a
pytree of arrays; drivers `vmap` the functions over seeds.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Array, Float


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


State = Any
Metrics = dict[str, Float[Array, ""]]


class Priorities(NamedTuple):
    """How rows of a replay are preferred, as in prioritised experience replay.

    Attributes:
        exponent: α: a row is drawn with a chance proportional to (|error| + ε)^α.
        correction: β at the start, of the weights (n P(i))^-β; it goes to 1 on a line.
        corrected_after: updates after which β is 1.
        errors: (state) -> (U, B), how wrong each row of the last batch was.
    """

    exponent: float
    correction: float
    corrected_after: int
    errors: Callable[[State], Any]


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
        clip_rewards: true rewards are learnt from as the nearest in [-1, 1].
    """

    capacity: int
    batch_size: int
    gradient_steps: int
    warm_up: int
    n_step: int = 1
    discount: float = 0.99
    priority: Priorities | None = None
    clip_rewards: bool = False


def rollouts_of(env_steps: int, num_envs: int, rollout_length: int) -> int:
    """Return how many rollouts make so many env steps; the last may go a little beyond."""
    return -(-env_steps // (num_envs * rollout_length))


class Algorithm(NamedTuple):
    """A configured algorithm.

    Attributes:
        name: what a person types.
        num_envs: N, environments stepped side by side for one seed.
        rollout_length: T, env steps of each of them between two updates.
        init: (seed) -> state, as NumPy arrays, on the host.
        act: (state, obs (N, ...), key) -> actions (N, ...), what `update` must remember of them.
        exploit: (state, obs (N, ...), key) -> the actions of a policy that has done learning.
        update: (state, batch, key) -> state, metrics. The batch has axes (T, N), or, with a replay,
            (U, B): U minibatches to make one gradient step each of.
        policy: (state) -> the part of the state that acting needs, for a checkpoint of that alone.
        with_policy: (state, such a part) -> the state with that part in it.
        replay: what to keep of the past and to draw from it; None learns each rollout once.
        restarts: every rollout begins with a new episode in each environment.
        assess: (state, obs (N, ...)) -> numbers (N,) by name, as `value` and `entropy`: what it
            thinks of each observation; None where it has nothing to say.
    """

    name: str
    num_envs: int
    rollout_length: int
    init: Callable[[int], State]
    act: Callable[..., tuple[Any, Any]]
    exploit: Callable[..., Any]
    update: Callable[..., tuple[State, Metrics]]
    policy: Callable[[State], Any]
    with_policy: Callable[[State, Any], State]
    replay: ReplayPlan | None = None
    restarts: bool = False
    assess: Callable[[State, Any], dict[str, Array]] | None = None
