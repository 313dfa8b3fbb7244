"""What people are asked: which clips, in which pairs, and when."""
