"""Learning algorithms, one file each. `registry` finds them by name."""
