"""Rules about returns and advantages that are summed over time."""
