"""Key bindings: which keys choose which action."""

from typing import NamedTuple

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec, combinations
from backflip.envs.ids import family

# Names of actions, in order, for environments that do not name them.
NAMES = {
    "dot": ("stay", "down", "right", "up", "left"),
    "Acrobot": ("left", "none", "right"),
    "CartPole": ("left", "right"),
    "CliffWalking": ("up", "right", "down", "left"),
    "FrozenLake": ("left", "down", "right", "up"),
    "FrozenLake8x8": ("left", "down", "right", "up"),
    "LunarLander": ("none", "left", "up", "right"),
    "MinAtar/Asterix": ("none", "left", "up", "right", "down"),
    "MinAtar/Breakout": ("none", "left", "right"),
    "MinAtar/Freeway": ("none", "up", "down"),
    "MinAtar/SpaceInvaders": ("none", "left", "right", "fire"),
    "MountainCar": ("left", "none", "right"),
    "Taxi": ("down", "up", "right", "left", "pick up", "put down"),
}
ALL_SIX = ("none", "left", "up", "right", "down", "fire")  # the -v0 games of MinAtar
KEYS = {
    "left": "ArrowLeft",
    "right": "ArrowRight",
    "up": "ArrowUp",
    "down": "ArrowDown",
    "fire": " ",
}
IDLE = ("stay", "none", "noop")
# For each dimension of a continuous action, the keys for its lower and its upper bound.
ENDS = (
    ("ArrowLeft", "ArrowRight"),
    ("ArrowDown", "ArrowUp"),
    ("a", "d"),
    ("s", "w"),
    ("j", "l"),
    ("k", "i"),
    ("z", "c"),
    ("f", "h"),
)
DIGITS = 10
TURN_BASED = ("CliffWalking", "FrozenLake", "FrozenLake8x8", "Taxi")  # only the agent moves


class Action(NamedTuple):
    """One action of a discrete space.

    Attributes:
        name: its name.
        keys: the keys to hold together; an empty list for the action without a key, None if no
            keys are known.
        digit: its digit key, or an empty text.
    """

    name: str
    keys: list[str] | None
    digit: str


class Dial(NamedTuple):
    """One dimension of a continuous action: its bounds and the keys for them, if any."""

    name: str
    low: float
    high: float
    keys: list[str]


def actions(spec: EnvSpec, meanings: list[str] | None) -> list[Action]:
    """Return the actions of a discrete space, with the keys for each.

    Args:
        spec: the environment's spec.
        meanings: the environment's own names of its actions, if it has any.
    """
    assert isinstance(spec.action, Discrete)
    count = spec.action.n
    names = meanings or combinations(spec) or _names(spec.id, count)
    known = [_action(name, index) for index, name in enumerate(names)]
    if any(action.keys for action in known) or count > 3:
        return known
    by_place = {2: (["ArrowLeft"], ["ArrowRight"]), 3: (["ArrowLeft"], [], ["ArrowRight"])}
    keys = by_place.get(count, ([],) * count)
    return [action._replace(keys=list(own)) for action, own in zip(known, keys, strict=True)]


def dials(box: Box) -> list[Dial]:
    """Return the dimensions of a continuous action; an unbounded one goes from -1 to 1."""
    bounds = zip(box.low.reshape(-1).tolist(), box.high.reshape(-1).tolist(), strict=True)
    return [
        Dial(
            f"number {index}",
            low if abs(low) < float("inf") else -1.0,
            high if abs(high) < float("inf") else 1.0,
            list(ENDS[index]) if index < len(ENDS) else [],
        )
        for index, (low, high) in enumerate(bounds)
    ]


def is_turn_based(env_id: str) -> bool:
    """Return whether nothing changes in an environment between two actions."""
    return family(env_id) in TURN_BASED


def _names(env_id: str, count: int) -> list[str]:
    name = family(env_id)
    names = NAMES.get(name, ())
    if name.startswith("MinAtar/") and len(names) != count:
        names = ALL_SIX
    return list(names) if len(names) == count else [f"action {n}" for n in range(count)]


def _action(name: str, index: int) -> Action:
    """Return the action with a name such as `left` or Atari's `UPRIGHTFIRE`."""
    digit = str(index) if index < DIGITS else ""
    folded = name.casefold()
    if folded in IDLE:
        return Action(folded, [], digit)
    keys: list[str] = []
    rest = folded
    for word, key in KEYS.items():
        if word in rest:
            rest = rest.replace(word, "", 1)
            keys.append(key)
    return Action(folded, keys if keys and not rest.strip() else None, digit)
