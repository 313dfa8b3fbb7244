"""The pages of runs, and the server, guard and address that pages of other packages share."""
