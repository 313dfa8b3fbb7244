"""Teaching by comparison: clips, queries, teachers, labels, reward model and the loop."""
