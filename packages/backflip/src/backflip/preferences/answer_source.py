"""The Protocols through which the training loop gets answers to its queries. Needs no JAX.

A program (`backflip.preferences.program_source`) or people (`backflip.labelling.people_source`)
answer. The caller of the training loop passes the `AnswerSource`.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from backflip.preferences.drawer import Drawer
from backflip.preferences.labels import LabelStore

# What the trainer is doing. `waiting` means that it waits for answers.
Doing = Literal["setting up", "drawing", "learning", "waiting", "evaluating", "finished", "stopped"]


class QueriedRun(NamedTuple):
    """The run whose queries an answer source answers.

    Attributes:
        folder: the run's folder.
        env: the environment's id.
        seeds: the seeds of the run.
        store: the run's queries and labels.
        drawer: draws clips of the environment.
        phases: the number of training phases.
        due_after: (number of phases) -> queries added after them, of all seeds. They may change
            until then.
        budget: labels of all seeds together.
        say: reports a note to the user.
        wait: reports what training waits for.
        book_time: books the seconds since the last call on a part of the run.
    """

    folder: Path
    env: str
    seeds: Sequence[int]
    store: LabelStore
    drawer: Drawer
    phases: int
    due_after: Callable[[int], int]
    budget: int
    say: Callable[[str], None]
    wait: Callable[[str], None]
    book_time: Callable[[Literal["train", "answers"]], Any]


@runtime_checkable
class Answers(Protocol):
    """An open answer source."""

    def set_status(self, doing: Doing, expected_seconds: float | None = None, **facts: Any) -> None:
        """Show people what the trainer is doing."""
        ...

    def wait_for_labels(self, newest_round: int) -> None:
        """Wait until the next phase of training may begin.

        Args:
            newest_round: queries of the newest round, of all seeds together.
        """
        ...

    def queries_wanted(self) -> int:
        """Return how many more queries can be answered until the next ones; 0 if it is unknown."""
        ...

    def enough(self) -> bool:
        """Return whether people have ended labelling, so that no more queries are added."""
        ...

    def remaining_seconds(self, queries: int) -> float:
        """Return the expected seconds of answering, with `queries` more to come."""
        ...


@runtime_checkable
class AnswerSource(Protocol):
    """What answers the queries of a run: a program or people."""

    @property
    def teacher(self) -> str:
        """The value of `--teacher`, saved in the run's configuration."""
        ...

    @property
    def usual_labels(self) -> int:
        """The default label budget of each seed."""
        ...

    @property
    def config(self) -> Mapping[str, Any]:
        """Further entries of the run's configuration."""
        ...

    @property
    def needs_films(self) -> bool:
        """Whether every query needs films of its clips, which people watch."""
        ...

    @property
    def shows_clips(self) -> bool:
        """Whether the teacher may look at pictures of the clips; a simulated one does not."""
        ...

    def open(self, run: QueriedRun) -> AbstractContextManager[Answers]:
        """Return a context manager, inside which queries are answered."""
        ...
