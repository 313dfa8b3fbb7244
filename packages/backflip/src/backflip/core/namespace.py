"""The array module of an array: NumPy or JAX."""

from typing import Any

import jax.numpy as jnp
import numpy as np


def namespace_of(array: Any) -> Any:
    """Return `numpy` for NumPy arrays, `jax.numpy` for JAX arrays."""
    return np if isinstance(array, np.ndarray | np.generic) else jnp
