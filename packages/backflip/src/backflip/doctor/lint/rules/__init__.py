"""The rules of `backflip lint`, one file for each kind of mistake."""
