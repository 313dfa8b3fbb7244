"""The clips that a user gives a new run: those that its first queries show, and demonstrations."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from backflip.core.spec import EnvSpec
from backflip.training.queries.demonstrations import CONFIG as DEMONSTRATIONS
from backflip.training.queries.demonstrations import (
    DEMONSTRATED,
    checked_sources,
    draw_demonstrations,
)
from backflip.training.queries.recorded_clips import (
    CONFIG,
    RECORDED,
    Recorded,
    draw_recorded,
    inherit_clips,
    keep_clips,
)
from backflip.training.teaching.config import TeachConfig
from runshelf.errors import UsageError
from runshelf.store.run import Run


class GivenClips(NamedTuple):
    """Clips for a new run.

    Attributes:
        recorded: clips that the first queries show, of `--clips`, if any.
        demonstrated: clips that count as preferred, of `--demonstrations`, if any.
    """

    recorded: Recorded | None
    demonstrated: Recorded | None

    @property
    def about(self) -> dict[str, Any]:
        """Where the clips come from, for the configuration of the run."""
        recorded = {CONFIG: self.recorded.about} if self.recorded else {}
        return recorded | ({DEMONSTRATIONS: self.demonstrated.about} if self.demonstrated else {})

    def keep(self, folder: Path) -> None:
        """Write the clips into the folder of the run, which then needs no other file."""
        keep_clips(self.recorded, folder / RECORDED)
        keep_clips(self.demonstrated, folder / DEMONSTRATED)


class ClipSources(NamedTuple):
    """Files and data sets that clips are drawn from: `.npz` files, or `minari:` and an id.

    Attributes:
        recorded: the source of the clips that the first queries show, if any.
        demonstrations: the sources of demonstrations.
    """

    recorded: str | None
    demonstrations: Sequence[str]

    def draw(
        self, spec: EnvSpec, config: TeachConfig, *, labels: int, teacher: str, seed: int
    ) -> GivenClips:
        """Return clips, drawn uniformly.

        Args:
            spec: the environment's spec.
            config: the settings of teaching.
            labels: the number of labels that each seed asks for.
            teacher: who answers.
            seed: the first seed, which decides what is drawn.

        Raises:
            UsageError: a source cannot be used; the message says why.
        """
        recorded = demonstrated = None
        if self.recorded is not None:
            recorded = draw_recorded(
                self.recorded, spec, config, labels=labels, teacher=teacher, seed=seed
            )
        if self.demonstrations:
            demonstrated = draw_demonstrations(self.demonstrations, spec, config, seed)
        return GivenClips(recorded, demonstrated)


def clip_sources(
    clips: Path | str | None,
    demonstrations: Path | str | Sequence[Path | str] | None,
    *,
    asks: bool,
) -> ClipSources:
    """Return the sources that a user names.

    Args:
        clips: the source of the first queries' clips.
        demonstrations: one source of demonstrations, or several.
        asks: whether the run makes queries.

    Raises:
        UsageError: they are of another type, or the run makes no queries.
    """
    if clips is not None and not asks:
        raise UsageError(
            "there are no queries about the clips: leave out --clips, or ask for more --labels"
        )
    sources = [] if demonstrations is None else checked_sources(demonstrations)
    if sources and not asks:
        raise UsageError(
            "demonstrations add to labels, and there are no queries: leave out --demonstrations, "
            "or ask for more --labels"
        )
    return ClipSources(None if clips is None else str(clips), sources)


def has_demonstrations(config: Mapping[str, Any]) -> bool:
    """Return whether demonstrations add labels to a run with this configuration."""
    return DEMONSTRATIONS in config


def inherit_given_clips(parent: Run, child: Run) -> None:
    """Copy the clips that the parent was given into the folder of its child."""
    inherit_clips(parent, child, CONFIG, RECORDED)
    inherit_clips(parent, child, DEMONSTRATIONS, DEMONSTRATED)
