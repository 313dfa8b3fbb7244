"""The index: what the run folders say, in tables, so that ten thousand runs are found at once."""
