"""Where the answers to the queries of a run come from. Needs no JAX.

The training loop knows these two Protocols and nothing of who implements them: a program
(`backflip.preferences.program_source`) or people (`backflip.labelling.people_source`). The caller
of the loop passes an `AnswerSource` in.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from backflip.preferences.drawer import Drawer
from backflip.preferences.labels import LabelStore

# What the trainer is doing. `waiting` is for answers.
Doing = Literal["setting up", "drawing", "learning", "waiting", "evaluating", "finished", "stopped"]


class QueriedRun(NamedTuple):
    """What an answer source gets to know of the run whose queries it answers.

    Attributes:
        folder: the run's folder.
        env: the environment's id.
        seeds: the seeds of the run.
        store: the run's queries and labels.
        drawer: draws clips of the environment.
        phases: phases of training, in all.
        budget: labels of all seeds together.
        say: reports a note to the user, once.
        wait: reports what training waits for.
        book_time: (part) -> books the seconds since the last call on a part of the run.
    """

    folder: Path
    env: str
    seeds: Sequence[int]
    store: LabelStore
    drawer: Drawer
    phases: int
    budget: int
    say: Callable[[str], None]
    wait: Callable[[str], None]
    book_time: Callable[[Literal["train", "answers"]], Any]


@runtime_checkable
class Answers(Protocol):
    """An answer source at work, as the training loop sees it."""

    def set_status(self, doing: Doing, expected_seconds: float | None = None, **facts: Any) -> None:
        """OnEnvSteps the people who wait, if any, what the trainer is doing."""
        ...

    def wait_for_labels(self, newest_round: int) -> None:
        """Return as soon as the next phase of training may begin.

        Args:
            newest_round: how many queries the newest round has, over all seeds.
        """
        ...

    def enough(self) -> bool:
        """Return whether no more queries are to be added."""
        ...

    def remaining_seconds(self, queries: int) -> float:
        """Return how long answering will still take, with `queries` more to come."""
        ...


@runtime_checkable
class AnswerSource(Protocol):
    """Who answers the queries of a run."""

    @property
    def teacher(self) -> str:
        """The teacher as a person types it after `--teacher`; the run's configuration keeps it."""
        ...

    @property
    def usual_labels(self) -> int:
        """The budget of each seed where nobody names one."""
        ...

    @property
    def config(self) -> Mapping[str, Any]:
        """What the run's configuration keeps beside the teacher's name."""
        ...

    @property
    def needs_films(self) -> bool:
        """Whether every query needs films of its clips, for people to watch."""
        ...

    def open(self, run: QueriedRun) -> AbstractContextManager[Answers]:
        """Return a context manager; answers can come as long as it is open."""
        ...
