"""What rules ask about a program: where values come from and go, and what networks are."""
