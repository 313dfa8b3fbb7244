"""Distances between two rewards that no policy is needed for: EPIC and DARD.

Both compare rewards after a transformation that removes potential shaping, by the Pearson distance
over transitions of a coverage distribution. They are 0 for rewards that differ by shaping, by a
positive factor and by a constant, and 1 for a reward and its negative.

Rewards are functions of batches (s, a, s'), with any pytree of arrays for each. The formulas only
index and add, so they serve NumPy and JAX.

Source: EPIC: Gleave et al. 2021, arXiv:2006.13900, definitions 4.1, 4.4 and 4.6. DARD: Wulfe et al.
2022, arXiv:2201.10081, equation 3.
Departures: expectations over S, S' and A are means over samples; the term γ E[R(S, A, S')] of EPIC
is left out, because a constant does not change the Pearson distance.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Num

States = Any  # a pytree with a leading axis
Actions = Any
Reward = Callable[[States, Actions, States], Float[Any, " batch"]]
Step = Callable[[States, Actions], States]


class Transitions(NamedTuple):
    """Transitions of the coverage distribution."""

    state: States
    action: Actions
    next_state: States


def pearson_distance(one: Num[Any, " n"], other: Num[Any, " n"]) -> float | None:
    """Return sqrt((1 - ρ) / 2), with ρ the correlation; None if a reward is constant or not finite.

    Source: arXiv:2006.13900, definition 4.4.
    """
    one, other = (np.asarray(x, np.float64) for x in (one, other))
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return None
    one, other = one - one.mean(), other - other.mean()
    size = np.sqrt((one**2).sum() * (other**2).sum())
    smallest = 1e-12 * max(1.0, float(np.abs(one).max()), float(np.abs(other).max()))
    if len(one) < 2 or min(one.std(), other.std()) <= smallest:
        return None
    rho = float((one * other).sum() / size)
    return float(np.sqrt(max(0.0, 1.0 - rho) / 2.0))


def epic_canonical(
    reward: Reward,
    covered: Transitions,
    states: States,
    actions: Actions,
    discount: float,
) -> Float[Any, " n"]:
    """Return the canonically shaped reward of n transitions, without its constant term.

        C(R)(s, a, s') = R(s, a, s') + E[γ R(s', A, S') - R(s, A, S')]

    Args:
        reward: R.
        covered: the transitions.
        states: m samples of S'.
        actions: m samples of A, independent of S'.
        discount: γ.
    """
    n, m = _length(covered.action), _length(actions)
    row, column = np.repeat(np.arange(n), m), np.tile(np.arange(m), n)
    action, target = take(actions, column), take(states, column)

    def mean_from(state: States) -> Float[Any, " n"]:
        return reward(take(state, row), action, target).reshape(n, m).mean(1)

    return reward(*covered) + discount * mean_from(covered.next_state) - mean_from(covered.state)


def dard_canonical(
    reward: Reward,
    covered: Transitions,
    step: Step,
    actions: Actions,
    discount: float,
) -> Float[Any, " n"]:
    """Return the dynamics-aware transformed reward of n transitions.

        C(R)(s, a, s') = R(s, a, s') + E[γ R(s', A, S'') - R(s, A, S') - γ R(S', A, S'')]

    with S' ~ T(s, A) and S'' ~ T(s', A).

    Args:
        reward: R.
        covered: the transitions.
        step: T, the next states.
        actions: m samples of A.
        discount: γ.
    """
    n, m = _length(covered.action), _length(actions)
    row, column = np.repeat(np.arange(n), m), np.tile(np.arange(m), n)
    action = take(actions, column)
    here, there = take(covered.state, row), take(covered.next_state, row)
    after, beyond = step(here, action), step(there, action)

    def mean(state: States, next_state: States) -> Float[Any, " n"]:
        return reward(state, action, next_state).reshape(n, m).mean(1)

    shaped = discount * mean(there, beyond) - mean(here, after) - discount * mean(after, beyond)
    return reward(*covered) + shaped


def take(tree: Any, index: Any) -> Any:
    """Return the rows `index` of every array of a pytree."""

    def rows(x: Any) -> Any:
        return x[index]

    return jax.tree.map(rows, tree)


def _length(tree: Any) -> int:
    return jax.tree.leaves(tree)[0].shape[0]
