"""Imports logs of other libraries as runs, and exports runs to their formats."""
