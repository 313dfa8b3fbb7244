"""Environments written in JAX: whole training runs in one compiled program."""
