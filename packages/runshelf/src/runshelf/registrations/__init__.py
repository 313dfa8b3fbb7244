"""Registrations: the analysis of an experiment, written and hashed before its first run."""
