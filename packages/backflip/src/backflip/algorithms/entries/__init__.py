"""One module per algorithm, with its settings and its `ENTRY`; no module here imports JAX."""
