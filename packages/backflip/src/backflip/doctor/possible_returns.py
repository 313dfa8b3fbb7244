"""Which returns environments can give, from the definitions of their rewards.

The numbers are those of the sources of Gymnasium 1.0, MinAtar, dm_control and the Arcade Learning
Environment. An environment without a known bound is not here.
"""

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple, final

from backflip.doctor.log import Log

_INF = math.inf
_DM_CONTROL = ("dm_control:", "dm_control/")
_PENDULUM = -(math.pi**2 + 0.1 * 8**2 + 0.001 * 2**2)  # upside down, fastest, with all torque


@final
class PossibleReturns(NamedTuple):
    """The rewards of an environment.

    Attributes:
        low: the smallest reward of an env step.
        high: the largest one.
        steps: the env steps after which its own time limit ends an episode.
        total_low: the smallest return, if it is known otherwise than by steps · low.
        total_high: the largest return, if it is known otherwise than by steps · high.
        each: the reward of nearly all env steps, where there is such a one.
    """

    low: float
    high: float
    steps: float
    total_low: float | None = None
    total_high: float | None = None
    each: float | None = None

    def range(self, longest: float) -> tuple[float, float]:
        """Return the smallest and the largest possible return of episodes up to a length."""
        steps = max(self.steps, longest)
        low = self.total_low if self.total_low is not None else _times(steps, min(self.low, 0.0))
        high = (
            self.total_high if self.total_high is not None else _times(steps, max(self.high, 0.0))
        )
        return low, high


def possible_returns(log: Log) -> PossibleReturns | None:
    """Return which returns the environment of a log can give; None if that is not known.

    The arguments of an environment may change its rewards, so with them nothing is known.
    """
    if log.env is None or log.env_args:
        return None
    name = log.env.removeprefix("gymnasium:")
    if name.startswith(_DM_CONTROL) and "lqr" not in name:  # its rewards are costs without a bound
        return PossibleReturns(0.0, 1.0, 1000)
    return KNOWN.get(name)


def _times(steps: float, reward: float) -> float:
    return 0.0 if reward == 0 else steps * reward


def _never_negative(names: str, ids: str) -> Iterator[tuple[str, PossibleReturns]]:
    for name in names.split():
        yield ids.format(name), PossibleReturns(0.0, _INF, _INF)


def _atari(game: str, low: float, high: float) -> Iterator[tuple[str, PossibleReturns]]:
    bounds = PossibleReturns(low, high, _INF, low, high)
    for name in (f"ALE/{game}-v5", f"{game}NoFrameskip-v4", f"{game}-v4", f"{game}-v5"):
        yield name, bounds


def _all_versions(
    name: str, versions: str, bounds: PossibleReturns
) -> Iterator[tuple[str, PossibleReturns]]:
    yield from ((f"{name}-v{version}", bounds) for version in versions)


_ATARI_NEVER_NEGATIVE = "Alien Asterix Asteroids BeamRider Breakout Freeway MsPacman Qbert"

KNOWN: Mapping[str, PossibleReturns] = {
    "CartPole-v0": PossibleReturns(1.0, 1.0, 200, each=1.0),
    "CartPole-v1": PossibleReturns(1.0, 1.0, 500, each=1.0),
    "Acrobot-v1": PossibleReturns(-1.0, 0.0, 500, each=-1.0),
    "MountainCar-v0": PossibleReturns(-1.0, -1.0, 200, each=-1.0),
    "MountainCarContinuous-v0": PossibleReturns(-0.1, 100.0, 999, total_high=100.0),
    "Pendulum-v1": PossibleReturns(_PENDULUM, 0.0, 200),
    "FrozenLake-v1": PossibleReturns(0.0, 1.0, 100, total_high=1.0),
    "FrozenLake8x8-v1": PossibleReturns(0.0, 1.0, 200, total_high=1.0),
    **dict(_all_versions("Taxi", "34", PossibleReturns(-10.0, 20.0, 200, total_high=20.0))),
    "Blackjack-v1": PossibleReturns(-1.0, 1.5, 1, -1.0, 1.5),
    **dict(_all_versions("InvertedPendulum", "245", PossibleReturns(0.0, 1.0, 1000))),
    **dict(_all_versions("Reacher", "245", PossibleReturns(-_INF, 0.0, 50))),
    **dict(_all_versions("Pusher", "245", PossibleReturns(-_INF, 0.0, 100))),
    **dict(_never_negative("Asterix Breakout Freeway Seaquest SpaceInvaders", "MinAtar/{}-v1")),
    **dict(_never_negative("Asterix Breakout Freeway Seaquest SpaceInvaders", "MinAtar/{}-v0")),
    **dict(_atari("Pong", -21.0, 21.0)),
    **dict(_atari("Boxing", -100.0, 100.0)),
    **{
        name: bounds
        for game in _ATARI_NEVER_NEGATIVE.split()
        for name, bounds in _atari(game, 0.0, _INF)
    },
}
