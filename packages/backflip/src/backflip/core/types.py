"""The one record of experience that every driver writes and every algorithm reads."""

from typing import Any, NamedTuple

from jaxtyping import Bool, Float, Shaped

Extra = Any  # an algorithm's own pytree


class Transition(NamedTuple):
    """One env step of one environment, or of many: fields share their leading axes, `*batch`.

    Behind these, `obs`, `next_obs` and `action` have the shape of one element of their space.

    Drivers stack them as (T, N), on the host as (S, T, N); a replay as (U, B). Arrays are JAX's in
    compiled programs and NumPy's outside them. A field that its reader does not need may be `()`.

    `next_obs` is always the true successor of `obs` under `action`: the last observation of the
    old episode where one ended, never the first of the next. A row with `valid` false is no
    transition (a vector environment's reset row): every loss, statistic and count leaves it out.

    Attributes:
        obs: the observation the action was chosen from.
        action: the action the policy chose, before any clipping to the environment's bounds.
        reward: what the environment paid, or what a reward model predicts.
        terminated: the episode ended by the task's own rule; nothing follows.
        truncated: the episode was cut by a time limit; the value of `next_obs` still counts.
        next_obs: the observation reached.
        valid: the row is a transition.
        extra: what `act` returned for `update` (log-probability, value, ...).
        scene: numbers from which a picture of the moment before the step can be drawn; `()` where
            observations suffice for that, or nothing is recorded.
    """

    obs: Shaped[Any, "*batch_and_space"]
    action: Shaped[Any, "*batch_and_space"]
    reward: Float[Any, "*batch"]
    terminated: Bool[Any, "*batch"]
    truncated: Bool[Any, "*batch"]
    next_obs: Shaped[Any, "*batch_and_space"]
    valid: Bool[Any, "*batch"]
    extra: Extra
    scene: Float[Any, "*batch S"] | tuple[()] = ()
