"""Learning algorithms, one file each, and the two drivers that feed them."""
