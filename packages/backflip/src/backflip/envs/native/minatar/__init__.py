"""MinAtar: five Atari games on a board of 10 x 10 cells."""
