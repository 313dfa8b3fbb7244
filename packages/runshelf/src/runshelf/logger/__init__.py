"""Logging metrics from any program, without set-up."""
