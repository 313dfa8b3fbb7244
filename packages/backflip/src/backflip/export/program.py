"""A policy's evaluation action as a list of operations, recorded from JAX."""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np

from backflip.algorithms.interface import Algorithm
from backflip.core.spec import EnvSpec
from backflip.core.trees import flatten
from backflip.export.numpy_policy import OPERATIONS
from runshelf.errors import UsageError

INLINED = ("jaxpr", "call_jaxpr", "fun_jaxpr")  # parameters that hold the body of a call
# The parameters that `numpy_policy` reads, by operation; it reads none of the others.
READ: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("argmax", "argmin"), ("axes",)),
    "bitcast_convert_type": ("new_dtype",),
    "broadcast_in_dim": ("shape", "broadcast_dimensions"),
    "concatenate": ("dimension",),
    "conv_general_dilated": ("dimension_numbers", "padding", "window_strides"),
    "cumsum": ("axis",),
    "dot_general": ("dimension_numbers",),
    "expand_dims": ("dimensions",),
    "integer_pow": ("y",),
    "iota": ("shape", "dimension"),
    "pad": ("padding_config",),
    "random_bits": ("shape",),
    **dict.fromkeys((name for name in OPERATIONS if name.startswith("reduce_")), ("axes",)),
    "reshape": ("new_sizes",),
    "rev": ("dimensions",),
    "slice": ("start_indices", "limit_indices", "strides"),
    "split": ("sizes", "axis"),
    "squeeze": ("dimensions",),
    "transpose": ("permutation",),
    "unstack": ("axis",),
}
# Parameters that change no result: NumPy computes in full precision, and `Policy` converts each
# result to the type that JAX has.
WITHOUT_EFFECT = frozenset(
    {
        "accuracy",
        "dtype",
        "index_dtype",
        "new_dtype",
        "out_sharding",
        "precision",
        "sharding",
        "weak_type",
    }
)
# Values of other parameters with which the operation is the one that `numpy_policy` computes,
# beside None and False.
DEFAULTS: Mapping[str, Any] = {
    "batch_group_count": 1,
    "bit_width": 32,
    "feature_group_count": 1,
    "lhs_dilation": 1,
    "rhs_dilation": 1,
    "rounding_method": jax.lax.RoundingMethod.TO_NEAREST_EVEN,
}


class Program(NamedTuple):
    """Operations from an observation to an action.

    Attributes:
        steps: each with `op`, `params`, the names of its inputs, and names and dtypes of outputs.
        action: the name of the result.
        arrays: the weights and constants that the steps read, by name.
    """

    steps: list[dict[str, Any]]
    action: str
    arrays: dict[str, np.ndarray]


def record(algorithm: Algorithm, state: Any, spec: EnvSpec) -> Program:
    """Return the program that computes the evaluation action of one observation.

    Raises:
        UsageError: the policy's network has an operation that NumPy cannot compute here.
    """

    def act(part: Any, obs: Any, key: Any) -> Any:
        return algorithm.evaluation_action(algorithm.with_policy(state, part), obs[None], key)[0]

    part = algorithm.policy(state)
    weights = {f"weights.{name}": array for name, array in flatten(part).items()}
    box = spec.observation
    obs = jax.ShapeDtypeStruct(box.shape, box.dtype)
    closed = jax.make_jaxpr(act)(part, obs, jax.random.key(0))
    recorder = _Recorder(weights)
    names = [*weights, "obs", "key"]
    (action,) = recorder.inline(closed.jaxpr, closed.consts, names)
    used = _needed(recorder.steps, action)
    unknown = sorted({step["op"] for step in used} - OPERATIONS.keys())
    if unknown:
        raise UsageError(
            f"the policy's network has operations that the NumPy file does not have: "
            f"{', '.join(unknown)}; use backflip.load_policy, or write the network without them"
        )
    read = {name for step in used for name in step["in"]} | {action}
    arrays = {name: array for name, array in recorder.arrays.items() if name in read}
    return Program(used, action, arrays)


@final
class _Recorder:
    """Collects the operations of a JAX program, with the bodies of calls in place.

    Args:
        arrays: weights by name; constants are added.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.arrays = dict(arrays)
        self.steps: list[dict[str, Any]] = []
        self._numbers = count()

    def inline(self, jaxpr: Any, constants: Any, inputs: list[str]) -> list[str]:
        """Record the operations of a program; return the names of its results."""
        names = {id(x): name for x, name in zip(jaxpr.invars, inputs, strict=True)}
        for x, value in zip(jaxpr.constvars, constants, strict=True):
            names[id(x)] = self._constant(value)
        for step in jaxpr.eqns:
            read = [self._name(x, names) for x in step.invars]
            body = next((step.params[name] for name in INLINED if name in step.params), None)
            if body is None or step.primitive.name in ("scan", "while", "cond"):
                found = self._step(step, read)
            else:
                found = self.inline(getattr(body, "jaxpr", body), getattr(body, "consts", ()), read)
            names |= {id(x): name for x, name in zip(step.outvars, found, strict=True)}
        return [self._name(x, names) for x in jaxpr.outvars]

    def _step(self, step: Any, read: list[str]) -> list[str]:
        name = step.primitive.name
        if different := _not_computed(step):
            name = f"{name} with {' and '.join(different)}"
        found = [f"v{next(self._numbers)}" for _ in step.outvars]
        dtypes = [_dtype(x.aval) for x in step.outvars]
        params = {one: _plain(step.params[one]) for one in READ.get(step.primitive.name, ())}
        out = [list(pair) for pair in zip(found, dtypes, strict=True)]
        self.steps.append({"op": name, "params": params, "in": read, "out": out})
        return found

    def _name(self, x: Any, names: Mapping[int, str]) -> str:
        return self._constant(x.val) if hasattr(x, "val") else names[id(x)]

    def _constant(self, value: Any) -> str:
        name = f"constant.{next(self._numbers)}"
        self.arrays[name] = np.asarray(value)
        return name


def _not_computed(step: Any) -> list[str]:
    """Return the parameters with which `numpy_policy` would compute another operation."""
    name, params = step.primitive.name, step.params
    if name not in OPERATIONS:
        return []  # it is named without them
    unread = params.keys() - WITHOUT_EFFECT - set(READ.get(name, ()))
    found = sorted(one for one in unread if not _is_default(one, params[one], step.invars))
    inner = any(space for _, _, space in params["padding_config"]) if name == "pad" else False
    return [*found, "interior padding"] if inner else found


def _is_default(name: str, value: Any, inputs: Any) -> bool:
    if value is None or value is False:
        return True
    if name in ("out_dtype", "preferred_element_type"):  # products of bytes overflow in NumPy
        return all(x.aval.dtype == value for x in inputs)
    return name in DEFAULTS and bool(np.all(np.asarray(value) == DEFAULTS[name]))


def _needed(steps: list[dict[str, Any]], action: str) -> list[dict[str, Any]]:
    """Return the steps on which the action depends, in order."""
    return list(_backwards(steps, {action}))[::-1]


def _backwards(steps: list[dict[str, Any]], wanted: set[str]) -> Iterator[dict[str, Any]]:
    for step in reversed(steps):
        if any(name in wanted for name, _ in step["out"]):
            wanted.update(step["in"])
            yield step


def _dtype(aval: Any) -> str:
    """Return the dtype of an array; random keys are pairs of uint32."""
    return "uint32" if jnp.issubdtype(aval.dtype, jax.dtypes.prng_key) else aval.dtype.name


def _plain(value: Any) -> Any:
    """Return a parameter as JSON values."""
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return np.dtype(value).name if isinstance(value, type | np.dtype) else value
