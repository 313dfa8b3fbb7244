"""Sweeps: many configurations over many seeds, as blocks that any number of workers run."""
