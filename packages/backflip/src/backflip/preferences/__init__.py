"""Preferences: clips, queries, teachers and labels."""
