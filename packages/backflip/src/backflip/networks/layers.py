"""Initialisation and computation of layers."""

from typing import Any

import numpy as np
from jaxtyping import Array, Float

Params = dict[str, Any]


def orthogonal(rng: np.random.Generator, rows: int, columns: int, gain: float) -> np.ndarray:
    """Return a (rows, columns) matrix with orthonormal rows or columns, times `gain`.

    Source: Saxe et al. 2014, arXiv:1312.6120.
    """
    tall = rng.normal(size=(max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(tall)
    q = q * np.sign(np.diag(r))  # makes the distribution uniform over such matrices
    return np.asarray(gain * (q if rows >= columns else q.T), np.float32)


def dense(rng: np.random.Generator, inputs: int, outputs: int, gain: float) -> Params:
    """Return the parameters of one affine layer: orthogonal weights, zero bias."""
    return {"w": orthogonal(rng, inputs, outputs, gain), "b": np.zeros(outputs, np.float32)}


def fan_in_dense(rng: np.random.Generator, inputs: int, outputs: int) -> Params:
    """Return the parameters of an affine layer, all uniform in ±1/√inputs.

    Source: Lillicrap et al. 2016, arXiv:1509.02971, section 7; also PyTorch's default.
    """
    bound = 1.0 / np.sqrt(inputs)
    w = rng.uniform(-bound, bound, (inputs, outputs)).astype(np.float32)
    return {"w": w, "b": rng.uniform(-bound, bound, outputs).astype(np.float32)}


def affine(layer: Params, x: Float[Array, "B inputs"]) -> Float[Array, "B outputs"]:
    """Return x W + b."""
    return x @ layer["w"] + layer["b"][None]
