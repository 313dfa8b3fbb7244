"""Exports for other programs: policies that need NumPy only, and learned rewards."""
