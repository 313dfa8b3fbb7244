"""Statistics over runs: intervals, differences, several environments, sequential tests.

The unit is one training run with one number. Arrays of numpy only: scipy takes 144 MB.
"""
