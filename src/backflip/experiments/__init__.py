"""Whole experiments over several seeds: training, evaluation, results."""
