"""Finds mistakes in programs that learn by reinforcement, without running them."""
