"""Checks of the way of actions to the environment, and of observations to the learner."""

import numpy as np

from backflip.doctor.check import Check, Running
from backflip.doctor.checks.returns import rises_clearly
from backflip.doctor.log import OFF_POLICY, Log
from backflip.doctor.measures import WRONG, largest_of, or_none, smallest

CONTINUOUS_REPLAY = ("ddpg", "td3", "sac")  # DQN's random choices are not its policy's
FEWEST_ESTIMATES = 5  # fewer estimates of the effect of actions are not judged
FEWEST_ROLLOUTS = 30  # fewer records of rollouts are not judged
# A mean match this many standard errors below 0 is a finding. By chance, one of 80,000 runs of 30
# records has one.
OTHER_ACTIONS = -5.0
SMALLEST_VARIANCE = 1e-12  # a smaller variance counts as this one
NO_EFFECT = 1e-3  # actions have no visible effect if the p-value of a whole run is above this


def _no_effect(log: Log) -> Running | None:
    """Return the smallest p-value so far times the number of different ones (Bonferroni).

    An effect that is found later, when the agent knows more, counts for the env steps before, too.
    None if the return rises far above its noise: then actions have an effect, if only a later one,
    or one that depends on the state.
    """
    if rises_clearly(log):
        return None
    found = log.signals["action_effect_p"]
    known = np.isfinite(found.y)
    x, y = found.x[known], found.y[known]
    count = np.arange(1, len(y) + 1)
    estimates = np.cumsum(np.diff(y, prepend=np.nan) != 0)  # the same again is no new one
    least = smallest(Running(x, y)).value
    found_later = np.minimum.accumulate(np.minimum(1.0, estimates * least)[::-1])[::-1]
    return or_none(Running(x, np.where(count >= FEWEST_ESTIMATES, found_later, np.nan)))


def _other_actions(log: Log) -> Running | None:
    """Return the smallest mean match so far, in units of its standard error."""
    found = log.signals["action_match"]
    known = np.isfinite(found.y)
    x, y = found.x[known], found.y[known]
    count = np.arange(1, len(y) + 1)
    mean = np.cumsum(y) / count
    variance = np.maximum(np.cumsum(y**2) / count - mean**2, SMALLEST_VARIANCE)
    errors = np.where(count >= FEWEST_ROLLOUTS, mean * np.sqrt(count / variance), np.nan)
    return or_none(smallest(Running(x, errors)))


def _other_observations(log: Log) -> Running | None:
    return largest_of(log, "replay_obs_error")


CHECKS = (
    Check(
        id="ENV-ACTIONS",
        title="actions have no visible effect",
        quantity="p-value of the hypothesis that actions have no effect on the next observation "
        "and the reward, corrected for the number of different estimates so far, from "
        f"{FEWEST_ESTIMATES} on",
        measure=_no_effect,
        needs=("action_effect_p",),
        bad_side="above",
        limit_from="convention",
        explanation="Neither the next observation nor the reward depends on the action, beyond "
        "what the observation says. An effect that comes more than one env step later is not seen; "
        "pictures are left out for this, and runs whose return rises far above its noise.",
        causes={"actions": 0.9, "observations": 0.1},
        source="score test of two linear models; White 1980; "
        "`backflip.doctor.action_effect.action_effect`",
        limit=NO_EFFECT,
        is_direct=True,
    ),
    Check(
        id="Q-ACTIONS",
        title="other actions are taken than the policy's",
        quantity="mean of `action_match` so far in standard errors, the least of all times, from "
        f"{FEWEST_ROLLOUTS} records on",
        measure=_other_actions,
        needs=("action_match",),
        bad_side="below",
        limit_from="identity",
        explanation="The actions of the rollouts do not depend on the observation as those of the "
        "policy do.",
        causes={"actions": 0.9, "acting-and-learning-disagree": 0.5},
        source="`backflip.drivers.action_match`: covariances of actions taken and of two samples",
        limit=OTHER_ACTIONS,
        algorithms=CONTINUOUS_REPLAY,
    ),
    Check(
        id="Q-REPLAY-OBS",
        title="minibatches have other observations than were stored",
        quantity="largest difference so far of the newest rows, drawn and stored, as a share of "
        "their size",
        measure=_other_observations,
        needs=("replay_obs_error",),
        bad_side="above",
        limit_from="identity",
        explanation="The policy acts on one kind of observations, and learns from another.",
        causes={"acting-and-learning-disagree": 0.95, "observations": 0.4, "replay": 0.3},
        source="Stable-Baselines3's `ReplayBuffer`, without normalisation",
        limit=WRONG,
        algorithms=OFF_POLICY,
    ),
)
