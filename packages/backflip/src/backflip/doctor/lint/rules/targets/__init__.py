"""Rules about targets of values, and target networks."""
