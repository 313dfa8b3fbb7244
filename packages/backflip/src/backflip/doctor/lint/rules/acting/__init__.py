"""Rules about how an agent chooses actions and explores."""
