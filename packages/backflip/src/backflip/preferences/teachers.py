"""Teachers that are programs: the oracle, the noisy oracle, a function of the user. Needs no JAX.

A simulated teacher compares the true rewards of two clips. Env steps after the episode's end earn
nothing (see `backflip.preferences.clips`): the oracle prefers the clip that survives where each
env step earns reward, as in CartPole, and the clip that ends where each env step costs.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from jaxtyping import Float

from backflip.core.user_code import find_object
from backflip.preferences.labels import ANSWERS, Answer
from backflip.preferences.teacher_query import ShownClip, TeacherQuery
from runshelf.errors import UsageError, UserFacingError, did_you_mean, one_line

KINDS = ("human", "terminal", "oracle", "noisy")
Prefer = Callable[[ShownClip, ShownClip], Any]  # what a user writes; must return an `Answer`
THERE_ARE = f"there are: {', '.join(KINDS)}, noisy:mistake=0.1,temperature=1, module:function"
SAME = 1e-6  # true returns closer than this are equal: float32 sums of equal rewards differ so


@runtime_checkable
class Teacher(Protocol):
    """A program that prefers one of two clips."""

    @property
    def name(self) -> str:
        """The teacher's name beside its labels; `parse_teacher` finds the same teacher by it."""
        ...

    def answer(self, query: TeacherQuery, rng: np.random.Generator) -> Answer:
        """Return the answer to a query.

        Args:
            query: two clips.
            rng: the only source of chance; the same numbers give the same answer.

        Raises:
            UserFacingError: the teacher cannot answer.
        """
        ...


@final
class TeacherFailed(UserFacingError):
    """A function of the user raised an exception, or returned something that is no answer."""


@dataclass(frozen=True)
class SimulatedTeacher:
    """A teacher who compares true returns, with the faults of real ones; the defaults have none.

        R = Σ_t γ^(L-1-t) r_t          d = R_left - R_right
        skip      if both R < `skip`
        tie       if |d| <= `tie`
        left      with probability σ(d / temperature), or if d > 0 at temperature 0
        and then the other side with probability `mistake`.

    Source: Lee et al. 2021, arXiv:2111.03026, section 3 (the stochastic, skipping, equal,
    mistaken and myopic teachers).

    Attributes:
        mistake: probability of naming the other side, in [0, 1].
        temperature: of the Boltzmann choice, in units of return, at least 0.
        tie: largest difference of return that looks equal, at least 0.
        skip: a pair of clips that both return less than this is not answered.
        myopia: 1 - γ, in [0, 1): how much less each earlier step counts.
    """

    mistake: float = 0.0
    temperature: float = 0.0
    tie: float = SAME
    skip: float = -np.inf
    myopia: float = 0.0

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing."""
        limits = {"mistake": (0.0, 1.0), "temperature": (0.0, np.inf), "tie": (0.0, np.inf)}
        for name, (low, high) in {
            **limits,
            "myopia": (0.0, 1.0),
            "skip": (-np.inf, np.inf),
        }.items():
            value = getattr(self, name)
            if not low <= value <= high or (name == "myopia" and value == 1.0):
                raise UsageError(
                    f"`{name}` of the teacher must lie in [{low}, {high}], got {value}"
                )

    @property
    def name(self) -> str:
        """`oracle`, or `noisy` with what differs from it."""
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"  # exactly: a resumed run reads it back
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != field.default
        ]
        return "noisy:" + ",".join(changed) if changed else "oracle"

    def answer(self, query: TeacherQuery, rng: np.random.Generator) -> Answer:
        """Return the answer to a query; looks at the true rewards only."""
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

    def _seen_return(self, rewards: Float[np.ndarray, " L"]) -> float:
        weights = (1.0 - self.myopia) ** np.arange(len(rewards) - 1, -1, -1)
        return float(weights @ rewards.astype(np.float64))


@final
@dataclass(frozen=True)
class FunctionTeacher:
    """A function of the user: (left, right) -> "left", "right", "tie" or "skip".

    Attributes:
        name: `module:function`.
        prefer: the function.
    """

    name: str
    prefer: Prefer

    def answer(self, query: TeacherQuery, rng: np.random.Generator) -> Answer:
        """Return what the function returns.

        Raises:
            TeacherFailed: it raised an exception, or returned something else.
        """
        try:
            answer = self.prefer(query.left, query.right)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a function that calls `sys.exit`, too
            raise TeacherFailed(
                f"teacher `{self.name}` raised {one_line(error)}; all labels so far are saved"
            ) from error
        for word in ANSWERS:
            if isinstance(answer, str) and answer == word:
                return word
        wanted = ", ".join(f'"{word}"' for word in ANSWERS)
        raise TeacherFailed(
            f"teacher `{self.name}` returned {_brief(answer)}, expected one of {wanted}; "
            "all labels so far are saved"
        )


def parse_teacher(text: str) -> SimulatedTeacher | FunctionTeacher:
    """Return a teacher by name: `oracle`, `noisy`, `noisy:mistake=0.1,...` or `module:function`.

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
    return SimulatedTeacher(
        **dict(_property(part, known) for part in properties.split(",") if part)
    )


def _function(text: str) -> Prefer:
    """Return the function that `module:function` names."""
    try:
        function = find_object(text)
    except UsageError as error:
        hint = did_you_mean(text.partition(":")[0], KINDS)
        raise UsageError(f"unknown teacher `{text}`{hint}: {error} ({THERE_ARE})") from error
    if isinstance(function, type) or not callable(function):
        what = "a class" if isinstance(function, type) else f"of type {type(function).__name__}"
        raise UsageError(f"teacher `{text}` is {what}, expected a function of two clips")
    return function


def _brief(answer: Any) -> str:
    """Return a wrong answer and its type as one short line."""
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
