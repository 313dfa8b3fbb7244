"""Finds mistakes in reinforcement learning programs without running them."""
