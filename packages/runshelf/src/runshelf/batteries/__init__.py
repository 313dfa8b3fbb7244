"""Batteries: fixed commands and seeds that are measured again after a change of the code."""
