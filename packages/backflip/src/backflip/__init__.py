"""Teach an agent what you want by comparing short clips of its behaviour.

`backflip.train("ppo", "CartPole-v1", seeds=10)` learns from an environment's own reward,
`backflip.teach("dot", labels=100)` from preferences. `backflip.load_policy("latest")` acts with
what was learned, `backflip.load_reward("latest")` is the reward that was taught,
`backflip.load_run("latest")` opens its numbers. `backflip.log("loss", x)` is `runshelf.log`;
`backflip.tap("loss", x)` is for compiled programs.
Importing the package imports nothing heavy.
"""

from typing import TYPE_CHECKING, Any

from runshelf.logger.lazy import LOGGING, logging_function

if TYPE_CHECKING:
    from backflip.core.taps import tap, taps
    from backflip.loading import load_policy, load_reward, load_run
    from backflip.teaching_api import teach, teach_more
    from backflip.training.train import train, train_more
    from runshelf.logger.log import clip, image, log, rate, timed

__all__ = [
    "clip",
    "image",
    "load_policy",
    "load_reward",
    "load_run",
    "log",
    "rate",
    "tap",
    "taps",
    "teach",
    "teach_more",
    "timed",
    "train",
    "train_more",
]


def __getattr__(name: str) -> Any:
    """Return a public function, importing JAX and other heavy packages only now."""
    if name in ("train", "train_more"):
        from backflip.training import train  # noqa: PLC0415

        return getattr(train, name)
    if name in ("teach", "teach_more"):
        from backflip import teaching_api  # noqa: PLC0415

        return getattr(teaching_api, name)
    if name in ("tap", "taps"):
        from backflip.core import taps  # noqa: PLC0415

        return getattr(taps, name)
    if name in ("load_policy", "load_reward", "load_run"):
        from backflip import loading  # noqa: PLC0415

        return getattr(loading, name)
    if name in LOGGING:
        return logging_function(name, globals())
    raise AttributeError(f"module `backflip` has no attribute `{name}`")
