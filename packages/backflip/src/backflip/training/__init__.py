"""Runs of `train` and `teach`: sessions, progress, checkpoints and results."""
