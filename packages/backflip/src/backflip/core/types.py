"""The record of experience that drivers write and algorithms read."""

from typing import Any, NamedTuple

from jaxtyping import Bool, Float, Shaped

Extra = Any  # an algorithm's own pytree


class Transition(NamedTuple):
    """One or many env steps; all fields share their leading axes, `*batch`.

    After these, `obs`, `next_obs` and `action` have the shape of one element of their space.

    Drivers stack transitions as (T, N), on the host as (S, T, N); a replay as (U, B). Arrays are
    JAX's in compiled programs and NumPy's outside. A field that its reader does not need may be
    `()`.

    `next_obs` is always the true successor of `obs` under `action`: at the end of an episode its
    last observation, never the first of the next episode. A row with `valid` false is not a
    transition (a vector environment's reset row): every loss, statistic and count leaves it out.

    Attributes:
        obs: the observation from which the action was chosen.
        action: the action that the policy chose, before clipping to the environment's bounds.
        reward: the environment's reward, or that of a reward model.
        terminated: the task's own rule ended the episode; no value follows.
        truncated: a time limit cut the episode; `next_obs` still has a value.
        next_obs: the true successor.
        valid: the row is a transition.
        extra: what `act` returned for `update` (log-probability, value, ...).
        scene: numbers from which a picture of the state before the step can be drawn, or the
            picture itself, a `bytes` object; `()` if observations suffice or nothing is recorded.
    """

    obs: Shaped[Any, "*batch_and_space"]
    action: Shaped[Any, "*batch_and_space"]
    reward: Float[Any, "*batch"]
    terminated: Bool[Any, "*batch"]
    truncated: Bool[Any, "*batch"]
    next_obs: Shaped[Any, "*batch_and_space"]
    valid: Bool[Any, "*batch"]
    extra: Extra
    scene: Shaped[Any, "*batch_and_scene"] | tuple[()] = ()
