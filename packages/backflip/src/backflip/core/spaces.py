"""An environment's own spaces, and the way from them to the vectors that algorithms learn from.

Needs NumPy only and imports nothing of backflip: an exported policy contains a copy of this file.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

INT64 = np.dtype(np.int64)


@dataclass(frozen=True, eq=False)
class Box:
    """Arrays of one shape between `low` and `high`, elementwise (bounds may be infinite)."""

    low: np.ndarray
    high: np.ndarray
    dtype: np.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one element."""
        return self.low.shape

    @property
    def bounded(self) -> np.ndarray:
        """Which elements have bounds on both sides."""
        return np.isfinite(self.low) & np.isfinite(self.high)


@dataclass(frozen=True)
class Discrete:
    """The integers start .. start + n - 1; start is 0 in an `EnvSpec`."""

    n: int
    start: int = 0
    dtype: np.dtype = INT64


@dataclass(frozen=True, eq=False)
class MultiDiscrete:
    """Arrays of integers: element i is one of start_i .. start_i + sizes_i - 1.

    The actions of a MultiBinary space are of this kind, with sizes of 2.
    """

    sizes: np.ndarray
    start: np.ndarray
    dtype: np.dtype


@dataclass(frozen=True, eq=False)
class Group:
    """A Dict space, with its parts by name, or a Tuple space, with its parts by position.

    Attributes:
        parts: the spaces, in the order in which they are flattened.
        named: whether it is a Dict space.
    """

    parts: Mapping[str, "Space"]
    named: bool


Space = Box | Discrete | MultiDiscrete | Group


class InvalidValue(ValueError):
    """A value is not in its space."""


def leaves(space: Space, name: str) -> Iterator[tuple[str, Box | Discrete | MultiDiscrete]]:
    """Yield all spaces that are not groups, with their names, in the order of flattening."""
    if not isinstance(space, Group):
        yield name, space
        return
    for key, part in space.parts.items():
        yield from leaves(part, _name_of_part(space, name, key))


def names_of_numbers(space: Space) -> tuple[str, ...]:
    """Return a name for each number of a flattened element, as in `obs['velocity'][2]`."""
    sizes = [(name, width(leaf)) for name, leaf in leaves(space, "obs")]
    return tuple(
        name if size == 1 else f"{name}[{index}]" for name, size in sizes for index in range(size)
    )


def width(space: Space) -> int:
    """Return how many numbers a flattened element has; one of n choices is n numbers, one-hot."""
    if isinstance(space, Group):
        return sum(map(width, space.parts.values()))
    if isinstance(space, Box):
        return int(np.prod(space.shape))
    return space.n if isinstance(space, Discrete) else int(space.sizes.sum())


def flattened(space: Space, value: Any, name: str) -> tuple[np.ndarray, bool]:
    """Return elements of a space as float32 vectors (B, width), and whether there was only one.

    Choices become one-hot and parts are joined, as in `gymnasium.wrappers.FlattenObservation`. A
    batch has a leading axis in every array.

    Raises:
        InvalidValue: the value is not in the space; the message says which part.
    """
    if isinstance(space, Group):
        return _flattened_group(space, value, name)
    if isinstance(space, Box):
        array, single = _rows(value, space.shape, space.dtype, name)
        with np.errstate(over="ignore"):
            return array.astype(np.float32).reshape(len(array), -1), single
    shape = () if isinstance(space, Discrete) else space.sizes.shape
    array, single = _rows(value, shape, INT64, name)
    sizes = [space.n] if isinstance(space, Discrete) else space.sizes.reshape(-1).tolist()
    places = array.reshape(len(array), -1) - np.reshape(space.start, -1)
    columns = [_one_hot(places[:, i], size, name) for i, size in enumerate(sizes)]
    return np.concatenate(columns, 1), single


def learned(space: Space, obs: Any, box: Box) -> tuple[np.ndarray, bool]:
    """Return observations as a batch that an algorithm accepts, and whether there was only one.

    Args:
        space: the environment's own observation space.
        obs: an element of it, a batch of them, or what an algorithm learns from.
        box: the space of one observation that an algorithm learns from.

    Raises:
        InvalidValue: the value is not in the space; the message says which part.
    """
    if isinstance(space, Group):
        if not isinstance(obs, np.ndarray):
            return flattened(space, obs, "`obs`")
        return _among(obs, [box.shape], box, "be " + ("a dict" if space.named else "a tuple"))
    array = np.asarray(obs)
    if isinstance(space, Discrete):
        if array.ndim < 2 and array.dtype.kind in "iu":
            return _choices(space, array, box)
        return _among(array, [box.shape], box, "be a whole number")
    must = f"have shape {_shape(space)}"
    if isinstance(space, MultiDiscrete):
        if array.shape[-space.sizes.ndim :] == space.sizes.shape:
            return flattened(space, array, "`obs`")
        return _among(array, [box.shape], box, must)
    return _among(array, [space.shape, box.shape], box, must)


