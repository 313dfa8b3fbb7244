"""Views: how environments are drawn for a person. Needs NumPy and Pillow, no JAX."""
