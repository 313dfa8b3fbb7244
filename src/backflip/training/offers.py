"""The algorithms there are, by the names a person types."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from backflip.algorithms.a2c import A2CConfig, a2c
from backflip.algorithms.cem import CEMConfig, cem
from backflip.algorithms.ddpg import DDPGConfig, ddpg
from backflip.algorithms.dqn import dqn
from backflip.algorithms.interface import Algorithm
from backflip.algorithms.parts.dqn_config import DQNConfig
from backflip.algorithms.ppo import PPOConfig, ppo
from backflip.algorithms.sac import SACConfig, sac
from backflip.algorithms.td3 import TD3Config, td3
from backflip.algorithms.vpg import VPGConfig, vpg
from backflip.core.errors import UsageError, did_you_mean
from backflip.core.spec import Discrete, EnvSpec


@dataclass(frozen=True)
class Offer:
    """One algorithm by name.

    Attributes:
        name: what a person types.
        config: the frozen dataclass of its settings.
        build: (config, spec) -> the algorithm.
        discrete: it can choose among discrete actions.
        continuous: it can choose actions of a `Box`.
        of_images: among those, where observations are images.
    """

    name: str
    config: type[Any]
    build: Callable[[Any, EnvSpec], Algorithm]
    discrete: bool = True
    continuous: bool = True
    of_images: Literal["both", "discrete", "neither"] = "both"

    def can(self, spec: EnvSpec) -> bool:
        """Return whether it can choose the actions of an environment by its observations."""
        return self._chooses(spec) and (not spec.is_pixels or self._sees(spec))

    def _chooses(self, spec: EnvSpec) -> bool:
        return self.discrete if isinstance(spec.action, Discrete) else self.continuous

    def _sees(self, spec: EnvSpec) -> bool:
        discrete = isinstance(spec.action, Discrete)
        return self.of_images == "both" or (discrete and self.of_images == "discrete")

    def check_spaces(self, spec: EnvSpec) -> None:
        """Refuse an environment that it cannot act in, naming the algorithms that can."""
        if self.can(spec):
            return
        able = ", ".join(name for name, offer in ALGORITHMS.items() if offer.can(spec))
        if self._chooses(spec):
            shape = "x".join(map(str, spec.observation.shape))
            raise UsageError(
                f"`{self.name}` does not learn such actions from images, and observations of "
                f"`{spec.id}` are images of {shape}; for these there are: {able}"
            )
        kind, wanted = ("discrete", "continuous")
        if not isinstance(spec.action, Discrete):
            kind, wanted = wanted, kind
        raise UsageError(
            f"`{self.name}` chooses {wanted} actions, and those of `{spec.id}` are {kind}; "
            f"for these there are: {able}"
        )


ALGORITHMS = {
    offer.name: offer
    for offer in (
        Offer("ppo", PPOConfig, ppo),
        Offer("a2c", A2CConfig, a2c),
        Offer("vpg", VPGConfig, vpg),
        Offer("dqn", DQNConfig, dqn, continuous=False),
        Offer("ddpg", DDPGConfig, ddpg, discrete=False, of_images="neither"),
        Offer("td3", TD3Config, td3, discrete=False, of_images="neither"),
        Offer("sac", SACConfig, sac, of_images="discrete"),
        Offer("cem", CEMConfig, cem, of_images="neither"),
    )
}


def offer_of(algorithm: str) -> Offer:
    """Return what an algorithm's name stands for."""
    if algorithm not in ALGORITHMS:
        raise UsageError(
            f"unknown algorithm `{algorithm}`{did_you_mean(algorithm, ALGORITHMS)} "
            f"(there are: {', '.join(ALGORITHMS)})"
        )
    return ALGORITHMS[algorithm]
