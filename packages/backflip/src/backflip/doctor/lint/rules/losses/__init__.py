"""Rules about losses: signs, gradients and shapes."""
