"""Environments in JAX, compiled together with the algorithm."""
