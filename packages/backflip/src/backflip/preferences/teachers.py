"""Teachers that are programs: the oracle, the noisy oracle, a user's function. Needs no JAX.

A simulated teacher compares the true returns of two clips. Env steps after the episode's end have
a reward of zero (see `backflip.preferences.clips`): the oracle prefers the clip that survives where
each env step earns reward, as in CartPole, and the clip that ends where each env step costs.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from jaxtyping import Float

from backflip.core.user_code import find_object
from backflip.preferences.label_records import ANSWERS, Answer
from backflip.preferences.rankings import scores_of_ranking
from backflip.preferences.teacher_query import ShownClip, TeacherQuery
from runshelf.errors import UsageError, UserFacingError, did_you_mean, one_line

KINDS = ("human", "terminal", "oracle", "noisy")
# A user's function. Of two clips it returns an `Answer`; asked to rank, of a list of clips, their
# places from best to worst; asked to rate, of one clip, a number.
Prefer = Callable[..., Any]
THERE_ARE = f"there are: {', '.join(KINDS)}, noisy:mistake=0.1,temperature=1, module:function"
SAME = 1e-6  # returns closer than this are a tie: float32 sums of equal rewards differ slightly


@runtime_checkable
class Teacher(Protocol):
    """A program that answers queries."""

    @property
    def name(self) -> str:
        """The name saved with each label; `parse_teacher` returns the same teacher for it."""
        ...

    def answer(self, query: TeacherQuery, rng: np.random.Generator) -> Answer:
        """Return the answer to a query.

        Args:
            query: two clips.
            rng: the only source of randomness; the same state gives the same answer.

        Raises:
            UserFacingError: the teacher cannot answer.
        """
        ...


@runtime_checkable
class SetTeacher(Teacher, Protocol):
    """A program that also ranks several clips and rates one.

    Both return scores, of which only the order counts: a higher score is better, equal scores tie,
    and None is a clip that cannot be told.
    """

    def rank(self, clips: Sequence[ShownClip], rng: np.random.Generator) -> Sequence[float | None]:
        """Return a score for each clip of a set.

        Raises:
            UserFacingError: the teacher cannot answer.
        """
        ...

    def rate(self, clip: ShownClip, rng: np.random.Generator) -> float | None:
        """Return the score of one clip.

        Raises:
            UserFacingError: the teacher cannot answer.
        """
        ...


@final
class TeacherFailed(UserFacingError):
    """A user's function raised an exception or returned an invalid answer."""


HOTTEST = 1e30  # largest temperature: answers are random long before, and sums stay finite


