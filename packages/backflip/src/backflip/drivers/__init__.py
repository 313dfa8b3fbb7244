"""Drivers: the loops that join an algorithm and an environment, compiled or on the host."""
