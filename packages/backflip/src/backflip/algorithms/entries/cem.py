"""The entry of CEM."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from backflip.algorithms.entry import AlgorithmEntry
from backflip.algorithms.rollouts import rollouts_of
from backflip.core.settings import (
    Bounds,
    Count,
    Fraction,
    NonNegative,
    Positive,
    PositiveFraction,
    Widths,
)

if TYPE_CHECKING:
    from backflip.core.spec import EnvSpec


@dataclass(frozen=True)
class CEMConfig:
    """Settings of CEM.

    Attributes:
        env_steps: env steps of one seed in total, including those after the counted episodes.
        num_envs: N, members of a generation.
        rollout_length: T, env steps of a member: the time limit times `episodes`.
        episodes: episodes of each member that count; use more where returns depend on the start.
        elite_fraction: ρ, share of the members that form the elite.
        initial_std: σ of every parameter at the start.
        noise: Z_0 / σ_0², variance added to that of the elite at the start.
        noise_fraction: share of the updates over which the added variance falls to 0.
        hidden: widths of the policy's hidden layers; none gives a linear policy.
    """

    env_steps: Count = 500_000
    num_envs: Count = 50
    rollout_length: Count = 500
    episodes: Annotated[int, Bounds(1, 10_000)] = 1  # a rollout holds that many whole episodes
    elite_fraction: PositiveFraction = 0.2
    initial_std: Positive = 1.0
    noise: NonNegative = 0.25
    noise_fraction: Fraction = 0.5
    hidden: Widths = ()

    @property
    def updates(self) -> int:
        """Generations in total; the last may go a little beyond `env_steps`."""
        return rollouts_of(self.env_steps, self.num_envs, self.rollout_length)

    @property
    def elite(self) -> int:
        """Members of the elite: ρ N rounded, at least 1."""
        return max(1, round(self.elite_fraction * self.num_envs))


def derive(spec: "EnvSpec", settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rollout length that holds the counted episodes, and a reset row between them."""
    from backflip.core.spec import UNLIMITED  # noqa: PLC0415  (imports NumPy)

    episodes = settings.get("episodes", CEMConfig.episodes)
    if ENTRY.settings["episodes"].problem(episodes) is not None:
        return {}  # `resolve` refuses it
    return {"rollout_length": (spec.max_episode_steps or UNLIMITED) * episodes + episodes - 1}


ENTRY = AlgorithmEntry(
    "cem",
    CEMConfig,
    "backflip.algorithms.cem:cem",
    images="neither",
    defaults={
        "discrete": {"env_steps": 500_000},
        "continuous": {
            "env_steps": 5_000_000,
            "num_envs": 100,
            "episodes": 5,
            "hidden": (16,),
            "initial_std": 2.0,
        },
    },
    derive=derive,
)
