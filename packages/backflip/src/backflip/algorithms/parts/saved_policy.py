"""The saved policy of an algorithm with an actor and critics."""

from typing import Any, NamedTuple


class SavedPolicy(NamedTuple):
    """The part of a state that acts after training, and the critics, which predict values.

    Attributes:
        actor: parameters of the policy.
        critics: parameters of each critic.
    """

    actor: Any
    critics: Any


def saved_policy(state: Any) -> SavedPolicy:
    """Return actor and critics of a state."""
    return SavedPolicy(state.actor, state.critics)


def with_saved_policy(state: Any, part: SavedPolicy) -> Any:
    """Return the state with the actor and critics of `part`."""
    return state._replace(actor=part.actor, critics=part.critics)
