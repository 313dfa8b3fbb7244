"""Rules about networks: layers, activations and modes."""
