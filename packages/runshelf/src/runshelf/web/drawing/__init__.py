"""Charts: which metrics, over which axis, and how curves are averaged and drawn."""
