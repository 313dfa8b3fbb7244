"""Readers of logs: each returns what was logged in our names."""
