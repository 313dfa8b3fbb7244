"""Rules about environments: steps, resets, wrappers, rewards and statistics of observations."""
