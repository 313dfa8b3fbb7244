"""Many seeds in one compiled program, distributed over the devices."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

SEEDS = jax.sharding.PartitionSpec("seeds")


def over_seeds(function: Callable[..., Any], *, donate: tuple[int, ...] = ()) -> Callable[..., Any]:
    """Compile a function of one seed for a leading axis of seeds, distributed over the devices.

    The last seed is repeated until the devices divide the number of seeds; the results of the
    copies are dropped.
    """
    mapped = _mapped(function)

    def run(*arguments: Any) -> Any:
        count = jax.tree.leaves(arguments)[0].shape[0]
        devices = min(count, len(jax.devices()))
        if devices == 1:
            return alone(*arguments)  # distributing costs milliseconds in every call
        filled = -count % devices
        arguments = jax.tree.map(partial(_fill, count=filled), arguments)
        # Committed to their devices; otherwise a second call would compile a second program.
        places = jax.sharding.NamedSharding(_mesh(devices), SEEDS)
        results = compiled(devices)(*jax.device_put(arguments, places))
        return jax.tree.map(partial(_first, count=count), results) if filled else results

    alone = jax.jit(mapped, donate_argnums=donate)
    compiled_for: dict[int, Callable[..., Any]] = {}

    def compiled(count: int) -> Callable[..., Any]:
        if count not in compiled_for:
            sharded = jax.shard_map(
                mapped, mesh=_mesh(count), in_specs=SEEDS, out_specs=SEEDS, check_vma=False
            )
            compiled_for[count] = jax.jit(sharded, donate_argnums=donate)
        return compiled_for[count]

    return run


def _mesh(devices: int) -> jax.sharding.Mesh:
    return jax.sharding.Mesh(np.array(jax.devices()[:devices]), ("seeds",))


def _mapped(function: Callable[..., Any]) -> Callable[..., Any]:
    def one_by_one(*arguments: Any) -> Any:
        return jax.lax.map(partial(_apply, function), arguments)

    return one_by_one if jax.default_backend() == "cpu" else jax.vmap(function)


def _apply(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return function(*arguments)


def _fill(x: Any, count: int) -> Any:
    if not count:
        return x
    return np.concatenate([np.asarray(x)] + [np.asarray(x)[-1:]] * count)


def _first(x: Array, count: int) -> Array:
    return x[:count]


def seed_keys(seeds: Sequence[int], purpose: int) -> Any:
    """Return raw key data, one row per seed, for a purpose other than training."""

    def derive(seed: Array) -> Array:
        return jax.random.key_data(jax.random.fold_in(jax.random.key(seed), purpose))

    return np.asarray(jax.jit(jax.vmap(derive))(np.asarray(seeds)))
