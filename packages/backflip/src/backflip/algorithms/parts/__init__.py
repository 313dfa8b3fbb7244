"""Pure functions that several algorithms share, one idea per module."""
