"""The prompts that people answer: compare two clips, rank several, or rate one after the other.

A prompt has the number of its query. A set has a query for each pair of its clips, and its
prompt has the number of the first. Whatever is asked, an answer becomes one label for each query,
as the answer of a simulated teacher does (`backflip.preferences.clip_sets`).

What a person has said of a set so far, its marks, is kept with every key: the places of the clips
ranked so far, best first; or the ratings of the first clips, None for a clip that cannot be told.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from backflip.labelling.refused import Refused
from backflip.preferences.ask import Ask
from backflip.preferences.clip_sets import whole_set
from backflip.preferences.films import Film, Which, film_of_json
from backflip.preferences.label_file import insert
from backflip.preferences.label_records import ANSWERS, Answer
from backflip.preferences.labels import LabelStore
from backflip.preferences.rankings import (
    BEST_RATING,
    answer_of,
    scores_of_ranking,
    scores_of_ratings,
)
from runshelf.errors import shown
from runshelf.store.times import now

Marks = Sequence[int | None]
Given = str | Sequence[Any]  # an answer as a person gave it


class Asked(NamedTuple):
    """A prompt in the label file.

    Attributes:
        query: its number.
        kind: how it is answered.
        clips: ids of the clips, in the order in which they are shown.
        queries: all queries, with the ids of the left and the right clip.
        clip_set: the number of the set; None for a comparison.
    """

    query: int
    kind: Ask
    clips: Sequence[int]
    queries: Mapping[int, tuple[int, int]]
    clip_set: int | None = None


class Prompt(NamedTuple):
    """A prompt with the films of its clips, by view, and its marks."""

    query: int
    kind: Ask
    clips: Sequence[Mapping[Which, Film]]
    marks: Marks = ()


class Step(NamedTuple):
    """What follows from a key about a set: marks to go on with, or the complete answer."""

    marks: Marks = ()
    answer: Given | None = None


class Said(NamedTuple):
    """What an answer says: a label for each query, and a score for each clip of a set."""

    labels: Mapping[int, Answer]
    scores: Mapping[int, float | None]


def asked(connection: Any, query: int) -> Asked:
    """Return the prompt with a number.

    Raises:
        Refused: there is none.
    """
    row = connection.execute(
        "SELECT left_clip, right_clip, clip_set FROM queries WHERE id = ?", (query,)
    ).fetchone()
    if row is None:
        raise Refused("unknown", f"there is no prompt {query}")
    left, right, number = row
    if number is None:
        return Asked(query, "compare", (left, right), {query: (left, right)})
    one = whole_set(connection, number)
    if query != min(one.queries):
        raise Refused("unknown", f"query {query} belongs to prompt {min(one.queries)}")
    return Asked(query, one.ask, one.clips, one.queries, number)


def prompt(connection: Any, query: int, who: str) -> Prompt:
    """Return a prompt with the films of its clips and the marks of `who`."""
    one = asked(connection, query)
    films = [_films(connection, clip) for clip in one.clips]
    return Prompt(query, one.kind, films, _kept_marks(connection, one, who))


def is_shown(connection: Any, query: int) -> bool:
    """Return whether all clips of a prompt have a film that is not damaged."""
    return all(_films(connection, clip) for clip in asked(connection, query).clips)


def said_by(one: Asked, given: Given) -> Said:
    """Return what an answer says.

    Raises:
        Refused: it is not an answer to this prompt.
    """
    if one.kind == "compare":
        return Said({one.query: checked_answer(given)}, {})
    if given == "skip":
        skip: Answer = "skip"
        return Said(dict.fromkeys(one.queries, skip), {})
    read = scores_of_ranking if one.kind == "rank" else scores_of_ratings
    scores = read(given, len(one.clips))
    if scores is None:
        raise Refused("invalid", f"{_brief(given)} is not an answer (expected {_wanted(one)})")
    of = dict(zip(one.clips, scores, strict=True))
    labels: dict[int, Answer] = {
        query: answer_of(of[left], of[right]) for query, (left, right) in one.queries.items()
    }
    return Said(labels, of)


def after_key(one: Prompt, key: int | str) -> Step | None:
    """Return what follows from a key about a set; None if it means nothing.

    Args:
        one: the set.
        key: a number from 1; `tie`, all clips without a place are equally good; or `skip`.
    """
    if one.kind == "rate":
        return _after_rating(one, key)
    if key == "skip":
        return Step(answer="skip")
    rest = [place for place in range(len(one.clips)) if place not in one.marks]
    if key == "tie":
        return Step(answer=[*one.marks, rest])
    if not isinstance(key, int) or key - 1 not in rest:
        return None
    rest.remove(key - 1)
    places = [*one.marks, key - 1]
    return Step(places) if len(rest) > 1 else Step(answer=[*places, *rest])


def _after_rating(one: Prompt, key: int | str) -> Step | None:
    if key == "tie":
        return None
    ratings = [*one.marks, None if key == "skip" else int(key)]
    return Step(ratings) if len(ratings) < len(one.clips) else Step(answer=ratings)


def checked_answer(given: Given) -> Answer:
    """Return an answer to a comparison.

    Raises:
        Refused: it is not one.
    """
    for answer in ANSWERS:
        if given == answer:
            return answer
    raise Refused("invalid", f"{_brief(given)} is not an answer (expected {', '.join(ANSWERS)})")


def keep_marks(connection: Any, one: Asked, marks: Sequence[Any], who: str) -> None:
    """Keep what `who` has said of a set so far.

    Raises:
        Refused: they are not marks of this set.
    """
    if not _are_marks(one, marks):
        raise Refused("invalid", f"{_brief(marks)} are not marks (expected {_wanted_marks(one)})")
    insert(
        connection,
        "INSERT INTO sayings (key, value, who, at) VALUES (?, ?, ?, ?)",
        (_key(one), json.dumps(list(marks)), who, now()),
    )


def _kept_marks(connection: Any, one: Asked, who: str) -> Marks:
    if one.kind == "compare":
        return ()
    row = connection.execute(
        "SELECT value FROM sayings WHERE key = ? AND who = ? ORDER BY id DESC LIMIT 1",
        (_key(one), who),
    ).fetchone()
    with suppress(ValueError, RecursionError):  # a received run may have anything here
        marks = json.loads(row[0]) if row else []
        if isinstance(marks, list) and _are_marks(one, marks):
            return marks
    return ()


def _key(one: Asked) -> str:
    return f"marks {one.query}"


def _are_marks(one: Asked, marks: Sequence[Any]) -> bool:
    """Return whether marks say something of some clips of a set, but not of all."""
    clips = len(one.clips)
    if one.kind == "compare" or len(marks) >= clips:
        return False
    if one.kind == "rate":
        return scores_of_ratings(marks, len(marks)) is not None
    rest = [place for place in range(clips) if place not in marks]
    flat = not any(isinstance(place, list) for place in marks)
    return flat and scores_of_ranking([*marks, rest], clips) is not None


def _wanted(one: Asked) -> str:
    clips = len(one.clips)
    if one.kind == "rank":
        return f"the places 0 to {clips - 1} of the clips, best first, each once; or skip"
    return f"{clips} whole numbers from 1 to {BEST_RATING}, null for a clip that cannot be told"


def _wanted_marks(one: Asked) -> str:
    if one.kind == "compare":
        return "none: two clips are compared with one key"
    some = f"fewer than {len(one.clips)}"
    if one.kind == "rank":
        return f"{some} places from 0 to {len(one.clips) - 1}, each once"
    return f"{some} whole numbers from 1 to {BEST_RATING}, or null"


def _brief(given: object) -> str:
    return f"`{given[:60]}`" if isinstance(given, str) else f"`{shown(given)}`"


def _films(connection: Any, clip: int) -> dict[Which, Film]:
    rows = connection.execute("SELECT view, about FROM films WHERE clip = ? ORDER BY id", (clip,))
    films: dict[Which, Film] = {}
    for view, about in rows:
        with suppress(ValueError):  # a damaged film of a received run
            films[view] = film_of_json(about)
    return films


def newest_kind(store: LabelStore) -> Ask:
    """Return how the newest query is answered: what a page shows that has no query yet."""
    found = store.file.rows("SELECT ask FROM clip_sets ORDER BY id DESC LIMIT 1")
    return found[0][0] if found else "compare"
