"""Removing: the trash, unused files, and what runs take on disk."""
