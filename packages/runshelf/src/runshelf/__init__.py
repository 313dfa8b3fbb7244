"""Keep every run: `runshelf.log("loss", 0.25)` logs from any program, without set-up.

Importing the package imports nothing heavy: the logger is loaded when it is first used.
"""

from typing import TYPE_CHECKING, Any

from runshelf.logger.lazy import LOGGING, logging_function

if TYPE_CHECKING:
    from runshelf.logger.log import clip, image, log, rate, timed

__all__ = ["clip", "image", "log", "rate", "timed"]


def __getattr__(name: str) -> Any:
    """Return a function of the logger, which is loaded only now."""
    if name not in LOGGING:
        raise AttributeError(f"module `runshelf` has no attribute `{name}`")
    return logging_function(name, globals())
