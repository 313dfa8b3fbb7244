"""Studies of an algorithm's settings, each a sweep underneath: ablation and sensitivity."""
