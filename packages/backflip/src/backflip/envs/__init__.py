"""Environments: their specification, our own in JAX, and the adapter for Gymnasium's."""
