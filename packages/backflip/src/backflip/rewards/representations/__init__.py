"""What a linear reward model is linear in: one file for each representation."""
