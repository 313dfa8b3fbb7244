"""The web pages: labelling. They share files and SQLite with the trainer, and need no JAX."""
