"""Acting outside JAX: one compiled call per env step, which gets only the arrays that it reads."""

from collections.abc import Callable
from functools import partial
from itertools import compress
from typing import Any, NamedTuple, final

import jax
import numpy as np

from backflip.algorithms.interface import Act, EvaluationAction, State


class _Compiled(NamedTuple):
    """The compiled call for states of one tree structure.

    Attributes:
        read: for each array of a state, whether acting reads it.
        call: (arrays read, observations, raw key data), all with an axis of seeds -> actions.
    """

    read: list[bool]
    call: Callable[..., Any]


@final
class HostPolicy:
    """Acts for many seeds in one compiled call.

    A call costs microseconds for every array that it gets: 40 with 6 arrays, 205 with the 72 of a
    SAC learner, most of which acting does not read. So a call gets only the arrays that acting
    reads, selected once for all calls with the same state. All others are None: `act` must not even
    ask for the shape of an array that it does not read.

    Args:
        act: `Algorithm.act` or `Algorithm.evaluation_action`.
    """

    def __init__(self, act: Act | EvaluationAction) -> None:
        self._act = act
        self._compiled: dict[Any, _Compiled] = {}  # by tree structure

    def of(self, states: State, obs: Any, keys: Any) -> Callable[[Any, Any], Any]:
        """Return a function of (observations, raw key data) that acts with the given states.

        All arguments have a leading axis of seeds. `obs` and `keys` are examples for compilation.
        """
        arrays, structure = jax.tree.flatten(states)
        if structure not in self._compiled:
            first = jax.tree.map(_first_seed, (states, obs, keys))
            self._compiled[structure] = _compile(self._act, *first)
        read, call = self._compiled[structure]
        return partial(call, _on_first_device(list(compress(arrays, read))))

    def forget(self) -> None:
        """Free the compiled calls; the next one compiles again."""
        self._compiled.clear()


def _compile(act: Act | EvaluationAction, state: State, obs: Any, key_data: Any) -> _Compiled:
    """Find the arrays of a state that `act` reads, and compile it as a function of these."""
    structure = jax.tree.structure(state)

    def acts(state: State, obs: Any, key_data: Any) -> Any:
        return act(state, obs, jax.random.wrap_key_data(key_data))

    read = arrays_read(acts, state, obs, key_data)

    def acts_on_few(few: list[Any], obs: Any, key_data: Any) -> Any:
        remaining = iter(few)
        arrays = [next(remaining) if is_read else None for is_read in read]
        return acts(jax.tree.unflatten(structure, arrays), obs, key_data)

    return _Compiled(read, jax.jit(jax.vmap(acts_on_few)))


def arrays_read(function: Callable[..., Any], state: Any, *rest: Any) -> list[bool]:
    """Return for each array of a state whether a function of (state, ...) reads it."""
    program = jax.make_jaxpr(function)(state, *rest).jaxpr
    inputs = program.invars[: len(jax.tree.leaves(state))]
    used = {id(x) for step in program.eqns for x in step.invars} | {id(x) for x in program.outvars}
    return [id(x) in used for x in inputs]


def _first_seed(x: Any) -> Any:
    return np.asarray(x)[0]


def _on_first_device(arrays: list[Any]) -> list[Any]:
    """Return the arrays on one device; arrays that are already there are not copied."""
    first = jax.devices()[0]

    def is_there(x: Any) -> bool:
        return isinstance(x, jax.Array) and x.devices() == {first}

    return arrays if all(map(is_there, arrays)) else jax.device_put(arrays, first)
