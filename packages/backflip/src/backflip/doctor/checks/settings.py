"""Checks of what the program was told to do: settings beyond all that are known to learn.

They measure a cause itself and not its effects, so their findings count in full for it.
"""

from collections.abc import Callable

import numpy as np

from backflip.doctor.check import Check, Running
from backflip.doctor.log import OFF_POLICY, ON_POLICY, Log

INFINITE = 1e9  # an interval that never ends is reported as this number
SHORT_EPISODE = 2.0  # γ hardly matters if no episode has more env steps than this
_ZOO = "rl-zoo's search spaces"


def told(name: str) -> Callable[[Log], Running | None]:
    """Return a measure of a setting."""

    def measure(log: Log) -> Running | None:
        value = log.setting(name)
        return None if value is None else _from_start(value)

    return measure


def _from_start(value: float) -> Running:
    return Running(np.zeros(1), np.asarray([value]))


def _target_never(log: Log) -> Running | None:
    """Return the interval of updates of the target network divided by the planned steps."""
    if log.setting("tau") == 0:
        return _from_start(INFINITE)
    return _interval(log, "target_update_interval")


def _policy_never(log: Log) -> Running | None:
    """Return the gradient steps between two of the policy divided by those planned."""
    return _interval(log, "policy_delay")


def _interval(log: Log, name: str) -> Running | None:
    """Return a setting, in env steps or gradient steps, divided by the planned number of either."""
    every, steps = log.setting(name), log.setting("gradient_steps") or 1.0
    if every is None or not log.planned > 0:
        return None
    return _from_start(every / (log.planned * max(steps, 1.0)))


def _horizon(log: Log) -> Running | None:
    """Return 1 / (1 - γ) in env steps, unless episodes are so short that γ hardly matters."""
    discount, length = log.setting("discount"), log.signals.get("episode_length_mean")
    if discount is None or not 0 <= discount < 1:
        return None
    if length is not None and not np.nanmax(length.y, initial=0.0) > SHORT_EPISODE:
        return None
    return _from_start(1.0 / (1.0 - discount))


def _replay_small(log: Log) -> Running | None:
    """Return the rows of the replay, if the run makes more than ten times as many env steps."""
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
        id="Q-TARGET-NEVER",
        title="the target network is never updated",
        quantity="`target_update_interval` divided by the planned env steps (times "
        "`gradient_steps`), or 1e9 if `tau` is 0",
        measure=_target_never,
        needs=(),
        bad_side="above",
        limit_from="setting",
        explanation="Targets are those of the initial network until the end of the run.",
        causes={"target-network": 0.9},
        source="the settings of the run",
        limit=1.0,
        algorithms=OFF_POLICY,
    ),
    Check(
        id="Q-POLICY-NEVER",
        title="the policy is never updated",
        quantity="`policy_delay` divided by the planned env steps (times `gradient_steps`)",
        measure=_policy_never,
        needs=(),
        bad_side="above",
        limit_from="setting",
        explanation="Only the critics learn: the policy stays as it was initialised.",
        causes={"policy-loss": 0.9},
        source="the settings of the run",
        limit=1.0,
        algorithms=("ddpg", "td3", "sac"),
    ),
    Check(
        id="Q-NOSTART",
        title="the run ends before it learns",
        quantity="1 if `learning_starts` is not below the planned env steps",
        measure=_never_learns,
        needs=(),
        bad_side="above",
        limit_from="setting",
        explanation="No gradient step is taken before `learning_starts` env steps.",
        causes={"replay": 0.9},
        source="Stable-Baselines3 issue 526: its own example did this",
        limit=0.5,
        algorithms=OFF_POLICY,
    ),
    Check(
        id="PI-ENT-COEF",
        title="the entropy bonus is large",
        quantity="weight of the entropy in the loss",
        measure=told("entropy_coef"),
        needs=(),
        bad_side="above",
        limit_from="setting",
        explanation="Advantages are normalised to mean 0 and standard deviation 1: a bonus of this "
        "size outweighs them.",
        causes={"entropy-bonus": 0.9},
        source="rl-zoo searches up to 0.1; Andrychowicz et al. 2020, arXiv:2006.05990, up to 0.01",
        limit=0.5,
        algorithms=("ppo",),
    ),
    Check(
        id="PI-ENT-SIGN",
        title="the entropy bonus is negative",
        quantity="weight of the entropy in the loss",
        measure=told("entropy_coef"),
        needs=(),
        bad_side="below",
        limit_from="setting",
        explanation="The loss rewards a policy that is sure of its actions: it stops exploring.",
        causes={"too-little-exploration": 0.9, "entropy-bonus": 0.5},
        source="Mnih et al. 2016, arXiv:1602.01783: the bonus is positive",
        limit=-1e-9,
        algorithms=ON_POLICY,
    ),
    Check(
        id="PV-COEF",
        title="the value loss has no weight",
        quantity="weight of the value loss",
        measure=told("value_coef"),
        needs=(),
        bad_side="below",
        limit_from="setting",
        explanation="The value function does not learn, so that advantages are returns with noise.",
        causes={"values-do-not-learn": 0.9},
        source=f"{_ZOO}: 0 to 1, and every tuned configuration above 0.1",
        limit=1e-6,
        algorithms=ON_POLICY,
    ),
    Check(
        id="GAMMA-H",
        title="the discount looks no step ahead",
        quantity="horizon 1 / (1 - γ) in env steps, if episodes are longer than two",
        measure=_horizon,
        needs=(),
        bad_side="below",
        limit_from="setting",
        explanation="Rewards after the next env step hardly count: what an action does later is "
        "not learned.",
        causes={"discount": 0.95},
        source="J. Schulman: γ = 0.99 ignores rewards after 100 env steps",
        limit=2.5,
    ),
    Check(
        id="NN-LR-LOW",
        title="the learning rate is tiny",
        quantity="learning rate, as set",
        measure=told("learning_rate"),
        needs=(),
        bad_side="below",
        limit_from="setting",
        explanation="Adam moves each parameter by about the learning rate, at every step: almost "
        "nothing.",
        causes={"steps-too-small": 0.95},
        source=f"{_ZOO}: at least 1e-5",
        limit=2e-6,
    ),
    Check(
        id="PI-CLIP-OFF",
        title="the clip range clips nothing",
        quantity="clip range of the probability ratio",
        measure=told("clip_range"),
        needs=(),
        bad_side="above",
        limit_from="setting",
        explanation="An update may move the policy as far as it likes.",
        causes={"steps-too-large": 0.7},
        source=f"{_ZOO}: 0.1 to 0.4",
        limit=1.0,
        algorithms=("ppo",),
    ),
    Check(
        id="Q-REPLAY-SMALL",
        title="the replay is small",
        quantity="rows of the replay, if the run makes more than ten times as many env steps",
        measure=_replay_small,
        needs=(),
        bad_side="below",
        limit_from="setting",
        explanation="Minibatches hold the newest env steps only: they are alike, and the rest is "
        "forgotten.",
        causes={"replay": 0.9},
        source=f"{_ZOO}: at least 10,000",
        limit=1_000.0,
        algorithms=OFF_POLICY,
    ),
)
