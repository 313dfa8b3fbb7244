"""Rules about gradient steps and the loop around them."""
