"""What the parents of a run had done, as in its configuration."""

from typing import NamedTuple

from runshelf.store.run import Run

CONTINUES = "continues"  # the entry of a configuration with what the parents had done


class Before(NamedTuple):
    """What a child's parent and the parents before it had done, for each seed.

    Attributes:
        updates: updates.
        env_steps: env steps, random ones included.
        labels: labels; 0 for `train`.
        open_queries: queries without an answer; 0 for `train`.
        configuration: identifies the parent's configuration without its seeds.
        uncounted: the updates that schedules do not count, because they came before a new start.
    """

    updates: int = 0
    env_steps: int = 0
    labels: int = 0
    open_queries: int = 0
    configuration: str = ""
    uncounted: int = 0


NO_PARENT = Before()


def before_of(run: Run) -> Before:
    """Return what the parents of a run had done; all zero for a run without a parent."""
    return Before(**run.config.get(CONTINUES, {}))
