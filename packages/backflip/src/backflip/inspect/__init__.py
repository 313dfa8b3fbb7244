"""Look at an environment, play it, watch a policy."""
