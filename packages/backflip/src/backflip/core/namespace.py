"""NumPy's functions for NumPy's arrays, JAX's for JAX's."""

from typing import Any

import jax.numpy as jnp
import numpy as np


def namespace_of(array: Any) -> Any:
    """Return the module, `numpy` or `jax.numpy`, whose functions are for an array."""
    return np if isinstance(array, np.ndarray | np.generic) else jnp
