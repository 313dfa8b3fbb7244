"""The one record of experience that every driver writes and every algorithm reads."""

from typing import Any, NamedTuple


class Transition(NamedTuple):
    """One step of one environment; fields carry leading axes (T, N) once a driver stacks them.

    `next_obs` is always the true successor of `obs` under `action`: the last observation of the
    old episode where one ended, never the first of the next. A row with `valid` false did not
    happen (a vector environment's reset row): every loss, statistic and count leaves it out.

    Attributes:
        obs: the observation the action was chosen from.
        action: the action the policy chose, before any clipping to the environment's bounds.
        reward: what the environment paid, or what a reward model says it is worth.
        terminated: the episode ended by the task's own rule; nothing follows.
        truncated: the episode was cut by a time limit; the state goes on having a value.
        next_obs: the observation reached.
        valid: the row is a transition.
        extra: what `act` remembers for `update` (log-probability, value, ...).
        scene: float32 (..., S) numbers from which a picture of the moment before the step can be
            drawn; `()` where the observation suffices for that, or nobody records.
    """

    obs: Any
    action: Any
    reward: Any
    terminated: Any
    truncated: Any
    next_obs: Any
    valid: Any
    extra: Any
    scene: Any = ()
