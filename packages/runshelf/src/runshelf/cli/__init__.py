"""The command line: each file adds a few commands; `program` runs them."""
