"""Alerts: rules over runs, and the ways by which their messages are sent."""
