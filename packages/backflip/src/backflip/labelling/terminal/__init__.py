"""Labelling in the terminal: clips side by side as text."""
