"""One module per algorithm with its settings and its `ENTRY`. No module here imports JAX."""
