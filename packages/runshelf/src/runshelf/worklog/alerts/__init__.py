"""Alerts: rules over runs, and the channels on which their messages are sent."""
