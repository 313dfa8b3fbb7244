"""The network reward model: an ensemble of small neural networks."""
