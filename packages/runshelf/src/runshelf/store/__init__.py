"""Run folders: what was run, its state, and its metrics."""
