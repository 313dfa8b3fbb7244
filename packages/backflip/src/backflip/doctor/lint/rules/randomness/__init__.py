"""Rules about seeds, keys and counters."""
