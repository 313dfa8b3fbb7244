"""Drawing what happened in a clip, for a person to judge. Needs NumPy and Pillow, no JAX."""
