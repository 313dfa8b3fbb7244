"""Acts with a policy that backflip exported. Needs NumPy only.

    policy = Policy("policy.npz")
    action = policy.act(observation)

The weights are arrays of the file. The file also lists the operations from an observation to an
action, recorded from the trained program: `Policy` computes them one after the other.
"""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from backflip.core.spaces import Box, Space, from_json, learned, row, taken

FORMAT = 1  # version of the file's contents
ERFINV_MIDDLE = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
ERFINV_TAIL = (
    -0.000200214257,
    0.000100950558,
    0.00134934322,
    -0.00367342844,
    0.00573950773,
    -0.0076224613,
    0.00943887047,
    1.00167406,
    2.83297682,
)
Parameters = Mapping[str, Any]


class Policy:
    """A trained policy, in the environment's own spaces.

    It chooses the same actions as `backflip.load_policy`. Policies that sample (from images) are
    deterministic for the same sequence of calls.

    Args:
        path: the `.npz` file.

    Raises:
        ValueError: the file is not an exported policy, or of a newer version.

    Attributes:
        about: facts such as `env`, `algorithm`, `run`, `seed` and `env_steps`.
        weights: the weights by name.
    """

    def __init__(self, path: "str | Path") -> None:
        with np.load(path, allow_pickle=False) as file:
            self.weights: dict[str, np.ndarray] = {name: file[name] for name in file.files}
        text = self.weights.pop("about", None)
        facts: dict[str, Any] = {} if text is None else json.loads(str(text))
        if facts.get("format") != FORMAT:
            raise ValueError(f"`{path}` is not a policy that this file can read; export it again")
        self._program: dict[str, Any] = facts.pop("program")
        spaces: dict[str, Any] = facts.pop("spaces")
        self.about = facts
        self._seen: Any = from_json(spaces["observation"])
        self._own_seen, self._own_action = map(
            from_json, (spaces["own_observation"], spaces["own_action"])
        )
        self._action: Space = from_json(spaces["action"])
        self._key = np.zeros(2, np.uint32)

    def act(self, obs: Any) -> Any:
        """Return the action for one observation, or the actions for a batch.

        A batch has a leading axis in every array of an observation.

        Raises:
            ValueError: the observation is not in its space, or has numbers that are not finite.
        """
        batch, single = learned(self._own_seen, obs, self._seen)
        if not all(np.isfinite(one).all() for one in batch):
            raise ValueError("`obs` has numbers that are not finite")
        self._key, key = split(self._key)
        values = [self._run(one, fold_in(key, number)) for number, one in enumerate(batch)]
        actions = np.stack(values)
        if isinstance(self._action, Box):
            actions = actions.clip(self._action.low, self._action.high)
        actions = taken(self._own_action, actions)
        return row(actions, 0) if single else actions

    def _run(self, obs: np.ndarray, key: np.ndarray) -> np.ndarray:
        """Return the learned action for one observation."""
        values: dict[str, Any] = {**self.weights, "obs": obs, "key": key}
        with np.errstate(all="ignore"):
            for step in self._program["steps"]:
                inputs = [values[name] for name in step["in"]]
                found = OPERATIONS[step["op"]](step["params"], *inputs)
                found = found if isinstance(found, list) else [found]
                for (name, dtype), array in zip(step["out"], found, strict=True):
                    values[name] = np.asarray(array).astype(dtype, copy=False)
        return values[self._program["action"]]


