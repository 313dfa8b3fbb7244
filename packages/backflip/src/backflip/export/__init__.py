"""Policies in a file that needs NumPy only."""
