"""The records of the label store: clips, queries and answers. Needs no JAX."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, final, get_args

import numpy as np

from backflip.preferences.films import Film, Which

Answer = Literal["left", "right", "tie", "skip"]
ANSWERS: tuple[Answer, ...] = get_args(Answer)
# `who` of an answer that says: the demonstration is better. No teacher gave it, so a run's own
# answers of this kind count neither as queries nor as labels of its budget.
DEMONSTRATION = "demonstration"

StoredClip = Mapping[str, np.ndarray]
Films = Mapping[Which, Film]


class NewQuery(NamedTuple):
    """A query to add: two clips of one seed, recorded after `env_steps` of it.

    Attributes:
        films: the films of the left and the right clip, if people answer.
        opinion: the reward model's prediction for the two clips; shown after the answer.
        origin: the run or file of an imported query.
    """

    seed: int
    left: StoredClip
    right: StoredClip
    env_steps: int
    films: tuple[Films, Films] | None = None
    opinion: StoredClip | None = None
    origin: str | None = None


class NewLabel(NamedTuple):
    """An answer to add: its query, its author, and the seconds it took."""

    query: int
    answer: str
    who: str
    seconds: int | float


class AnsweredElsewhere(NamedTuple):
    """A query with its answer: of another run, of a file (`exchange`), or of a demonstration.

    Attributes:
        clips: the left and the right clip, compressed.
        seed: the seed that recorded them.
        env_steps: env steps of that seed when they were recorded.
        answer: one of `ANSWERS`.
        who: who answered.
        at: the time of the answer, as `label_file.now` returns it.
        seconds: seconds that the answer took.
        origin: the run or file that it comes from; None for a demonstration of this run.
        attempts: an identifier of the answer for each seed that gets it; see `add_answered`.
    """

    clips: tuple[bytes, bytes]
    seed: int
    env_steps: int
    answer: Answer
    who: str
    at: str
    seconds: float
    origin: str | None
    attempts: Mapping[int, str]


class Query(NamedTuple):
    """A query in the store; `LabelStore.clips` returns its clips."""

    id: int
    seed: int
    env_steps: int
    asked_at: str


class AnswerInForce(NamedTuple):
    """An answer that can be trained on, its query, and the seed's env steps at the query."""

    query: int
    answer: Answer
    env_steps: int


@final
@dataclass(frozen=True)
class LabelledPair:
    """An answered query with its clips.

    Attributes:
        query: the query's id.
        label: the answer's id; ids increase in the order of answering.
        answer: `left`, `right` or `tie`.
        left: the arrays of the left clip.
        right: the arrays of the right clip.
        env_steps: env steps of the seed when the clips were recorded; 0 if imported.
        who: who answered.
    """

    query: int
    label: int
    answer: Answer
    left: dict[str, np.ndarray]
    right: dict[str, np.ndarray]
    env_steps: int
    who: str


class Counts(NamedTuple):
    """Numbers of queries, open queries and answers; undone answers do not count."""

    queries: int
    pending: int
    left: int
    right: int
    tie: int
    skip: int

    @property
    def labels(self) -> int:
        """All answers, including `skip`."""
        return self.left + self.right + self.tie + self.skip


def mirrored(answer: Answer) -> Answer:
    """Return the equivalent answer for the pair with its sides swapped."""
    mirror: dict[Answer, Answer] = {"left": "right", "right": "left"}
    return mirror.get(answer, answer)
