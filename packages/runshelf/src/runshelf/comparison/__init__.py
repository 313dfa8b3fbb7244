"""Comparisons: two runs line by line, and sides over their seeds with statistics."""
