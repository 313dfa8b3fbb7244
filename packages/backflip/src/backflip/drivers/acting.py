"""Policies that act outside JAX: a compiled call for each env step, with no more than it reads."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, final

import jax
import numpy as np

from backflip.algorithms.interface import Act, EvaluationAction, State


class _Compiled(NamedTuple):
    """What there is for states of one structure.

    Attributes:
        read: of each array of a state, whether acting reads it.
        call: a function of these arrays, observations and raw key data, over the seeds.
    """

    read: list[bool]
    call: Callable[..., Any]


@final
class HostPolicy:
    """Acts for many seeds at once, in one compiled call.

    A call takes microseconds for every array it is given: 40 with 6 of them, 205 with the 72 of a
    SAC learner, whose moments, critics and targets acting never looks at. So only those are given
    that acting reads, and the choice of them is made once for all calls with the same state. The
    others are None to it: it must not ask an array that it does not read for its shape either.

    Args:
        act: `Algorithm.act` or `Algorithm.evaluation_action`.
    """

    def __init__(self, act: Act | EvaluationAction) -> None:
        self._act = act
        self._compiled: dict[Any, _Compiled] = {}  # by structure

    def of(self, states: State, obs: Any, keys: Any) -> Callable[[Any, Any], Any]:
        """Return a function of (observations, raw key data) that acts as these states do.

        All have a leading axis of seeds. `obs` and `keys` show what the function will be given.
        """
        arrays, structure = jax.tree.flatten(states)
        if structure not in self._compiled:
            self._compiled[structure] = _compile(self._act, *_of_first_seed((states, obs, keys)))
        read, call = self._compiled[structure]
        return partial(call, _on_first_device(_those(arrays, read)))

    def forget(self) -> None:
        """Free the compiled calls; the next one compiles again."""
        self._compiled.clear()


def _compile(act: Act | EvaluationAction, state: State, obs: Any, key_data: Any) -> _Compiled:
    """Find what `act` reads of a state, and compile it as a function of that alone."""
    structure = jax.tree.structure(state)

    def acts(state: State, obs: Any, key_data: Any) -> Any:
        return act(state, obs, jax.random.wrap_key_data(key_data))

    read = arrays_read(acts, state, obs, key_data)

    def acts_on_few(few: list[Any], obs: Any, key_data: Any) -> Any:
        given = iter(few)
        arrays = [next(given) if is_read else None for is_read in read]
        return acts(jax.tree.unflatten(structure, arrays), obs, key_data)

    return _Compiled(read, jax.jit(jax.vmap(acts_on_few)))


def arrays_read(function: Callable[..., Any], state: Any, *rest: Any) -> list[bool]:
    """Return of each array of a state whether a function of (state, ...) looks at it."""
    program = jax.make_jaxpr(function)(state, *rest).jaxpr
    inputs = program.invars[: len(jax.tree.leaves(state))]
    used = {id(x) for step in program.eqns for x in step.invars} | {id(x) for x in program.outvars}
    return [id(x) in used for x in inputs]


def _of_first_seed(values: Any) -> Any:
    def first(x: Any) -> Any:
        return np.asarray(x)[0]

    return jax.tree.map(first, values)


def _those(arrays: list[Any], read: list[bool]) -> list[Any]:
    return [x for x, is_read in zip(arrays, read, strict=True) if is_read]


def _on_first_device(arrays: list[Any]) -> list[Any]:
    """Return arrays that policies act with on one device; those that are there stay as they are."""
    first = jax.devices()[0]

    def is_there(x: Any) -> bool:
        return isinstance(x, jax.Array) and x.devices() == {first}

    return arrays if all(map(is_there, arrays)) else jax.device_put(arrays, first)
