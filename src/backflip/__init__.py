"""Teach an agent what you want by comparing short clips of its behaviour.

`backflip.train("ppo", "CartPole-v1", seeds=10)` learns from an environment's own reward,
`backflip.teach("dot", labels=100)` from preferences. `backflip.log("loss", x)` logs from any
program. Importing the package imports nothing heavy.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backflip.archive.logger import clip, image, log, rate, timed
    from backflip.preferences.loop import teach
    from backflip.training.train import train

__all__ = ["clip", "image", "log", "rate", "teach", "timed", "train"]

_LOGGING = ("clip", "image", "log", "rate", "timed")


def __getattr__(name: str) -> Any:
    """Return what is asked for, importing JAX and whatever else it needs only now."""
    if name == "train":
        from backflip.training.train import train  # noqa: PLC0415

        return train
    if name == "teach":
        from backflip.preferences.loop import teach  # noqa: PLC0415

        return teach
    if name in _LOGGING:
        from backflip.archive import logger  # noqa: PLC0415

        # Kept: this function is far slower than logging is.
        return globals().setdefault(name, getattr(logger, name))
    raise AttributeError(f"module `backflip` has no attribute `{name}`")
