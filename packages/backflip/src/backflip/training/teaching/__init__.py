"""The loop of `teach`: settings, plan, phases, checkpoints and its end."""
