"""Mathematics and plain types that every other package may use."""
