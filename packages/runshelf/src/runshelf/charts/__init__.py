"""Charts as SVG and as text."""
