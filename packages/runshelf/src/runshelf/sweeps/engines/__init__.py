"""Engines: what starts the workers of a sweep. One file each, one Protocol, one test suite."""
