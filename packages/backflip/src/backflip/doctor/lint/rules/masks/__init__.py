"""Rules about ends of episodes: where the value of the next state counts."""
