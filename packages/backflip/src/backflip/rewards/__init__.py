"""Reward models: fitted to labelled comparisons of clips, they predict a reward."""
