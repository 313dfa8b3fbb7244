"""Teachers: people, and who answers queries when no person does. Needs no JAX.

A simulated teacher sees the true rewards of two clips; steps not lived earn nothing (see
`backflip.preferences.clips`), so between a clip that ends early and one that does not, the oracle
prefers survival where living earns reward, as in CartPole, and the end where living costs.
"""

import dataclasses
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from backflip.core.errors import UsageError, did_you_mean
from backflip.preferences.labels import Answer

KINDS = ("human", "terminal", "oracle", "noisy")
SAME = 1e-6  # true returns closer than this are equal: float32 sums of equal rewards differ so


@runtime_checkable
class Teacher(Protocol):
    """Whoever prefers one of two clips."""

    @property
    def name(self) -> str:
        """Who answered, as the label store keeps it."""
        ...

    def answer(
        self,
        left: Float[np.ndarray, " L"],
        right: Float[np.ndarray, " L"],
        rng: np.random.Generator,
    ) -> Answer:
        """Return the answer for two clips with these true rewards."""
        ...


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

    def answer(
        self,
        left: Float[np.ndarray, " L"],
        right: Float[np.ndarray, " L"],
        rng: np.random.Generator,
    ) -> Answer:
        """Return the answer for two clips with these true rewards."""
        returns = self._seen_return(left), self._seen_return(right)
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


@dataclass(frozen=True)
class People:
    """People who answer at a page (`human`) or in the terminal (`terminal`)."""

    name: Literal["human", "terminal"]


def parse_teacher(text: str) -> SimulatedTeacher | People:
    """Return the teacher a person named.

    They are `human`, `terminal`, `oracle`, `noisy`, and the likes of `noisy:mistake=0.1,tie=2`.

    Raises:
        UsageError: no such teacher or property; the message lists them.
    """
    kind, _, properties = text.partition(":")
    known = [field.name for field in dataclasses.fields(SimulatedTeacher)]
    if text == "human" or text == "terminal":
        return People(text)
    if kind not in ("oracle", "noisy") or (kind == "oracle" and properties):
        raise UsageError(
            f"unknown teacher `{text}`{did_you_mean(kind, KINDS)} "
            f"(there are: {', '.join(KINDS)}, noisy:mistake=0.1,temperature=1)"
        )
    if kind == "noisy" and not properties:
        return SimulatedTeacher(mistake=0.1)
    return SimulatedTeacher(
        **dict(_property(part, known) for part in properties.split(",") if part)
    )


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
