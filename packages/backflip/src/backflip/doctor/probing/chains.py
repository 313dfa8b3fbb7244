"""The episodes of each probe, as data from which learned values can be predicted."""

from collections.abc import Mapping
from typing import NamedTuple

from backflip.envs.native.extra_probes import ROWS

LIMIT = 10  # env steps of an episode of `probe:truncation`


class Step(NamedTuple):
    """One env step of an episode under the best policy.

    Attributes:
        state: the number of the state; states shown come first, in their order.
        reward: what follows.
        next_state: the number of the state reached.
        truncated: a time limit ends the episode here.
        bootstraps: V(next_state) belongs to the target: the step does not terminate.
        choices: the number of actions, none of which is better.
    """

    state: int
    reward: float
    next_state: int
    truncated: bool = False
    bootstraps: bool = True
    choices: int = 1


Episode = tuple[Step, ...]
Chain = tuple[Episode, ...]  # episodes that are equally likely


def _one_step(*rewards: float) -> Chain:
    """Return episodes of one step, each from a state of its own, which it does not leave."""
    each = enumerate(rewards)
    return tuple((Step(state, reward, state, bootstraps=False),) for state, reward in each)


def _rows() -> Chain:
    """Return the episodes of `probe:row`, whose last observations belong to no step."""
    shown = [(kind, at) for kind in range(ROWS) for at in range(kind + 1)]
    hidden = [(kind, at) for kind in range(ROWS) for at in range(kind + 1, ROWS + 1)]
    number = {place: index for index, place in enumerate(shown + hidden)}
    return tuple(
        tuple(
            Step(
                number[kind, at],
                float(kind == at),
                number[kind, at + 1],
                bootstraps=at + 1 < ROWS,
            )
            for at in range(ROWS)
        )
        for kind in range(ROWS)
    )


CHAINS: Mapping[str, Chain] = {
    "probe:1": _one_step(1.0),
    "probe:2": _one_step(-1.0, 1.0),
    "probe:3": ((Step(0, 0.0, 1), Step(1, 1.0, 1, bootstraps=False)),),
    "probe:idle": ((Step(0, 1.0, 0, bootstraps=False, choices=2),),),
    "probe:row": _rows(),
    "probe:truncation": ((Step(0, 1.0, 0),) * (LIMIT - 1) + (Step(0, 1.0, 0, truncated=True),),),
    "probe:4": _one_step(1.0),
    "probe:5": _one_step(1.0, 1.0),
}
