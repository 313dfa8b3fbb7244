"""Trains an algorithm on environments whose correct result is known."""
