"""Checks of action values against the returns of episodes: two routes to one number.

A state is followed by half of an episode on average, so that with returns R, lengths L and a
discount γ, values are about

    V = R / L · min(L / 2, 1 / (1 - γ))

Only scalars that every library logs are needed.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool

from backflip.doctor.check import Check, Running
from backflip.doctor.log import OFF_POLICY, Log, Signal, Values
from backflip.doctor.measures import (
    VANISHED,
    after,
    at_the_end,
    largest,
    least_size,
    or_none,
    ratio,
    smallest,
    smoothed,
    together,
)

EARLY_SHARE = 0.2  # values are not called too large before this share of the budget
LATE_SHARE = 0.6  # all other checks of values begin at this share of the budget
MEDIAN_SHARE = 0.1  # a median of signs covers at least this share of the budget
# Values above this many times the returns are a finding. Healthy runs on 19 tasks have up to 12,
# where rewards of both signs nearly cancel.
FAR_ABOVE = 30.0
# Values below this share of the rewards that they must add up are a finding. Without bootstrapping,
# values are one reward.
FAR_BELOW = 0.2
LONG_HORIZON = 10.0  # values are not called too small for shorter horizons, in env steps
FEW_STEPS = 20.0  # values must add up the rewards of no more env steps than these
RANDOM_SHARE = 0.2  # above this ε, returns are not those of the policy whose values are learned
NORMALISED_VALUES = 50.0  # values are below this if rewards are divided by the std of returns
FALLEN_SHARE = 0.5  # the temperature has fallen if it is below this share of its first value
ASSUMED_ENTROPY = 10.0  # nats that the policy is taken to have where no entropy is logged
TURNING_BONUS = 0.8  # below this share of a reward, entropy does not turn the sign of a value
FORESIGHTED = 0.9  # from this discount on, values are those of several rewards
SMALL_BONUS = 0.2  # entropy counts for little if its bonus is below this share of a reward
_SOURCE = "two routes to one number; van Hasselt et al. 2016, arXiv:1509.06461, figure 3"
_NEEDS = ("q_mean", "episode_return_mean", "episode_length_mean")


def _reward(log: Log) -> Running:
    """Return the mean reward of an env step, R / L."""
    returns, lengths = log.signals["episode_return_mean"], log.signals["episode_length_mean"]
    return smoothed(log, together(returns, lengths, ratio), 0.05)


def _horizon(log: Log) -> Signal:
    """Return min(L / 2, 1 / (1 - γ)); with an unknown discount, the one of γ = 1."""
    discount = log.setting("discount")
    furthest = 1.0 / (1.0 - discount) if discount is not None and 0 <= discount < 1 else np.inf
    lengths = log.signals["episode_length_mean"]
    return lengths._replace(y=np.minimum(lengths.y / 2.0, furthest))


def _values(log: Log, most: float = np.inf) -> Running:
    """Return V, with a horizon of at most `most` env steps."""
    return smoothed(log, _each_value(log, most), 0.05)


def _each_value(log: Log, most: float = np.inf) -> Signal:
    """Return V at each point of the log."""
    returns, lengths = log.signals["episode_return_mean"], log.signals["episode_length_mean"]
    horizon = _horizon(log)
    horizon = horizon._replace(y=np.minimum(horizon.y, most))
    return together(together(returns, lengths, ratio), horizon, np.multiply)


def _over_returns(log: Log) -> Running | None:
    """Return mean Q divided by the largest |V| of the newer half of the log so far, with V's sign.

    The newer half is used because a replay holds rows of older policies. NaN where V changes its
    sign in it, and where ε is above `RANDOM_SHARE`. What entropy may be worth, α H · min(L / 2, 1 /
    (1 - γ)), is added to |V|.
    """
    if log.algorithm == "sac" and not log.has("temperature"):
        return None
    return _relative(log, _with_entropy(log, _values(log)), np.max)


def _with_entropy(log: Log, values: Running) -> Running:
    """Return V, larger by what entropy may add to its size; V itself of all algorithms but SAC."""
    if log.algorithm != "sac" or not len(values.x):
        return values
    temperature, horizon = log.signals["temperature"], _horizon(log)
    bonus = np.interp(values.x, temperature.x, temperature.y) * _nats(log, values.x)
    more = bonus * np.interp(values.x, horizon.x, horizon.y)
    return values._replace(value=values.value + np.sign(values.value) * more)


def _without_entropy(log: Log, found: Running | None, most: float = SMALL_BONUS) -> Running | None:
    """Return what was measured, but NaN where entropy counts for more than the share `most`.

    That is asked both of an env step and of the half of it: action values still contain the entropy
    of older policies for a while.
    """
    if found is None:
        return None
    counts = _entropy_counts(log, found.x, most) | _entropy_counts(log, found.x / 2.0, most)
    return or_none(found._replace(value=np.where(counts, np.nan, found.value)))


def _relative(
    log: Log, to: Running, of_recent: Callable[[Values], float], least: float = VANISHED
) -> Running | None:
    """Return mean Q divided by a statistic of |V| in the newer half of the log so far.

    The divisor is at least the share `least` of the largest |V| so far. NaN where V has both signs
    in the newer half. None where the algorithm learns from another reward than returns count.
    """
    if log.teaches:
        return None
    values = smoothed(log, log.signals["q_mean"])
    each = _each_value(log)
    floor = least_size(each.y, least)
    found = np.full(len(values.x), np.nan)
    for n, x in enumerate(values.x):
        recent = to.value[(to.x <= x) & (to.x >= x / 2.0)]
        if len(recent) and (np.all(recent > 0) or np.all(recent < 0)):
            known = floor[max(0, np.searchsorted(each.x, x, side="right") - 1)]
            size = np.fmax(of_recent(np.abs(recent)), known)
            found[n] = values.value[n] * np.sign(recent[0]) / size
    found[_acts_at_random(log, values.x)] = np.nan
    return or_none(Running(values.x, found))


def _acts_at_random(log: Log, x: Values) -> Bool[np.ndarray, " n"]:
    if log.algorithm != "dqn":
        return np.zeros(len(x), bool)
    if not log.has("epsilon"):
        return np.ones(len(x), bool)
    epsilon = log.signals["epsilon"]
    return np.interp(x, epsilon.x, epsilon.y) > RANDOM_SHARE


def _entropy_counts(log: Log, x: Values, most: float = SMALL_BONUS) -> Bool[np.ndarray, " n"]:
    """Return where α H may be more than the share `most` of the reward of an env step."""
    if log.algorithm != "sac":
        return np.zeros(len(x), bool)
    if not log.has("temperature"):
        return np.ones(len(x), bool)
    temperature, reward = log.signals["temperature"], _reward(log)
    if not len(reward.x):
        return np.ones(len(x), bool)
    bonus = np.interp(x, temperature.x, temperature.y) * _nats(log, x)
    return bonus > most * np.abs(np.interp(x, reward.x, reward.value))


def _nats(log: Log, x: Values) -> Values:
    if not log.has("entropy"):
        return np.full(len(x), ASSUMED_ENTROPY)
    entropy = log.signals["entropy"]
    return np.abs(np.interp(x, entropy.x, entropy.y))


def _far_above(log: Log) -> Running | None:
    """Return the largest |Q| / |V| so far; None if normalised rewards could explain the values."""
    found, size = _over_returns(log), np.abs(log.signals["q_mean"].y)
    if found is None or (_may_scale_rewards(log) and np.nanmax(size) < NORMALISED_VALUES):
        return None
    return or_none(largest(after(log, EARLY_SHARE, Running(found.x, np.abs(found.value)))))


def _far_below(log: Log) -> Running | None:
    """Return the largest |Q| / |V|, V of at most `FEW_STEPS` env steps; None for scaled rewards."""
    found = _without_entropy(log, _relative(log, _values(log, FEW_STEPS), np.min, least=0.0))
    horizon = _horizon(log)
    late = horizon.y[(horizon.x >= LATE_SHARE * log.budget) & np.isfinite(horizon.y)]
    if found is None or _may_scale_rewards(log) or not len(late) or np.median(late) < LONG_HORIZON:
        return None
    size = Running(found.x, np.abs(found.value))
    return or_none(at_the_end(largest(after(log, LATE_SHARE, size))))


def _from_one_reward(log: Log) -> Running | None:
    """Return the largest |Q / (R / L) - 1| after `LATE_SHARE`; 0 if values are those of one reward.

    Normalised rewards are not excluded: that they give just this ratio would be chance.
    """
    discount, lengths = log.setting("discount"), log.signals["episode_length_mean"].y
    if log.teaches or (discount is not None and discount < FORESIGHTED):
        return None
    reward, values = _reward(log), after(log, LATE_SHARE, smoothed(log, log.signals["q_mean"]))
    if not len(reward.x) or not len(values.x) or np.nanmedian(lengths) < 2 * LONG_HORIZON:
        return None
    share = ratio(values.value, np.interp(values.x, reward.x, reward.value))
    return or_none(at_the_end(largest(values._replace(value=np.abs(share - 1.0)))))


def _entropy_above(log: Log) -> Running | None:
    """Return the smallest |Q| / |V| after `LATE_SHARE`; 0 where entropy counts for little.

    Also 0 where the temperature has fallen, since it then adapts to the rewards.
    """
    found, temperature = _relative(log, _values(log), np.max), log.signals["temperature"]
    if found is None or _may_scale_rewards(log):
        return None
    late = after(log, LATE_SHARE, found)
    stays = np.interp(late.x, temperature.x, temperature.y) > FALLEN_SHARE * temperature.y[0]
    value = np.where(stays & _entropy_counts(log, late.x), np.abs(late.value), 0.0)
    return or_none(at_the_end(smallest(late._replace(value=value))))


def _may_scale_rewards(log: Log) -> bool:
    """Return whether rewards are normalised or clipped, or could be.

    CleanRL's files for action values clip rewards in Atari's games only.
    """
    if any(log.settings.get(name) for name in ("normalize_rewards", "clip_rewards")):
        return True
    if log.library == "cleanrl":
        return log.env is None or "NoFrameskip" in log.env or log.env.startswith("ALE/")
    return log.library != "backflip"


def _other_sign(log: Log) -> Running | None:
    """Return the median of Q / V so far, after `LATE_SHARE`; None where returns rise.

    V is that of at most `FEW_STEPS` env steps: values that have only begun to grow already have a
    sign. Where returns rise, values may be right about the new policy before its first episode
    ends. Each median covers at least `MEDIAN_SHARE` of the budget.
    """
    found = _without_entropy(log, _relative(log, _values(log, FEW_STEPS), np.max), TURNING_BONUS)
    reward = _reward(log)
    if found is None or reward.value[-1] > reward.value[0]:
        return None
    late = after(log, LATE_SHARE, found)
    known = np.isfinite(late.value)
    x, value = late.x[known], late.value[known]
    median = np.asarray([np.median(value[: n + 1]) for n in range(len(x))])
    return or_none(Running(x, np.where(x >= x[:1] + MEDIAN_SHARE * log.budget, median, np.nan)))


CHECKS = (
    Check(
        id="Q-ABOVE",
        title="action values are far above returns",
        quantity="|mean Q| divided by the discounted rewards that returns and lengths of episodes "
        "imply, with the entropy that the temperature pays for, after 20 % of the budget",
        measure=_far_above,
        needs=_NEEDS,
        bad_side="above",
        limit_from="convention",
        explanation="The algorithm learns from other rewards than returns count, its values "
        "diverge, or its policy does not act as they expect.",
        causes={
            "reward-scale": 0.7,
            "reward-sign": 0.4,
            "value-targets": 0.4,
            "temperature": 0.5,
            "actions": 0.3,
            "acting-and-learning-disagree": 0.3,
            "steps-too-large": 0.3,
            "target-network": 0.2,
            "discount": 0.2,
        },
        source=_SOURCE,
        limit=FAR_ABOVE,
        algorithms=OFF_POLICY,
    ),
    Check(
        id="Q-BELOW",
        title="action values are those of a few rewards",
        quantity="largest |mean Q| after 60 % of the budget, divided by the rewards of up to 20 "
        "env steps that returns and lengths of episodes imply, for horizons of 10 env steps or "
        "more",
        measure=_far_below,
        needs=_NEEDS,
        bad_side="below",
        limit_from="convention",
        explanation="Values do not add up the rewards of an episode: nothing is bootstrapped, or "
        "rewards are smaller than returns count.",
        causes={
            "value-targets": 0.7,
            "discount": 0.4,
            "reward-scale": 0.6,
            "target-network": 0.5,
            "values-do-not-learn": 0.5,
            "steps-too-small": 0.4,
        },
        source=_SOURCE,
        limit=FAR_BELOW,
        superseded_by=("Q-ONE-REWARD",),
        algorithms=OFF_POLICY,
    ),
    Check(
        id="Q-ONE-REWARD",
        title="action values are those of one reward",
        quantity="largest distance from 1 of mean Q divided by the mean reward of an env step, "
        "after 60 % of the budget, for episodes of 20 env steps or more and discounts of at least "
        "0.9, or unknown ones",
        measure=_from_one_reward,
        needs=_NEEDS,
        bad_side="below",
        limit_from="convention",
        explanation="Values do not add up rewards: the next state's value does not reach the "
        "target, or comes from a network that never changes.",
        causes={
            "value-targets": 0.7,
            "discount": 0.6,
            "target-network": 0.6,
            "values-do-not-learn": 0.1,
        },
        source="two routes to one number: with γ = 0, Q(s, a) is the mean of r",
        limit=0.3,
        algorithms=OFF_POLICY,
    ),
    Check(
        id="Q-ENTROPY",
        title="entropy is worth more than reward",
        quantity="smallest |mean Q| divided by the discounted rewards that returns and lengths of "
        "episodes imply, after 60 % of the budget, where the temperature has not halved, and times "
        "the entropy is more than a fifth of a reward",
        measure=_entropy_above,
        needs=(*_NEEDS, "temperature"),
        bad_side="above",
        limit_from="convention",
        explanation="Values add up entropy, and the policy learns to act at random: the "
        "temperature is too large for the rewards.",
        causes={"temperature": 0.5, "reward-scale": 0.4, "steps-too-large": 0.1},
        source="two routes to one number; Haarnoja et al. 2018, arXiv:1812.05905, section 5",
        limit=FAR_ABOVE,
        algorithms=("sac",),
    ),
    Check(
        id="Q-SIGN",
        title="action values have another sign than returns",
        quantity="median of mean Q divided by the rewards of up to 20 env steps that returns and "
        "lengths of episodes imply, after 60 % of the budget, where returns do not rise",
        measure=_other_sign,
        needs=_NEEDS,
        bad_side="below",
        limit_from="convention",
        explanation="The algorithm learns from rewards of another sign than returns count, or "
        "entropy counts for more than reward.",
        causes={"reward-sign": 0.9, "temperature": 0.5, "value-targets": 0.2, "reward-scale": 0.1},
        source=_SOURCE,
        limit=-0.2,
        algorithms=OFF_POLICY,
    ),
)
