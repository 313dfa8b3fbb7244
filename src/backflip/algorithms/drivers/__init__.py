"""The loops around an algorithm: environments in JAX, environments outside it, one interface."""
