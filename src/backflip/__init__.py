"""Teach an agent what you want by comparing short clips of its behaviour.

`backflip.train("ppo", "CartPole-v1", seeds=10)` learns from an environment's own reward,
`backflip.teach("dot", labels=100)` from preferences. Importing the package imports nothing heavy.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backflip.preferences.loop import teach
    from backflip.training.train import train

__all__ = ["teach", "train"]


def __getattr__(name: str) -> Any:
    """Return `train` or `teach`, importing JAX and what else they need only now."""
    if name == "train":
        from backflip.training.train import train  # noqa: PLC0415

        return train
    if name == "teach":
        from backflip.preferences.loop import teach  # noqa: PLC0415

        return teach
    raise AttributeError(f"module `backflip` has no attribute `{name}`")
