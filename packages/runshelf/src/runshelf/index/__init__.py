"""The index: tables of what the run folders contain, for fast lists, filters and sorting."""
