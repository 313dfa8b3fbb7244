"""Reward models: from labelled comparisons of clips to a reward that an agent can learn from."""
