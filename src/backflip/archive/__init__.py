"""Run folders: what was run, what it measured, and checkpoints. Needs no JAX."""
