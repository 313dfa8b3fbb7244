"""What a driver needs of an algorithm: pure functions and two static numbers.

An algorithm never logs, prints, reads a clock or a file. Everything it learns is in its state, a
pytree of arrays; drivers `vmap` the functions over seeds.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxtyping import Array, Float

State = Any
Metrics = dict[str, Float[Array, ""]]


class Algorithm(NamedTuple):
    """A configured algorithm.

    Attributes:
        name: what a person types.
        num_envs: N, environments stepped side by side for one seed.
        rollout_length: T, env steps of each of them between two updates.
        init: (seed) -> state, as NumPy arrays, on the host.
        act: (state, obs (N, ...), key) -> actions (N, ...), what `update` must remember of them.
        act_greedily: (state, obs (N, ...)) -> the most probable actions.
        exploit: (state, obs (N, ...), key) -> the actions of a policy that has done learning.
        update: (state, batch with axes (T, N), key) -> state, metrics.
        policy: (state) -> the part of the state that acting needs, for a checkpoint of that alone.
        with_policy: (state, such a part) -> the state with that part in it.
    """

    name: str
    num_envs: int
    rollout_length: int
    init: Callable[[int], State]
    act: Callable[..., tuple[Any, Any]]
    act_greedily: Callable[..., Any]
    exploit: Callable[..., Any]
    update: Callable[..., tuple[State, Metrics]]
    policy: Callable[[State], Any]
    with_policy: Callable[[State, Any], State]