def sizes_of(space: Space) -> list[int]:
    """Return the number of choices of each discrete part; empty if a part is not discrete."""
    found: list[int] = []
    for _, leaf in leaves(space, ""):
        if isinstance(leaf, Box):
            return []
        found += [leaf.n] if isinstance(leaf, Discrete) else leaf.sizes.reshape(-1).tolist()
    return found


def taken(space: Space, actions: np.ndarray) -> Any:
    """Return a batch of learned actions as a batch of elements of the environment's space.

    A learned action is one number for a space of discrete parts, counted over all combinations
    with the last part fastest, or one vector for a space of boxes. Vectors are clipped.
    """
    columns = actions.reshape(len(actions), -1)
    sizes = [] if isinstance(space, Discrete) else sizes_of(space)
    if sizes:
        columns = np.stack(np.unravel_index(actions.astype(np.int64), sizes), 1)
    return _built(space, columns)


def row(batch: Any, index: int) -> Any:
    """Return one element of a batch."""
    if isinstance(batch, Mapping):
        return {key: row(part, index) for key, part in batch.items()}
    if isinstance(batch, tuple):
        return tuple(row(part, index) for part in batch)
    return batch[index]


def columns_of(batch: Any) -> np.ndarray:
    """Return a batch of elements as one array (B, numbers), all parts side by side."""
    parts = batch.values() if isinstance(batch, Mapping) else batch
    if isinstance(batch, Mapping | tuple):
        return np.concatenate([columns_of(part) for part in parts], 1)
    return batch.reshape(len(batch), -1)


def to_json(space: Space) -> dict[str, Any]:
    """Return a space as JSON values and arrays."""
    if isinstance(space, Group):
        kind = "dict" if space.named else "tuple"
        return {kind: {key: to_json(part) for key, part in space.parts.items()}}
    if isinstance(space, Discrete):
        return {"n": space.n, "start": space.start, "dtype": space.dtype.name}
    if isinstance(space, MultiDiscrete):
        return {"sizes": space.sizes, "start": space.start, "dtype": space.dtype.name}
    return {"low": space.low, "high": space.high, "dtype": space.dtype.name}


def to_json_without_bounds(space: Space) -> dict[str, Any]:
    """Return an observation space as JSON values, without the bounds of an array.

    Acting ignores these, and an image has thousands.
    """
    if isinstance(space, Box):
        return {"shape": space.shape, "dtype": space.dtype.name}
    return to_json(space)


def from_json(facts: Mapping[str, Any]) -> Space:
    """Return the space that `to_json` wrote; a box may have a shape in place of bounds."""
    for kind in ("dict", "tuple"):
        if kind in facts:
            parts = {key: from_json(part) for key, part in facts[kind].items()}
            return Group(parts, kind == "dict")
    if "n" in facts:
        dtype = np.dtype(facts.get("dtype", "int64"))
        return Discrete(facts["n"], facts.get("start", 0), dtype)
    dtype = np.dtype(facts.get("dtype", "float32"))
    if "sizes" in facts:
        sizes, start = (np.asarray(facts[name], np.int64) for name in ("sizes", "start"))
        return MultiDiscrete(sizes, start, dtype)
    if "shape" in facts:
        zeros = np.zeros(tuple(facts["shape"]), dtype)
        return Box(zeros, zeros, dtype)
    return Box(np.asarray(facts["low"], dtype), np.asarray(facts["high"], dtype), dtype)


def _choices(space: Discrete, numbers: np.ndarray, box: Box) -> tuple[np.ndarray, bool]:
    places = np.atleast_1d(numbers) - space.start
    if ((places < 0) | (places >= space.n)).any():
        last = space.start + space.n - 1
        raise InvalidValue(f"`obs` must be a number from {space.start} to {last}, got {numbers}")
    return (places[:, None] == np.arange(space.n)).astype(box.dtype), numbers.ndim == 0


