"""People as teachers: the desk at which they answer, by page or terminal, and training's pace."""
