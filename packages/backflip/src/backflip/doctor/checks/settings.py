"""Checks of what the program was told to do: settings beyond all that are known to learn.

They see a cause itself, not its effects, so that they count in full for it.
"""

from collections.abc import Callable

import numpy as np

from backflip.doctor.check import Check, Running
from backflip.doctor.log import OFF_POLICY, ON_POLICY, Log

NEVER = 1e9  # in place of infinity
SHORT = 2.0  # env steps of an episode, as of a bandit
_ZOO = "rl-zoo's search spaces"


def _told(name: str) -> Callable[[Log], Running | None]:
    """Return a measure of a setting."""

    def measure(log: Log) -> Running | None:
        value = log.setting(name)
        return None if value is None else _from_start(value)

    return measure


def _from_start(value: float) -> Running:
    return Running(np.zeros(1), np.asarray([value]))


def _target_never(log: Log) -> Running | None:
    """Return the interval of updates of the target network over the planned steps."""
    if log.setting("tau") == 0:
        return _from_start(NEVER)
    return _interval(log, "target_update_interval")


def _policy_never(log: Log) -> Running | None:
    """Return the gradient steps between two of the policy over those planned."""
    return _interval(log, "policy_delay")


def _interval(log: Log, name: str) -> Running | None:
    """Return a setting, in env steps or gradient steps, over the planned number of either."""
    every, steps = log.setting(name), log.setting("gradient_steps") or 1.0
    if every is None or not log.planned > 0:
        return None
    return _from_start(every / (log.planned * max(steps, 1.0)))


def _horizon(log: Log) -> Running | None:
    """Return 1 / (1 - γ) in env steps, unless episodes are so short that γ hardly matters."""
    discount, length = log.setting("discount"), log.signals.get("episode_length_mean")
    if discount is None or not 0 <= discount < 1:
        return None
    if length is not None and not np.nanmax(length.y, initial=0.0) > SHORT:
        return None
    return _from_start(1.0 / (1.0 - discount))


def _replay_small(log: Log) -> Running | None:
    """Return the rows of the replay, if the run makes ten times as many env steps."""
    rows = log.setting("buffer_size")
    return None if rows is None or not log.planned > 10 * rows else _from_start(rows)


def _never_learns(log: Log) -> Running | None:
    """Return 1 if the run ends before it starts to learn, else 0."""
    starts = log.setting("learning_starts")
    if starts is None or not log.planned > 0:
        return None
    return _from_start(float(starts >= log.planned))


CHECKS = (
    Check(
        "Q-TARGET-NEVER",
        "the target network is never updated",
        "`target_update_interval` over the planned env steps (times `gradient_steps`), or 1e9 if "
        "`tau` is 0",
        _target_never,
        (),
        "above",
        "setting",
        "Targets are those of the initial network until the end of the run.",
        {"target-network": 0.9},
        "the settings of the run",
        limit=1.0,
        algorithms=OFF_POLICY,
    ),
    Check(
        "Q-POLICY-NEVER",
        "the policy is never updated",
        "`policy_delay` over the planned env steps (times `gradient_steps`)",
        _policy_never,
        (),
        "above",
        "setting",
        "Only the critics learn: the policy stays as it was initialised.",
        {"policy-loss": 0.9},
        "the settings of the run",
        limit=1.0,
        algorithms=("ddpg", "td3", "sac"),
    ),
    Check(
        "Q-NOSTART",
        "the run ends before it learns",
        "1 if `learning_starts` is not below the planned env steps",
        _never_learns,
        (),
        "above",
        "setting",
        "No gradient step is taken before `learning_starts` env steps.",
        {"replay": 0.9},
        "Stable-Baselines3 issue 526: its own example did this",
        limit=0.5,
        algorithms=OFF_POLICY,
    ),
    Check(
        "PI-ENT-COEF",
        "the entropy bonus is large",
        "weight of the entropy in the loss",
        _told("entropy_coef"),
        (),
        "above",
        "setting",
        "Advantages are normalised to a deviation of 1: a bonus of this size outweighs them.",
        {"entropy-bonus": 0.9},
        "rl-zoo searches up to 0.1; Andrychowicz et al. 2020, arXiv:2006.05990, up to 0.01",
        limit=0.5,
        algorithms=("ppo",),
    ),
    Check(
        "PI-ENT-SIGN",
        "the entropy bonus is negative",
        "weight of the entropy in the loss",
        _told("entropy_coef"),
        (),
        "below",
        "setting",
        "The loss rewards a policy that is sure of its actions: it stops exploring.",
        {"too-little-exploration": 0.9, "entropy-bonus": 0.5},
        "Mnih et al. 2016, arXiv:1602.01783: the bonus is positive",
        limit=-1e-9,
        algorithms=ON_POLICY,
    ),
    Check(
        "PV-COEF",
        "the value loss has no weight",
        "weight of the value loss",
        _told("value_coef"),
        (),
        "below",
        "setting",
        "The value function does not learn, so that advantages are returns with noise.",
        {"values-do-not-learn": 0.9},
        f"{_ZOO}: 0 to 1, and every tuned configuration above 0.1",
        limit=1e-6,
        algorithms=ON_POLICY,
    ),
    Check(
        "GAMMA-H",
        "the discount looks no step ahead",
        "horizon 1 / (1 - γ) in env steps, if episodes are longer than two",
        _horizon,
        (),
        "below",
        "setting",
        "Rewards after the next env step hardly count: what an action does later is not learned.",
        {"discount": 0.95},
        "J. Schulman: γ = 0.99 ignores rewards after 100 env steps",
        limit=2.5,
    ),
    Check(
        "NN-LR-LOW",
        "the learning rate is tiny",
        "learning rate, as set",
        _told("learning_rate"),
        (),
        "below",
        "setting",
        "Adam moves each parameter by about the learning rate, at every step: almost nothing.",
        {"steps-too-small": 0.95},
        f"{_ZOO}: at least 1e-5",
        limit=1e-6,
    ),
    Check(
        "PI-CLIP-OFF",
        "the clip range clips nothing",
        "clip range of the probability ratio",
        _told("clip_range"),
        (),
        "above",
        "setting",
        "An update may move the policy as far as it likes.",
        {"steps-too-large": 0.7},
        f"{_ZOO}: 0.1 to 0.4",
        limit=1.0,
        algorithms=("ppo",),
    ),
    Check(
        "Q-REPLAY-SMALL",
        "the replay is small",
        "rows of the replay, if the run makes more than ten times as many env steps",
        _replay_small,
        (),
        "below",
        "setting",
        "Minibatches hold the newest env steps only: they are alike, and the rest is forgotten.",
        {"replay": 0.9},
        f"{_ZOO}: at least 10,000",
        limit=1_000.0,
        algorithms=OFF_POLICY,
    ),
)
