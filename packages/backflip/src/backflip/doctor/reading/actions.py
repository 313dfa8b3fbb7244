"""Whether a training run has continuous actions, or how many discrete ones."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from backflip.doctor.log import OFF_POLICY, Log, Signal, Values

MOST_ACTIONS = 20
NEAR = 0.005  # of log n: a policy whose last layer is small starts that close to it
# The first update may lower the entropy more; the logarithms of few actions are further apart.
FEW_ACTIONS, FEW_NEAR = 10, 0.03
ROUNDING = 1e-4
# Of continuous actions; Stable-Baselines3, skrl and Sample Factory log it of these only.
DEVIATIONS = (
    "train/std",
    "Policy / Standard deviation",
    "train/action_stddev_mean",
    "Policy/mean_std",
    "Policy/mean_noise_std",
)
# Numbers of actions of Gymnasium's environments, in all versions.
OF_ENVIRONMENTS = {
    "CartPole": 2,
    "Acrobot": 3,
    "MountainCar": 3,
    "LunarLander": 4,
    "FrozenLake": 4,
    "FrozenLake8x8": 4,
    "CliffWalking": 4,
    "Taxi": 6,
    "Blackjack": 2,
}


def with_actions(log: Log) -> Log:
    """Return a log with the setting `actions`, as far as its environment and entropy tell.

    What the log or a user says is kept. A guess is made again, with what is known now.

    Args:
        log: of another library.
    """
    settings = {name: one for name, one in log.settings.items() if name not in log.guessed}
    entropy = log.signals.get("entropy")
    if "actions" in settings or entropy is None:
        return replace(log, settings=settings, guessed=())
    known = entropy.y[np.isfinite(entropy.y)]
    name = (log.env or "").rpartition("-v")[0].removeprefix("gymnasium:")
    of_env = OF_ENVIRONMENTS.get(name)
    if of_env is not None and _can_be_of(known, of_env):
        return replace(log, settings={**settings, "actions": of_env}, guessed=())
    guess = None if log.algorithm in OFF_POLICY else number_of_actions(log.signals)
    if guess is None:
        return replace(log, settings=settings, guessed=())
    return replace(log, settings={**settings, "actions": guess}, guessed=("actions",))


def number_of_actions(signals: Mapping[str, Signal]) -> int | None:
    """Return n if the first entropy is nearly log n of n discrete actions; else None.

    No entropy of n actions is below 0 or above log n, as those of continuous actions may be. At a
    standard deviation of 1, a normal distribution of one dimension has 1.42 and of two 2.84:
    neither is nearly log n of few actions. A new policy of SAC is nearly uniform in (-1, 1)^d, and
    has d log 2 = log 2^d: a temperature tells that actions are continuous.
    """
    entropy = signals.get("entropy")
    if entropy is None or "entropy_max" in signals or "temperature" in signals:
        return None
    known = entropy.y[np.isfinite(entropy.y)]
    first = float(known[0]) if len(known) else 0.0
    if first <= 0:
        return None
    actions = max(2, math.ceil(math.exp(min(first, 10.0)) * (1.0 - ROUNDING)))
    near = FEW_NEAR if actions <= FEW_ACTIONS else NEAR
    is_near = actions <= MOST_ACTIONS and first > (1.0 - near) * math.log(actions)
    return actions if is_near and _can_be_of(known, actions) else None


def _can_be_of(entropies: Values, actions: int) -> bool:
    """Return whether all entropies are possible for a number of discrete actions."""
    most = (1.0 + ROUNDING) * math.log(actions)
    return len(entropies) > 0 and entropies.min() >= -ROUNDING and entropies.max() <= most
