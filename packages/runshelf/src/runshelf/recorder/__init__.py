"""Runs any program and records its output, resource use and output files."""
