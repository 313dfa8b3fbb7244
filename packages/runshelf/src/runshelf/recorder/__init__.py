"""The recorder: runs any program, and keeps what it prints, uses and leaves behind."""
