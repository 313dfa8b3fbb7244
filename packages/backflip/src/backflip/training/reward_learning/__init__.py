"""The learned reward of a run of `teach`: its fits, what they reach, and what they miss."""
