"""What is kept of a state that has an actor and critics, when learning is over."""

from typing import Any, NamedTuple


class ActingPart(NamedTuple):
    """What acting needs, and what says how good it is.

    Attributes:
        actor: parameters of the policy.
        critics: of each critic, so that what a state is worth can be shown.
    """

    actor: Any
    critics: Any


def acting_part(state: Any) -> ActingPart:
    """Return what acting and judging need of a state."""
    return ActingPart(state.actor, state.critics)


def with_acting_part(state: Any, part: ActingPart) -> Any:
    """Return the state with another policy in it, and what that policy's critics said."""
    return state._replace(actor=part.actor, critics=part.critics)