@dataclass(frozen=True)
class SimulatedTeacher:
    """A teacher that compares true returns, with typical human errors; the defaults have none.

        R = Σ_t γ^(L-1-t) r_t          d = R_left - R_right
        skip      if both R < `skip`
        tie       if |d| <= `tie`
        left      with probability σ(d / temperature), or if d > 0 at temperature 0
        then the other side with probability `mistake`

    Several clips are ranked by R + temperature · g, with g from the Gumbel distribution: the order
    of two clips is then that of a comparison. Neighbours with |d| <= `tie` tie. Others change
    places with probability `mistake`, and a clip moves by one place at most. The set is skipped if
    all R < `skip`. A clip is rated
    by the same number, rounded to a multiple of `tie`; with probability `mistake` by its negative;
    not at all if R < `skip`.

    Source: Lee et al. 2021, arXiv:2111.03026, section 3 (the stochastic, skipping, equal,
    mistaken and myopic teachers).

    Attributes:
        mistake: probability of answering with the other side, in [0, 1].
        temperature: temperature of the Boltzmann choice, in units of return, at least 0.
        tie: largest difference of returns that is answered as a tie, at least 0.
        skip: the query is skipped if both returns are below this.
        myopia: 1 - γ, in [0, 1): earlier steps are discounted.
    """

    mistake: float = 0.0
    temperature: float = 0.0
    tie: float = SAME
    skip: float = -np.inf
    myopia: float = 0.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        limits = {"mistake": (0.0, 1.0), "temperature": (0.0, HOTTEST), "tie": (0.0, np.inf)}
        limits |= {"myopia": (0.0, 1.0), "skip": (-np.inf, np.inf)}
        for name, (low, high) in limits.items():
            value = getattr(self, name)
            is_open = name == "myopia"
            if not low <= value <= high or (is_open and value == high):
                interval = f"[{low:g}, {high:g}{')' if is_open else ']'}"
                raise UsageError(f"`{name}` of the teacher must lie in {interval}, got {value:g}")

    @property
    def name(self) -> str:
        """`oracle`, or `noisy:` with the properties that differ from it."""
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"  # exact: a resumed run parses it
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != field.default
        ]
        return "noisy:" + ",".join(changed) if changed else "oracle"

    def answer(self, query: TeacherQuery, rng: np.random.Generator) -> Answer:
        """Return the answer to a query; only the true rewards are used."""
        returns = self._seen_return(query.left.rewards), self._seen_return(query.right.rewards)
        chance, slip = rng.random(2)
        difference = returns[0] - returns[1]
        if max(returns) < self.skip:
            return "skip"
        if abs(difference) <= self.tie:
            return "tie"
        prefers_left = difference > 0
        if self.temperature > 0:
            odds = np.exp(-np.clip(difference / self.temperature, -500, 500))
            prefers_left = chance < 1.0 / (1.0 + odds)
        return "left" if prefers_left != (slip < self.mistake) else "right"

    def rank(self, clips: Sequence[ShownClip], rng: np.random.Generator) -> Sequence[float | None]:
        """Return a score for each clip of a set; only the true rewards are used."""
        returns = np.array([self._seen_return(clip.rewards) for clip in clips])
        seen = returns + self.temperature * rng.gumbel(size=len(clips))
        slips = rng.random(len(clips)) < self.mistake
        if (returns < self.skip).all():
            return [None] * len(clips)
        order = np.argsort(-seen, kind="stable")
        alike = np.abs(np.diff(returns[order])) <= self.tie
        places = np.concatenate([[0], np.cumsum(~alike)])
        moved = -1
        for i in np.flatnonzero(slips[1:] & ~alike):
            if i != moved:
                order[[i, i + 1]], moved = order[[i + 1, i]], i + 1
        scores = np.empty(len(clips))
        scores[order] = -places.astype(float)
        return scores.tolist()

    def rate(self, clip: ShownClip, rng: np.random.Generator) -> float | None:
        """Return the score of one clip; only the true rewards are used."""
        found = self._seen_return(clip.rewards)
        noise, slip = float(rng.gumbel()), rng.random()
        if found < self.skip:
            return None
        step = max(self.tie, SAME)
        rated = round((found + self.temperature * noise) / step) * step
        return -rated if slip < self.mistake else rated

    def _seen_return(self, rewards: Float[np.ndarray, " L"]) -> float:
        weights = (1.0 - self.myopia) ** np.arange(len(rewards) - 1, -1, -1)
        return float(weights @ rewards.astype(np.float64))