def _among(
    array: np.ndarray, shapes: Sequence[tuple[int, ...]], box: Box, must: str
) -> tuple[np.ndarray, bool]:
    """Return an array of one of some shapes, or a batch of such, as a batch for an algorithm."""
    for shape in shapes:
        if array.shape == shape or array.shape[1:] == shape:
            _check_cast(array, box.dtype, "`obs`")
            return array.astype(box.dtype).reshape(-1, *box.shape), array.shape == shape
    raise InvalidValue(f"`obs` must {must}, or (B, ...) of them, got {array.shape}")


def _check_cast(array: np.ndarray, dtype: np.dtype, name: str) -> None:
    """Refuse values that a cast would change: 0.9 and 300 would become 0 and 44 in uint8."""
    if not (array.dtype.kind in "iu" and dtype.kind in "iu"):
        if not np.can_cast(array.dtype, dtype, "same_kind"):
            raise InvalidValue(f"{name} has dtype {array.dtype}, expected {dtype}")
    elif array.size:
        limits, least, most = np.iinfo(dtype), array.min(), array.max()
        if least < limits.min or most > limits.max:
            interval = f"from {limits.min} to {limits.max}"
            raise InvalidValue(f"{name} has values from {least} to {most}, expected {interval}")


def _shape(space: Box | MultiDiscrete) -> tuple[int, ...]:
    return space.shape if isinstance(space, Box) else space.sizes.shape


def _flattened_group(space: Group, value: Any, name: str) -> tuple[np.ndarray, bool]:
    found = _parts_of(space, value, name)
    parts = [
        flattened(part, found[key], _name_of_part(space, name, key))
        for key, part in space.parts.items()
    ]
    lengths = {(len(array), single) for array, single in parts}
    if len(lengths) > 1:
        raise InvalidValue(f"{name} has parts of different batch sizes")
    return np.concatenate([array for array, _ in parts], 1), parts[0][1]


def _parts_of(space: Group, value: Any, name: str) -> Mapping[str, Any]:
    """Return the parts of a value by key."""
    if space.named and not isinstance(value, Mapping):
        raise InvalidValue(f"{name} is of type {type(value).__name__}, expected a dict")
    if not space.named and not isinstance(value, Sequence):
        raise InvalidValue(f"{name} is of type {type(value).__name__}, expected a tuple")
    found: dict[str, Any] = (
        {str(key): part for key, part in value.items()}
        if isinstance(value, Mapping)
        else {str(place): part for place, part in enumerate(value)}
    )
    if found.keys() != space.parts.keys():
        wanted, got = (", ".join(keys) or "nothing" for keys in (space.parts, found))
        raise InvalidValue(f"{name} has the parts {got}, expected {wanted}")
    return found


def _name_of_part(space: Group, name: str, key: str) -> str:
    return f"{name}['{key}']" if space.named else f"{name}[{key}]"


def _rows(
    value: Any, shape: tuple[int, ...], dtype: np.dtype, name: str
) -> tuple[np.ndarray, bool]:
    """Return a value or a batch of values as a batch, and whether there was only one."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InvalidValue(f"{name} is not an array") from error
    _check_cast(array, dtype, name)
    if array.shape == shape:
        return array[None], True
    if array.shape[1:] == shape and array.ndim == len(shape) + 1:
        return array, False
    raise InvalidValue(f"{name} has shape {array.shape}, expected {shape}")


def _one_hot(places: np.ndarray, size: int, name: str) -> np.ndarray:
    outside = (places < 0) | (places >= size)
    if outside.any():
        found = places[int(outside.argmax())]
        raise InvalidValue(f"{name} has index {found} of {size} choices, counted from 0")
    return (places[:, None] == np.arange(size)).astype(np.float32)


def _built(space: Space, columns: np.ndarray) -> Any:
    """Return a batch of elements from one column for each choice or number."""
    if isinstance(space, Group):
        counts = [len(sizes_of(part)) or width(part) for part in space.parts.values()]
        pieces = np.split(columns, np.cumsum(counts)[:-1], 1)
        built = [_built(*pair) for pair in zip(space.parts.values(), pieces, strict=True)]
        return dict(zip(space.parts, built, strict=True)) if space.named else tuple(built)
    if isinstance(space, Discrete):
        return (columns[:, 0] + space.start).astype(space.dtype, copy=False)
    if isinstance(space, MultiDiscrete):
        shaped = columns.reshape(len(columns), *space.sizes.shape) + space.start
        return shaped.astype(space.dtype)
    shaped = columns.reshape(len(columns), *space.shape).astype(space.dtype)
    return shaped.clip(space.low, space.high)
