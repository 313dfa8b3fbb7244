"""Gymnasium's MuJoCo tasks, stepped as a batch, optionally with a fixed horizon."""
