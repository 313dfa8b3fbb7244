"""What is kept of a program before it starts: its code, its packages, its machine; no secrets."""
