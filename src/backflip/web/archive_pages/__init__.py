"""The pages of the archive: home, groups, runs, comparisons. They read a home and write nothing."""
