"""MinAtar: five Atari games on a board of 10x10 cells, one file each."""
