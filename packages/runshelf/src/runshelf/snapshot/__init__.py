"""Archives code, packages and machine of a program before it starts, without secrets."""
