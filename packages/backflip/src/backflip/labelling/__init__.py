"""Labelling by people: the label queue, the page, the terminal. Does not import JAX."""
