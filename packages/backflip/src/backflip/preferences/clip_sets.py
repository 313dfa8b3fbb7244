"""Sets of clips in the label file, which are ranked or rated. Needs no JAX.

A set has a query for each pair of its clips, so everything that counts, exports or learns from
answers needs to know nothing of sets. What was said about each clip is kept besides.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from backflip.preferences.label_file import insert
from backflip.preferences.label_inserts import insert_clip, insert_films, insert_label, packed_clip
from backflip.preferences.label_records import Films, NewLabel, StoredClip
from backflip.preferences.labels import LabelStore
from backflip.preferences.rankings import answer_of, pairs_of
from runshelf.errors import UsageError
from runshelf.store.times import now

AskAboutSets = Literal["rank", "rate"]


class NewSet(NamedTuple):
    """A set of clips to add, of one seed, recorded after `env_steps` of it.

    Attributes:
        films: the films of each clip, if people answer.
        opinion: the reward model's prediction, of a set of two; see `NewQuery`.
    """

    seed: int
    ask: AskAboutSets
    clips: Sequence[StoredClip]
    env_steps: int
    films: Sequence[Films] = ()
    opinion: StoredClip | None = None


class ClipSet(NamedTuple):
    """A set of clips in the label file.

    Attributes:
        id: its number.
        ask: how it is answered.
        queries: its queries, or the open ones, with the ids of the left and the right clip.
        clips: ids of the clips, in the order in which they are shown.
    """

    id: int
    ask: AskAboutSets
    queries: Mapping[int, tuple[int, int]]
    clips: Sequence[int]


def add_sets(store: LabelStore, sets: Iterable[NewSet]) -> list[int]:
    """Add sets with their clips and queries in one transaction; return their ids.

    Raises:
        UsageError: a clip has an array that cannot be stored.
        UserFacingError: the disk is full; nothing is added.
    """
    packed = [(one, [packed_clip(clip) for clip in one.clips]) for one in sets]
    with store.file.transaction() as connection:
        return [_insert_set(connection, *one) for one in packed]


def _insert_set(connection: sqlite3.Connection, one: NewSet, packed: Sequence[bytes]) -> int:
    number = insert(
        connection, "INSERT INTO clip_sets (ask, asked_at) VALUES (?, ?)", (one.ask, now())
    )
    clips = [insert_clip(connection, one.seed, one.env_steps, clip) for clip in packed]
    for clip, films in zip(clips, one.films, strict=False):
        insert_films(connection, clip, films)
    for left, right in pairs_of(len(clips)):
        insert(
            connection,
            "INSERT INTO queries (seed, left_clip, right_clip, asked_at, opinion, clip_set)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (
                one.seed,
                clips[left],
                clips[right],
                now(),
                one.opinion and packed_clip(one.opinion),
                number,
            ),
        )
    return number


def open_sets(store: LabelStore, seed: int | None = None) -> list[ClipSet]:
    """Return the sets of one seed or of all that have open queries, oldest first."""
    rows = store.file.rows(
        "SELECT s.id, s.ask, q.id, q.left_clip, q.right_clip,"
        " EXISTS (SELECT 1 FROM effective e WHERE e.query = q.id)"
        " FROM clip_sets s JOIN queries q ON q.clip_set = s.id"
        " WHERE (? IS NULL OR q.seed = ?) AND q.repeats IS NULL ORDER BY q.id",
        (seed, seed),
    )
    found: dict[int, ClipSet] = {}
    for number, ask, query, left, right, answered in rows:
        known = found.get(number, ClipSet(number, ask, {}, ()))
        queries = known.queries if answered else {**known.queries, query: (left, right)}
        clips = [*known.clips, *(clip for clip in (left, right) if clip not in known.clips)]
        found[number] = known._replace(queries=queries, clips=clips)
    return [one._replace(clips=sorted(one.clips)) for one in found.values() if one.queries]


def answer_set(
    store: LabelStore,
    one: ClipSet,
    scores: Mapping[int, float | None],
    who: str,
    seconds: float = 0.0,
) -> int:
    """Record the scores of a set's clips, and the answers to its open queries, in one transaction.

    Args:
        store: the label store.
        one: the set.
        scores: of each clip, by its id; None for a clip that cannot be told.
        who: who answered.
        seconds: how long it took.

    Returns:
        The number of answers.

    Raises:
        UsageError: a query was answered meanwhile; nothing is recorded.
        UserFacingError: the disk is full; nothing is recorded.
    """
    if set(scores) != set(one.clips):
        raise UsageError(f"the scores of set {one.id} are not those of its clips")
    with store.file.transaction() as connection:
        at = now()
        insert_scores(connection, one.id, scores, who, at, seconds)
        for query, (left, right) in one.queries.items():
            answer = answer_of(scores[left], scores[right])
            insert_label(connection, NewLabel(query, answer, who, seconds / len(one.queries)), at)
    return len(one.queries)


def insert_scores(
    connection: sqlite3.Connection,
    number: int,
    scores: Mapping[int, float | None],
    who: str,
    at: str,
    seconds: float,
) -> None:
    """Insert the scores of a set's clips, given at `at`; None is a clip that cannot be told."""
    for clip, score in scores.items():
        if score is not None:
            insert(
                connection,
                "INSERT INTO scores (clip_set, clip, score, who, at, seconds)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (number, clip, float(score), who, at, float(seconds)),
            )


def whole_set(connection: sqlite3.Connection, number: int) -> ClipSet:
    """Return a set with all its queries, answered or not."""
    rows = connection.execute(
        "SELECT s.ask, q.id, q.left_clip, q.right_clip FROM clip_sets s"
        " JOIN queries q ON q.clip_set = s.id WHERE s.id = ? ORDER BY q.id",
        (number,),
    ).fetchall()
    queries = {query: (left, right) for _, query, left, right in rows}
    clips = sorted({clip for pair in queries.values() for clip in pair})
    return ClipSet(number, rows[0][0], queries, clips)


def scores_of(store: LabelStore, number: int) -> dict[int, float]:
    """Return the scores that the answer in force gave to the clips of a set, by the clip's id."""
    rows = store.file.rows(
        "SELECT DISTINCT s.clip, s.score FROM scores s JOIN queries q ON q.clip_set = s.clip_set"
        " JOIN effective e ON e.query = q.id AND e.at = s.at AND e.who = s.who"
        " WHERE s.clip_set = ? ORDER BY s.id",
        (number,),
    )
    return dict(rows)
