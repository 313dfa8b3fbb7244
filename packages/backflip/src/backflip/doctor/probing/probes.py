"""The probes: environments with their correct values and actions, and what a failure means."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from backflip.core.spaces import Discrete
from backflip.envs.native import extra_probes, probes
from runshelf.errors import UsageError

Values = Callable[[float], Sequence[float]]  # of the discount


class Probe(NamedTuple):
    """An environment, and what is correct there.

    Attributes:
        id: the environment's id.
        env: the environment, in JAX.
        shown: observations, one after the other.
        values: V of each, by the discount; None if any value is correct.
        actions: the best action for each; None if any action is correct.
        tolerance: the largest error, of values in units of the largest correct one, of numbers as
            actions in units of half their range.
        asks: what the probe asks.
        fails: what a failure means in the code.
    """

    id: str
    env: Any
    shown: Sequence[Sequence[float]]
    values: Values | None
    actions: Sequence[float] | None
    tolerance: float
    asks: str
    fails: str

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The bounds of actions that are numbers; None if they are choices."""
        space = self.env.spec.action
        return None if isinstance(space, Discrete) else (space.low.item(), space.high.item())


def _rows() -> tuple[list[list[float]], Values]:
    """Return observations and values of `probe:row`."""
    places = [(kind, at) for kind in range(extra_probes.ROWS) for at in range(kind + 1)]
    env = extra_probes.OneRowReward()
    states = [extra_probes.RowState(jnp.asarray(k), jnp.asarray(at)) for k, at in places]
    shown = [np.asarray(env.observe(state)).tolist() for state in states]
    return shown, lambda discount: [discount ** (kind - at) for kind, at in places]


def _always(*values: float) -> Values:
    """Return values that do not depend on the discount."""
    return lambda discount: values


def _one_step_away(discount: float) -> Sequence[float]:
    return [discount, 1.0]


def _for_ever(discount: float) -> Sequence[float]:
    return [1.0 / (1.0 - discount)]


_ROWS_SHOWN, _ROWS_VALUES = _rows()
_ZERO, _BOTH, _IN_TURN = [[0.0]], [[-1.0], [1.0]], [[0.0], [1.0]]
_ASYMMETRIC = (-1.0, 3.0)  # bounds that a policy misses without their scale or their centre