def split(key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two random keys, as `jax.random.split` does."""
    first, second = threefry(key, np.zeros(2, np.uint32), np.arange(2, dtype=np.uint32))
    return np.stack([first[0], second[0]]), np.stack([first[1], second[1]])


def fold_in(key: np.ndarray, number: int) -> np.ndarray:
    """Return the random key of a number, as `jax.random.fold_in` does."""
    counts = np.zeros(1, np.uint32), np.array([number], np.uint32)
    return np.concatenate(threefry(key, *counts))


def threefry(
    key: np.ndarray, first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return 64 random bits for each pair of counts: Threefry-2x32 with 20 rounds.

    Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".
    """
    keys = [key[0], key[1], key[0] ^ key[1] ^ np.uint32(0x1BD11BDA)]
    rotations = ((13, 15, 26, 6), (17, 29, 16, 24))
    with np.errstate(over="ignore"):
        x, y = first + keys[0], second + keys[1]
        for group in range(5):
            for bits in rotations[group % 2]:
                x = x + y
                y = ((y << np.uint32(bits)) | (y >> np.uint32(32 - bits))) ^ x
            x = x + keys[(group + 1) % 3]
            y = y + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x, y


def random_bits(parameters: Parameters, key: np.ndarray) -> np.ndarray:
    """Return 32 random bits for each element of a shape."""
    shape = parameters["shape"]
    counts = np.arange(math.prod(shape), dtype=np.uint32)
    first, second = threefry(key, np.zeros_like(counts), counts)
    return (first ^ second).reshape(shape)


def dot_general(parameters: Parameters, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the product of two arrays over contracted axes: batch axes first, then a's, b's."""
    (over_a, over_b), (batch_a, batch_b) = parameters["dimension_numbers"]
    free_a = [axis for axis in range(a.ndim) if axis not in (*over_a, *batch_a)]
    free_b = [axis for axis in range(b.ndim) if axis not in (*over_b, *batch_b)]
    batch = [a.shape[axis] for axis in batch_a]
    shape = (*batch, *(a.shape[i] for i in free_a), *(b.shape[i] for i in free_b))
    contracted = math.prod(a.shape[axis] for axis in over_a)
    left = a.transpose(*batch_a, *free_a, *over_a).reshape(*batch, -1, contracted)
    right = b.transpose(*batch_b, *over_b, *free_b).reshape(*batch, contracted, -1)
    return (left @ right).reshape(shape)


def convolution(parameters: Parameters, x: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Return the convolution of a batch, without dilation or groups of channels."""
    x_axes, kernel_axes, out_axes = parameters["dimension_numbers"]
    x, kernel = x.transpose(x_axes), kernel.transpose(kernel_axes)  # batch, channels, space
    x = np.pad(x, [(0, 0), (0, 0), *parameters["padding"]])
    space = tuple(range(2, x.ndim))
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel.shape[2:], space)
    steps = [slice(None, None, stride) for stride in parameters["window_strides"]]
    windows = windows[(slice(None), slice(None), *steps)]
    inside = tuple(range(x.ndim, windows.ndim))
    out = np.tensordot(windows, kernel, ((1, *inside), (1, *space)))
    return np.moveaxis(out, -1, 1).transpose(np.argsort(out_axes))


def broadcast_in_dim(parameters: Parameters, x: np.ndarray) -> np.ndarray:
    """Return x with its axes at the given places of a larger shape."""
    shape = [1] * len(parameters["shape"])
    for axis, place in enumerate(parameters["broadcast_dimensions"]):
        shape[place] = x.shape[axis]
    return np.broadcast_to(x.reshape(shape), parameters["shape"])


def slice_of(parameters: Parameters, x: np.ndarray) -> np.ndarray:
    """Return a rectangular part of x."""
    strides = parameters["strides"] or [1] * x.ndim
    limits = zip(parameters["start_indices"], parameters["limit_indices"], strides, strict=True)
    return x[tuple(slice(*limit) for limit in limits)]


def pad(parameters: Parameters, x: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return x with a constant value around it; negative numbers cut edges off."""
    for axis, (low, high, _) in enumerate(parameters["padding_config"]):
        x = x.take(range(max(-low, 0), x.shape[axis] - max(-high, 0)), axis)
        widths = [(0, 0)] * x.ndim
        widths[axis] = max(low, 0), max(high, 0)
        x = np.pad(x, widths, constant_values=value)
    return x


def select(parameters: Parameters, which: np.ndarray, *cases: np.ndarray) -> np.ndarray:
    """Return, element by element, the case that `which` names."""
    del parameters
    return np.choose(np.broadcast_to(which, cases[0].shape).astype(np.int64), cases)


def iota(parameters: Parameters) -> np.ndarray:
    """Return an array of the places along one axis."""
    shape, axis = parameters["shape"], parameters["dimension"]
    along = [length if place == axis else 1 for place, length in enumerate(shape)]
    return np.broadcast_to(np.arange(shape[axis]).reshape(along), shape)


def parts(parameters: Parameters, x: np.ndarray) -> list[np.ndarray]:
    """Return x in parts along one axis."""
    return np.split(x, np.cumsum(parameters["sizes"])[:-1], parameters["axis"])


def slices(parameters: Parameters, x: np.ndarray) -> list[np.ndarray]:
    """Return the slices of x along one axis, without this axis."""
    return list(np.moveaxis(x, parameters["axis"], 0))


def erf(parameters: Parameters, x: np.ndarray) -> np.ndarray:
    """Return the error function."""
    del parameters
    return np.reshape([math.erf(value) for value in x.ravel().tolist()], x.shape)


def inverse_erf(parameters: Parameters, x: np.ndarray) -> np.ndarray:
    """Return the inverse of the error function, to the precision of float32.

    Source: Giles 2010, "Approximating the erfinv function", table 5, which XLA uses too.
    """
    del parameters
    w = -np.log1p(-x * x)
    near, far = np.polyval(ERFINV_MIDDLE, w - 2.5), np.polyval(ERFINV_TAIL, np.sqrt(w) - 3)
    return np.where(w < 5, near, far) * x


def same_bits(parameters: Parameters, x: np.ndarray) -> np.ndarray:
    """Return the same bits as another type."""
    return x.view(parameters["new_dtype"])


def cumulative(parameters: Parameters, x: np.ndarray) -> np.ndarray:
    """Return cumulative sums along one axis."""
    return np.cumsum(x, parameters["axis"])


def expanded(parameters: Parameters, x: np.ndarray) -> np.ndarray:
    """Return x with more axes of length 1."""
    return np.expand_dims(x, tuple(parameters["dimensions"]))


def power(parameters: Parameters, x: np.ndarray) -> np.ndarray:
    """Return a whole power of x."""
    return x ** parameters["y"]


def reshaped(parameters: Parameters, x: np.ndarray) -> np.ndarray:
    """Return x in another shape."""
    return x.reshape(parameters["new_sizes"])


def reversed_axes(parameters: Parameters, x: np.ndarray) -> np.ndarray:
    """Return x with axes reversed."""
    return np.flip(x, tuple(parameters["dimensions"]))


def squeezed(parameters: Parameters, x: np.ndarray) -> np.ndarray:
    """Return x without axes of length 1."""
    return np.squeeze(x, tuple(parameters["dimensions"]))


def transposed(parameters: Parameters, x: np.ndarray) -> np.ndarray:
    """Return x with its axes in another order."""
    return x.transpose(parameters["permutation"])


def elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operation without parameters."""

    def operation(parameters: Parameters, *arrays: np.ndarray) -> Any:
        del parameters
        return function(*arrays)

    return operation


def over_axes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operation that reduces axes."""

    def operation(parameters: Parameters, x: np.ndarray) -> Any:
        return function(x, axis=tuple(parameters["axes"]))

    return operation


def along_axis(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operation that finds a place along one axis."""

    def operation(parameters: Parameters, x: np.ndarray) -> Any:
        return function(x, axis=parameters["axes"][0])

    return operation


def _unchanged(x: np.ndarray) -> np.ndarray:
    return x


def _logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _rsqrt(x: np.ndarray) -> np.ndarray:
    return 1 / np.sqrt(x)


def _clamp(low: np.ndarray, x: np.ndarray, high: np.ndarray) -> np.ndarray:
    return x.clip(low, high)


def _joined(parameters: Parameters, *arrays: np.ndarray) -> np.ndarray:
    return np.concatenate(arrays, parameters["dimension"])


def _shifted_right(x: np.ndarray, bits: np.ndarray) -> np.ndarray:
    unsigned = f"u{x.itemsize}"  # NumPy would copy the sign
    return x.view(unsigned) >> bits.view(unsigned)


def _divided(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x / y if x.dtype.kind == "f" else np.trunc(x / y)


ELEMENTWISE: Mapping[str, Callable[..., Any]] = {
    "abs": np.abs,
    "add": np.add,
    "add_any": np.add,
    "and": np.bitwise_and,
    "ceil": np.ceil,
    "clamp": _clamp,
    "convert_element_type": _unchanged,
    "copy": _unchanged,
    "cos": np.cos,
    "div": _divided,
    "eq": np.equal,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "floor": np.floor,
    "ge": np.greater_equal,
    "gt": np.greater,
    "is_finite": np.isfinite,
    "le": np.less_equal,
    "log": np.log,
    "log1p": np.log1p,
    "logistic": _logistic,
    "lt": np.less,
    "max": np.maximum,
    "min": np.minimum,
    "mul": np.multiply,
    "ne": np.not_equal,
    "neg": np.negative,
    "not": np.bitwise_not,
    "or": np.bitwise_or,
    "pow": np.power,
    "rem": np.fmod,
    "round": np.round,
    "rsqrt": _rsqrt,
    "shift_left": np.left_shift,
    "shift_right_logical": _shifted_right,
    "sign": np.sign,
    "sin": np.sin,
    "sqrt": np.sqrt,
    "square": np.square,
    "stop_gradient": _unchanged,
    "sub": np.subtract,
    "tan": np.tan,
    "tanh": np.tanh,
    "xor": np.bitwise_xor,
}
OPERATIONS: Mapping[str, Callable[..., Any]] = {
    **{name: elementwise(function) for name, function in ELEMENTWISE.items()},
    "argmax": along_axis(np.argmax),
    "argmin": along_axis(np.argmin),
    "bitcast_convert_type": same_bits,
    "broadcast_in_dim": broadcast_in_dim,
    "concatenate": _joined,
    "conv_general_dilated": convolution,
    "cumsum": cumulative,
    "dot_general": dot_general,
    "erf": erf,
    "erf_inv": inverse_erf,
    "expand_dims": expanded,
    "integer_pow": power,
    "iota": iota,
    "pad": pad,
    "random_bits": random_bits,
    "reduce_and": over_axes(np.bitwise_and.reduce),
    "reduce_max": over_axes(np.max),
    "reduce_min": over_axes(np.min),
    "reduce_or": over_axes(np.bitwise_or.reduce),
    "reduce_prod": over_axes(np.prod),
    "reduce_sum": over_axes(np.sum),
    "reshape": reshaped,
    "rev": reversed_axes,
    "select_n": select,
    "slice": slice_of,
    "split": parts,
    "squeeze": squeezed,
    "transpose": transposed,
    "unstack": slices,
}
