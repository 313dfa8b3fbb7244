"""The checks, by what they look at. A new one is an entry in the `CHECKS` of a file."""
