"""Preferences: clips, queries, teachers, labels, and what is learnt from them."""