_OF_VALUES = (
    Probe(
        id="probe:1",
        env=probes.ConstantReward(),
        shown=_ZERO,
        values=_always(1.0),
        actions=None,
        tolerance=0.1,
        asks="Does the value of one state become its reward of 1?",
        fails="The value loss or the optimiser is wrong: sign, gradient, or no step is taken.",
    ),
    Probe(
        id="probe:2",
        env=probes.ObservedReward(),
        shown=_BOTH,
        values=_always(-1.0, 1.0),
        actions=None,
        tolerance=0.1,
        asks="Does the value depend on the observation?",
        fails="Observations do not reach the value function, or belong to other rewards.",
    ),
    Probe(
        id="probe:idle",
        env=extra_probes.IdleChoice(),
        shown=_ZERO,
        values=_always(1.0),
        actions=None,
        tolerance=0.1,
        asks="Is a value free of a policy that has nothing to prefer?",
        fails="The policy loss moves the value, or values of actions are mixed up.",
    ),
    Probe(
        id="probe:3",
        env=probes.DelayedReward(),
        shown=_IN_TURN,
        values=_one_step_away,
        actions=None,
        tolerance=0.05,
        asks="Is a reward one step later discounted once?",
        fails="γ is not applied, applied twice, or the bootstrap is from the wrong state.",
    ),
    Probe(
        id="probe:row",
        env=extra_probes.OneRowReward(),
        shown=_ROWS_SHOWN,
        values=_ROWS_VALUES,
        actions=None,
        tolerance=0.15,
        asks="Do rewards belong to their own step and environment?",
        fails="Rewards are off by one step, or the axes of time and environments are mixed up.",
    ),
    Probe(
        id="probe:truncation",
        env=probes.EndlessReward(),
        shown=_ZERO,
        values=_for_ever,
        actions=None,
        tolerance=0.1,
        asks="Is a time limit no end of the task?",
        fails="A truncated step is treated as a terminated one: nothing is bootstrapped there.",
    ),
)
_OF_CHOICES = (
    Probe(
        id="probe:4",
        env=probes.ChosenReward(),
        shown=_ZERO,
        values=_always(1.0),
        actions=[1.0],
        tolerance=0.15,
        asks="Is the better of two actions chosen?",
        fails="The policy is wrong: the advantage or the policy loss, often a sign.",
    ),
    Probe(
        id="probe:5",
        env=probes.MatchedReward(),
        shown=_BOTH,
        values=_always(1.0, 1.0),
        actions=[0.0, 1.0],
        tolerance=0.15,
        asks="Does the policy depend on the observation?",
        fails="Observations and actions of a batch do not belong together, or are old.",
    ),
)
_OF_NUMBERS = (
    Probe(
        id="probe:continuous",
        env=probes.OtherBounds(probes.QuadraticReward(), -2.0, 2.0),
        shown=_ZERO,
        values=None,
        actions=[1.0],
        tolerance=0.15,
        asks="Is the best of all numbers chosen?",
        fails="The gradient of continuous actions is wrong, often a sign or a log-probability.",
    ),
    Probe(
        id="probe:bound",
        env=probes.OtherBounds(extra_probes.BestAtBound(), *_ASYMMETRIC),
        shown=_ZERO,
        values=None,
        actions=[_ASYMMETRIC[1]],
        tolerance=0.2,
        asks="Can the policy reach its bound?",
        fails="Actions are not scaled to their bounds, or a squashed policy cannot reach them.",
    ),
    Probe(
        id="probe:zero",
        env=probes.OtherBounds(extra_probes.BestAtZero(), *_ASYMMETRIC),
        shown=_ZERO,
        values=None,
        actions=[sum(_ASYMMETRIC) / 2],
        tolerance=0.15,
        asks="Can the policy stay in the middle of its bounds?",
        fails="Actions are shifted, or the policy sticks to its bounds.",
    ),
)


def probes_for(*, discrete: bool, values: bool = True) -> list[Probe]:
    """Return the probes for an algorithm, in the order in which they build on each other.

    Args:
        discrete: the algorithm chooses among actions, rather than numbers.
        values: it has a value function that can be asked.
    """
    chosen = list(_OF_VALUES) if values else []
    if not discrete:
        chosen = [one._replace(env=probes.IgnoredNumber(one.env)) for one in chosen]
    acts = _OF_CHOICES if discrete else _OF_NUMBERS
    return chosen + [one if values else one._replace(values=None) for one in acts]


def probes_of_kinds(
    *, discrete: bool, continuous: bool, values: bool = True, values_with_numbers: bool = False
) -> list[Probe]:
    """Return the probes for an algorithm that supports one kind of actions, or both.

    Args:
        discrete: it chooses among actions.
        continuous: it chooses numbers.
        values: it has a value function that can be asked.
        values_with_numbers: of both kinds, values are probed with numbers.
    """
    if not (discrete and continuous):
        return probes_for(discrete=discrete, values=values)
    choices = probes_for(discrete=True, values=values)
    numbers = probes_for(discrete=False, values=values)
    of_values = numbers if values_with_numbers else choices
    acts = [one for one in choices + numbers if one.actions is not None]
    return [one for one in of_values if one.actions is None] + acts


def ids() -> list[str]:
    """Return the ids of all probes."""
    return [one.id for one in probes_of_kinds(discrete=True, continuous=True)]


def selected(found: Sequence[Probe], only: Sequence[str]) -> list[Probe]:
    """Return the probes that are named; all of them if none is named.

    Raises:
        UsageError: a name is no probe, or none is left.
    """
    unknown = [name for name in only if name not in ids()]
    if unknown:
        known = ", ".join(ids())
        raise UsageError(f"`--only {unknown[0]}` is no probe; try one of {known}")
    kept = [one for one in found if not only or one.id in only]
    if not kept:
        has = ", ".join(one.id for one in found)
        raise UsageError(f"`--only {only[0]}` is about other actions; the probes here are {has}")
    return kept
