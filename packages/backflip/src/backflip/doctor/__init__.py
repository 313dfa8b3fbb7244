"""Says what is wrong with training, and why."""
