"""The trash, garbage collection, and disk usage."""
