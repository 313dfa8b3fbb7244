"""Records runs of any program. `runshelf.log("loss", 0.25)` logs a metric without set-up.

Importing the package is fast: the logger is loaded on first use.
"""

from typing import TYPE_CHECKING, Any

from runshelf.logger.lazy import LOGGING, logging_function

if TYPE_CHECKING:
    from runshelf.logger.log import clip, image, log, rate, timed

__all__ = ["clip", "image", "log", "rate", "timed"]


def __getattr__(name: str) -> Any:
    """Return a function of the logger; load the logger on first use."""
    if name not in LOGGING:
        raise AttributeError(f"module `runshelf` has no attribute `{name}`")
    return logging_function(name, globals())
