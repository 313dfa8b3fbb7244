"""What cannot be logged: reported on stderr once per kind, and counted."""

from typing import final

from runshelf.environment import variable
from runshelf.errors import UsageError, UserFacingError, one_line
from runshelf.logger import script


@final
class Refused(UserFacingError):
    """Something cannot be logged: a message, and the kind under which it is counted."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


@final
class Problems:
    """Reports what cannot be logged: once per kind, with a total at the end."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def report(self, error: Exception, name: str = "") -> None:
        """Count an error and print the first of its kind; raise it in strict mode.

        Args:
            error: the reason why something could not be logged.
            name: the name that was logged, if known.

        Raises:
            UsageError: `RUNSHELF_STRICT` is set.
        """
        if variable("STRICT") not in (None, "0"):
            raise UsageError(_label(name) + _one_line(error)) from error
        self.note(error, name)

    def note(self, error: Exception, name: str = "") -> None:
        """Count an error and print the first of its kind."""
        kind = str(getattr(error, "kind", type(error).__name__))
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        if count == 1:
            text = _label(name) + _one_line(error)
            script.say(f"not logged: {text} (reported once; RUNSHELF_STRICT=1 raises it)")

    def sum_up(self) -> None:
        """Print how many errors of each kind there were, if some were not printed."""
        total = sum(self._counts.values())
        if total > len(self._counts):
            kinds = ", ".join(f"{n} x {kind}" for kind, n in sorted(self._counts.items()))
            script.say(f"{total} values could not be logged: {kinds}")


def _label(name: str) -> str:
    return f"`{name[:60]}`: " if name else ""


def _one_line(error: Exception) -> str:
    if isinstance(error, UserFacingError):
        return " ".join(str(error).split())[:300]
    return one_line(error)


problems = Problems()
