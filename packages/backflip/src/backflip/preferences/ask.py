"""How a teacher is asked. Needs no NumPy: the command line imports it."""

from typing import Literal, get_args

# Compare two clips; rank several at once; or rate one clip after the other.
Ask = Literal["compare", "rank", "rate"]
ASKS: tuple[Ask, ...] = get_args(Ask)
MOST_AT_ONCE = 9  # clips of a set: one key for each
