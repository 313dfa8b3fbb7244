"""Labelling by people: the label queue, the page, the terminal. Needs no JAX."""
