"""The web pages of runs, and what all pages share: server, address, guard. Need no JAX."""
