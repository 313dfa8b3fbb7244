"""The linear reward model: Bayesian weights on slow quadratic features."""
