"""Environments: interfaces, environments in JAX, and adapters for other packages."""
