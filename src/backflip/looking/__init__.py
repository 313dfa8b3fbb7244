"""Looking at environments and at what acts in them: reports, clips, and playing by hand."""