@final
@dataclass(frozen=True)
class FunctionTeacher:
    """A user's function: (left, right) -> "left", "right", "tie" or "skip"; or see `Prefer`.

    Attributes:
        name: `module:function`.
        prefer: the function.
    """

    name: str
    prefer: Prefer

    def answer(self, query: TeacherQuery, rng: np.random.Generator) -> Answer:
        """Return the function's answer.

        Raises:
            TeacherFailed: the function raised an exception or returned an invalid answer.
        """
        answer = self._said(query.left, query.right)
        for word in ANSWERS:
            if isinstance(answer, str) and answer == word:
                return word
        raise self._refused(answer, "one of " + ", ".join(f'"{word}"' for word in ANSWERS))

    def rank(self, clips: Sequence[ShownClip], rng: np.random.Generator) -> Sequence[float | None]:
        """Return a score for each clip, from the function's ranking.

        Raises:
            TeacherFailed: the function raised an exception or returned no ranking of all clips.
        """
        ranking = self._said(list(clips))
        if isinstance(ranking, str) and ranking == "skip":
            return [None] * len(clips)
        scores = scores_of_ranking(ranking, len(clips))
        if scores is None:
            order = ", ".join(map(str, range(len(clips))))
            wanted = f'the places {order} of the clips from best to worst, as a list, or "skip"'
            raise self._refused(ranking, wanted)
        return scores

    def rate(self, clip: ShownClip, rng: np.random.Generator) -> float | None:
        """Return the function's number.

        Raises:
            TeacherFailed: the function raised an exception or returned no finite number.
        """
        rating = self._said(clip)
        if isinstance(rating, str) and rating == "skip":
            return None
        number = _finite(rating)
        if number is None:
            raise self._refused(rating, 'a finite number, or "skip"')
        return number

    def _said(self, *shown: Any) -> Any:
        """Return what the function returns.

        Raises:
            TeacherFailed: it raised an exception.
        """
        try:
            return self.prefer(*shown)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # `sys.exit` in a user's function is an error, too
            raise TeacherFailed(
                f"teacher `{self.name}` raised {one_line(error)}; all labels so far are saved"
            ) from error

    def _refused(self, answer: Any, wanted: str) -> TeacherFailed:
        return TeacherFailed(
            f"teacher `{self.name}` returned {_brief(answer)}, expected {wanted}; "
            "all labels so far are saved"
        )


def parse_teacher(text: str) -> SimulatedTeacher | FunctionTeacher:
    """Return the teacher for `oracle`, `noisy`, `noisy:mistake=0.1,...` or `module:function`.

    Raises:
        UsageError: there is no such teacher, property or function.
    """
    kind, colon, properties = text.partition(":")
    known = [field.name for field in dataclasses.fields(SimulatedTeacher)]
    if colon and kind not in KINDS:
        return FunctionTeacher(text, _function(text))
    if kind not in ("oracle", "noisy") or (kind == "oracle" and properties):
        raise UsageError(f"unknown teacher `{text}`{did_you_mean(kind, KINDS)} ({THERE_ARE})")
    if kind == "noisy" and not properties:
        return SimulatedTeacher(mistake=0.1)
    pairs = [_property(part, known) for part in properties.split(",") if part]
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"teacher `{text}` has `{name}` {names.count(name)} times; give it once"
            )
    return SimulatedTeacher(**dict(pairs))


def _function(text: str) -> Prefer:
    """Return the function that `module:function` names."""
    try:
        function = find_object(text)
    except UsageError as error:
        hint = did_you_mean(text.partition(":")[0], KINDS) if "=" in text else ""
        raise UsageError(f"unknown teacher `{text}`{hint}: {error} ({THERE_ARE})") from error
    if isinstance(function, type) or not callable(function):
        what = "a class" if isinstance(function, type) else f"of type {type(function).__name__}"
        raise UsageError(f"teacher `{text}` is {what}, expected a function of two clips")
    return function


def _brief(answer: Any) -> str:
    """Return an invalid answer and its type as one short line."""
    try:
        text = " ".join(repr(answer).split())
    except Exception:  # noqa: BLE001  (the user's own `__repr__`)
        text = "something"
    return f"{text if len(text) <= 60 else f'{text[:59]}…'} ({type(answer).__name__})"


def _property(part: str, known: list[str]) -> tuple[str, float]:
    name, _, value = part.partition("=")
    if name not in known:
        raise UsageError(
            f"a teacher has no `{name}`{did_you_mean(name, known)} (there are: {', '.join(known)})"
        )
    try:
        return name, float(value)
    except ValueError:
        raise UsageError(f"`{name}` of the teacher must be a number, got `{value}`") from None


def _finite(rating: object) -> float | None:
    """Return a finite number as a float; None for anything else."""
    if isinstance(rating, bool) or not isinstance(rating, int | float | np.integer | np.floating):
        return None
    try:
        number = float(rating)
    except OverflowError:  # an integer of Python may be larger than any float
        return None
    return number if math.isfinite(number) else None
