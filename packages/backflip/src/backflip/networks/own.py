"""A user's own network, `module:function`: how it is made, and what it must keep to.

The function gets the environment's spec and the setting `hidden`, and returns a `Network`. The
algorithm adds the last layer, from features to actions or values.
"""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from backflip.core.spec import EnvSpec
from backflip.core.user_code import find_object
from backflip.networks.layers import Params
from backflip.networks.pixel_networks import is_own
from runshelf.errors import UsageError, one_line

ROWS = 3  # observations in the check


@runtime_checkable
class Network(Protocol):
    """From observations to features. Both methods are pure functions."""

    def init(self, rng: np.random.Generator) -> Any:
        """Return the parameters, drawn from `rng`: dicts and lists of float32 arrays."""
        ...

    def apply(self, params: Any, obs: Array) -> Float[Array, "B F"]:
        """Return the features of a batch of observations, as float32; written in JAX.

        Observations are float32 vectors (B, D), or uint8 images (B, height, width, channels). The
        features of an observation may not depend on the rest of the batch.
        """
        ...


class OwnNetwork:
    """A user's network that kept to the interface.

    Args:
        name: `module:function`.
        network: what the function returned.
        features: F.
    """

    def __init__(self, name: str, network: Network, features: int) -> None:
        self.name, self.features, self._network = name, features, network

    def init(self, rng: np.random.Generator) -> Params:
        """Return the parameters as NumPy arrays."""
        return {"network": jax.tree.map(np.asarray, self._network.init(rng))}

    def apply(self, params: Params, inputs: Array) -> Float[Array, "B F"]:
        """Return the features of a batch."""
        return self._network.apply(params["network"], inputs)


def own_network(name: str, spec: EnvSpec, hidden: tuple[int, ...]) -> OwnNetwork:
    """Return the network of the function that `name` names, after a check.

    Raises:
        UsageError: there is no such function, it raised, or its network is invalid.
    """
    function = find_object(name)
    if not callable(function):
        raise UsageError(f"network `{name}` must be a function of (spec, hidden)")
    network = _guarded(name, "the function", lambda: function(spec, hidden))
    for method in ("init", "apply"):
        if not callable(getattr(network, method, None)):
            raise UsageError(
                f"network `{name}` must return an object with `init` and `apply`, as in "
                f"backflip.networks.own.Network, got {type(network).__name__}"
            )
    return OwnNetwork(name, network, check_network(name, network, spec))


def refuse_own(algorithm: str, name: str) -> None:
    """Refuse a user's network for an algorithm that cannot use one.

    Raises:
        UsageError: `name` is `module:function`.
    """
    if is_own(name):
        raise UsageError(
            f"`{algorithm}` with continuous actions has no place for the network `{name}`: its "
            "critics also read actions; use --set hidden, or ppo, a2c or vpg"
        )


def check_network(name: str, network: Network, spec: EnvSpec) -> int:
    """Return the number of features of a network that keeps to the interface.

    Raises:
        UsageError: it does not; the message says what is wrong.
    """
    params = _checked_params(name, network)
    features = _checked_shapes(name, network, params, spec)
    obs = _some_observations(spec)
    first, second = (_features(name, network, params, obs) for _ in range(2))
    if not np.isfinite(first).all():
        raise _wrong(name, "`apply` returned a number that is not finite")
    if (first != second).any():
        raise _wrong(name, "`apply` is not pure: the same arguments gave different features")
    alone = np.concatenate([_features(name, network, params, obs[i : i + 1]) for i in range(ROWS)])
    if not np.allclose(first, alone, rtol=1e-3, atol=1e-4):
        raise _wrong(name, "`apply` mixes rows: features change with the rest of the batch")
    _check_gradient(name, network, params, obs)
    return features


def _checked_params(name: str, network: Network) -> Any:
    first, second = (
        _guarded(name, "`init`", lambda: network.init(np.random.default_rng(0))) for _ in range(2)
    )
    leaves = jax.tree_util.tree_leaves_with_path(first)
    for path, leaf in leaves:
        where = f"parameter `{jax.tree_util.keystr(path, simple=True, separator='.')}`"
        if not hasattr(leaf, "dtype") or leaf.dtype != np.float32:
            kind = getattr(leaf, "dtype", type(leaf).__name__)
            raise _wrong(name, f"{where} is {kind}, expected a float32 array")
        if not np.isfinite(leaf).all():
            raise _wrong(name, f"{where} is not finite")
    others = jax.tree.leaves(second)
    same = len(leaves) == len(others) and all(
        np.array_equal(leaf, other) for (_, leaf), other in zip(leaves, others, strict=True)
    )
    if not same:
        raise _wrong(name, "`init` is not pure: draw all random numbers from its argument `rng`")
    return jax.tree.map(np.asarray, first)


def _checked_shapes(name: str, network: Network, params: Any, spec: EnvSpec) -> int:
    """Return the number of features, found by tracing without running, also for several seeds."""
    box = spec.observation
    batch = jax.ShapeDtypeStruct((ROWS, *box.shape), box.dtype)
    out: Any = _guarded(name, "`apply`", lambda: jax.eval_shape(network.apply, params, batch))
    if not hasattr(out, "shape"):
        raise _wrong(name, f"`apply` returned {type(out).__name__}, expected one array")
    if out.dtype != np.float32:
        raise _wrong(name, f"`apply` returned {out.dtype}, expected float32")
    if len(out.shape) != 2 or out.shape[0] != ROWS or not out.shape[1]:
        expected = f"for {ROWS} observations, expected ({ROWS}, F)"
        raise _wrong(name, f"`apply` returned shape {out.shape} {expected}")

    def of_two_seeds(x: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((2, *x.shape), x.dtype)

    two: Any = jax.tree.map(of_two_seeds, (params, batch))
    _guarded(name, "`jax.vmap(apply)`", lambda: jax.eval_shape(jax.vmap(network.apply), *two))
    return out.shape[1]


def _some_observations(spec: EnvSpec) -> np.ndarray:
    """Return the lowest, the highest and a random observation.

    Those of vectors are within ±10.
    """
    box = spec.observation
    limit = 255 if spec.is_image else 10
    low, high = box.low.clip(-limit, limit), box.high.clip(-limit, limit)
    between = low + (high - low) * np.random.default_rng(0).random(box.shape)
    return np.stack([low, high, between]).astype(box.dtype)


def _features(name: str, network: Network, params: Any, obs: np.ndarray) -> np.ndarray:
    return np.asarray(_guarded(name, "`apply`", lambda: network.apply(params, jnp.asarray(obs))))


def _check_gradient(name: str, network: Network, params: Any, obs: np.ndarray) -> None:
    def total(params: Any) -> Array:
        return jnp.square(network.apply(params, jnp.asarray(obs))).sum()

    slope: Callable[[Any], Any] = jax.grad(total)
    gradient = _guarded(name, "the gradient of `apply`", lambda: slope(params))
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient)):
        raise _wrong(name, "the gradient of `apply` is not finite")


def _guarded(name: str, what: str, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # `sys.exit` in a user's function is an error, too
        raise _wrong(name, f"{what} raised {one_line(error)}") from error


def _wrong(name: str, problem: str) -> UsageError:
    return UsageError(f"network `{name}`: {problem}")
