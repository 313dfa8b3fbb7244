"""Logs of other programs become runs, and runs become files that other programs read."""
