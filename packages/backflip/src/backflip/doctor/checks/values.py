"""Checks of state values and advantages."""

import numpy as np
from jaxtyping import Bool

from backflip.doctor.check import Check, Running
from backflip.doctor.log import ON_POLICY, Log, Signal, Values
from backflip.doctor.measures import (
    WRONG,
    after,
    largest,
    largest_of,
    largest_return,
    largest_reward,
    least_size,
    log10_of,
    or_none,
    over_largest_return,
    ratio,
    reward_size,
    smallest,
    smoothed,
    together,
)

SIZE_FROM = 0.2  # sign and size of values are judged from this share of the budget on
LEAST_VALUE = 0.5  # smaller values, relative to the largest reward, are not called too large
LOW_FROM = 0.5  # values are called too low from this share of the budget on
SPREAD_FROM = 0.1  # advantages and the weight of the loss are judged from this share of it on
# The weight of the value loss is measured where it is above this many times the other terms.
DOMINANT = 20.0
ORDINARY_LOSS = 1.0  # losses that nothing is said about are replaced by this one
_JONES = "A. Jones, Debugging RL, Without the Agonizing Pain"


def _advantages_shifted(log: Log) -> Running | None:
    mean, deviation = log.signals["advantage_mean"], log.signals["advantage_std"]
    found = smoothed(log, together(mean, deviation, ratio))
    return or_none(largest(Running(found.x, np.abs(found.value))))


def _advantages_zero(log: Log) -> Running | None:
    size = reward_size(log)
    share = together(log.signals["advantage_std"], size, ratio)
    return or_none(after(log, SPREAD_FROM, log10_of(largest(smoothed(log, share)))))


def _wrong_sign(log: Log) -> Running | None:
    """Return how far values lie on the side that rewards exclude, as a share of the largest.

    The largest is that of |value| so far. With rewards that are never negative, negative values are
    wrong, and the other way round.
    """
    least = np.fmin.accumulate(log.signals["reward_min"].y)
    most = np.fmax.accumulate(log.signals["reward_max"].y)
    values = log.signals["value_mean"]
    if len(values.y) != len(least) or len(most) != len(least):
        return None
    side = np.where(least >= 0, -values.y, np.where(most <= 0, values.y, np.nan))
    size = np.fmax.accumulate(np.abs(values.y))
    found = smoothed(log, Signal(values.x, ratio(side, size), "value_mean"))
    return or_none(after(log, SIZE_FROM, smallest(found)))


def _beyond_bound(log: Log) -> Running | None:
    """Return |mean value| divided by the largest possible one, max |r| / (1 - γ)."""
    return over_largest_return(log, "value_mean")


def level(log: Log) -> Signal | None:
    """Return log10 of the mean value divided by the level that mean reward and discount imply.

    With a constant reward r, the mean value over an episode of L env steps that ends is r / (1 - γ)
    (1 - γ (1 - γ^L) / (L (1 - γ))); in an episode that does not end, it is r / (1 - γ). Values
    between these two levels give 0. In the upper level, |r| is at least its `least_size`.

    NaN where rewards had both signs, since their mean then says nothing. None for a learned reward:
    it changes with each fit, and values follow it later.
    """
    discount = log.setting("discount")
    if log.teaches or discount is None or not 0 <= discount < 1:
        return None
    horizon = 1.0 / (1.0 - discount)
    lengths = log.signals["episode_length_mean"]
    reward, value = log.signals["reward_mean"], log.signals["value_mean"]
    known = np.isfinite(lengths.y) & (lengths.y > 0)
    if not known.any():
        return None
    length = np.interp(reward.x, lengths.x[known], lengths.y[known])
    within = mean_value(discount, np.maximum(length, 1.0))
    of_value = together(reward._replace(y=reward.y * within), value, lambda low, v: v / low)
    least = least_size(reward.y)
    kept = np.where(np.abs(reward.y) < least, np.copysign(least, reward.y), reward.y)
    of_whole = together(reward._replace(y=kept * horizon), value, lambda high, v: v / high)
    with np.errstate(all="ignore"):
        above, below = np.log10(of_whole.y), np.log10(of_value.y)
    outside = np.where(above > 0, above, np.where(below < 0, below, 0.0))
    outside = np.where(np.isfinite(above) & _one_sign(log, of_value.x), outside, np.nan)
    return Signal(of_value.x, outside, "value_mean")


def mean_value(discount: float, length: Values) -> Values:
    """Return the mean value of a state, for rewards of 1 and episodes of L env steps that end.

    1/L Σ_{k=1..L} (1 - γ^k) / (1 - γ) = (1 - γ (1 - γ^L) / (L (1 - γ))) / (1 - γ)
    """
    horizon = 1.0 / (1.0 - discount)
    return horizon * (1.0 - discount * horizon * (1.0 - discount**length) / length)


def _one_sign(log: Log, x: Values) -> Bool[np.ndarray, " n"]:
    """Return whether rewards so far had one sign, up to rounding, at each env step."""
    least, most = log.signals["reward_min"], log.signals["reward_max"]
    low, high = np.fmin.accumulate(least.y), np.fmax.accumulate(most.y)
    slack = 1e-3 * np.maximum(np.abs(low), np.abs(high))
    one_sign = ((low >= -slack) | (high <= slack)).astype(float)
    return np.interp(x, least.x, one_sign) == 1.0 if len(low) == len(high) else np.isnan(x)


def _level_high(log: Log) -> Running | None:
    """Return the largest level so far of values that are at least half of the largest reward.

    Where rewards are rare, the small values that a network begins with are above what they imply.
    """
    found = level(log)
    if found is None:
        return None
    share = together(log.signals["value_mean"], largest_reward(log), ratio)
    kept = together(found, share, lambda y, of: np.where(np.abs(of) >= LEAST_VALUE, y, np.nan))
    return or_none(after(log, SIZE_FROM, largest(smoothed(log, kept))))


def _level_low(log: Log) -> Running | None:
    """Return the best level of the whole log for each env step.

    Values start near 0 and must rise, but to learn them slowly is not a mistake: nothing is said
    before half of the budget.
    """
    found = level(log)
    best = found and or_none(after(log, LOW_FROM, largest(smoothed(log, found))))
    return best and best._replace(value=np.full_like(best.value, best.value[-1]))


def _advantages_wrong(log: Log) -> Running | None:
    return largest_of(log, "advantage_error_max")


def _targets_wrong(log: Log) -> Running | None:
    return largest_of(log, "target_error_max")


def _value_loss(log: Log) -> Running | None:
    """Return log₁₀ of the largest loss.

    Rewards that are not normalised may have any scale. Losses whose root is no larger than a
    return are left out there: values that begin at 0 have such errors.
    """
    found = largest(smoothed(log, log.signals["value_loss"]))
    returns = largest_return(log)
    normalised = log.teaches or log.settings.get("normalize_rewards", False)
    if returns is not None and not (log.library == "backflip" and normalised):
        found = found._replace(
            value=np.where(np.sqrt(found.value) > returns, found.value, ORDINARY_LOSS)
        )
    return or_none(log10_of(found))


def _weight(log: Log) -> Running | None:
    """Return the largest median so far of |L - L_policy| / (V - G)², the weight of the value loss.

    L are all terms of the loss. Updates count where the value loss is `DOMINANT` times the rest.
    """
    policy, halved = log.signals["policy_loss"], log.signals["value_loss"]
    squared = halved._replace(y=2.0 * halved.y)
    others = together(policy, log.signals["entropy"], lambda one, h: np.abs(one) + np.abs(h))
    clear = together(squared, others, lambda v, rest: np.where(v > DOMINANT * rest, v, np.nan))
    without_policy = together(log.signals["total_loss"], policy, np.subtract)
    share = together(without_policy, clear, lambda rest, v: np.abs(rest) / v)
    return or_none(after(log, SPREAD_FROM, largest(smoothed(log, share))))


CHECKS = (
    Check(
        id="PV-WEIGHT",
        title="the value loss has no weight",
        quantity="largest median so far of |loss - loss of the policy| divided by (V - G)², where "
        "that is 20 times the other terms, after 10 % of the budget",
        measure=_weight,
        needs=("total_loss", "policy_loss", "value_loss", "entropy"),
        bad_side="below",
        limit_from="convention",
        explanation="The loss that is minimised does not contain the error of the values: they "
        "stay as they were initialised.",
        causes={"values-do-not-learn": 0.9},
        source="two routes to one number; the weight is 0.5 in Schulman et al. 2017, "
        "arXiv:1707.06347",
        limit=0.005,
        algorithms=("ppo",),
    ),
    Check(
        id="PV-ADV-MEAN",
        title="advantages are not centred",
        quantity="|mean| of the advantages divided by their standard deviation, before "
        "normalisation, median of updates",
        measure=_advantages_shifted,
        needs=("advantage_mean", "advantage_std"),
        bad_side="above",
        limit_from="calibrated",
        explanation="Advantages should be around 0: values are far from the returns that they "
        "predict.",
        causes={
            "advantages": 0.6,
            "value-targets": 0.5,
            "values-do-not-learn": 0.7,
            "steps-too-small": 0.3,
            "reward-scale": 0.4,
        },
        source=_JONES,
        algorithms=ON_POLICY,
        least_margin=1.0,
        is_pooled=True,
    ),
    Check(
        id="PV-ADV-ZERO",
        title="advantages vanish",
        quantity="decimal logarithm of the largest standard deviation of the advantages divided by "
        "the largest |r|, after 10 % of the budget",
        measure=_advantages_zero,
        needs=("advantage_std", "reward_min", "reward_max"),
        bad_side="below",
        limit_from="calibrated",
        explanation="All actions seem equally good, so the policy learns from noise.",
        causes={"advantages": 0.7, "no-reward-signal": 0.4, "discount": 0.4, "value-targets": 0.2},
        source=_JONES,
        algorithms=ON_POLICY,
        least_margin=1.0,
    ),
    Check(
        id="PV-SIGN",
        title="values have a sign that rewards exclude",
        quantity="how far the mean value lies on the excluded side, divided by its largest size; "
        "after 20 % of the budget",
        measure=_wrong_sign,
        needs=("reward_min", "reward_max", "value_mean"),
        bad_side="above",
        limit_from="calibrated",
        explanation="With rewards of one sign, values have that sign. The reward-to-go is computed "
        "wrongly, or the values do not learn.",
        causes={
            "value-targets": 0.5,
            "values-do-not-learn": 0.6,
            "advantages": 0.4,
            "steps-too-small": 0.2,
        },
        source=_JONES,
        algorithms=ON_POLICY,
        least_margin=0.3,
        extreme=1.0,
    ),
    Check(
        id="PV-BOUND",
        title="values are larger than any return",
        quantity="|mean value| divided by max |r| / (1 - γ)",
        measure=_beyond_bound,
        needs=("reward_min", "reward_max", "value_mean"),
        bad_side="above",
        limit_from="identity",
        explanation="No discounted return can be that large: values diverge, or γ is not the one "
        "in use.",
        causes={
            "value-targets": 0.8,
            "steps-too-large": 0.4,
            "target-network": 0.3,
            "advantages": 0.2,
        },
        source="an identity; van Hasselt et al. 2018 call it soft divergence",
        limit=1.5,
        algorithms=ON_POLICY,
    ),
    Check(
        id="PV-ADV-WRONG",
        title="advantages are not those of their definition",
        quantity="largest error so far of an advantage in its recursion, as a share of the largest "
        "sum of |r|, |V(s)|, |V(s')| and |A|",
        measure=_advantages_wrong,
        needs=("advantage_error_max",),
        bad_side="above",
        limit_from="identity",
        explanation="Computed once more from the same rollout, the advantages are others: the ends "
        "of episodes, the discount, the order of the rows or the sum itself is wrong.",
        causes={
            "advantages": 0.9,
            "value-targets": 0.5,
            "observations": 0.2,
            "acting-and-learning-disagree": 0.2,
        },
        source="an identity; Schulman et al. 2016, arXiv:1506.02438, eq. 16",
        limit=WRONG,
        is_conclusive=True,
        algorithms=ON_POLICY,
    ),
    Check(
        id="PV-TARGET-WRONG",
        title="targets of the values are not those of their definition",
        quantity="largest error so far of a target in its recursion, as a share of the largest sum "
        "of |r|, |V(s)|, |V(s')| and |G|",
        measure=_targets_wrong,
        needs=("target_error_max",),
        bad_side="above",
        limit_from="identity",
        explanation="Computed once more from the same rollout, the λ-returns are others: the ends "
        "of episodes, the discount, the order of the rows or the sum itself is wrong.",
        causes={
            "value-targets": 0.9,
            "advantages": 0.2,
            "observations": 0.2,
            "acting-and-learning-disagree": 0.2,
        },
        source="an identity; Sutton & Barto 2018, eq. 12.18",
        limit=WRONG,
        is_conclusive=True,
        algorithms=ON_POLICY,
    ),
    Check(
        id="PV-LEVEL-HIGH",
        title="values are above what rewards allow",
        quantity="decimal logarithm of the mean value divided by r / (1 - γ), r the mean reward "
        "or, if that is more, a tenth of its largest size until then; only of values of at least "
        "half of the largest reward",
        measure=_level_high,
        needs=("reward_mean", "reward_min", "reward_max", "value_mean", "episode_length_mean"),
        bad_side="above",
        limit_from="calibrated",
        explanation="Values add up more reward than there is: no discount, or a bootstrap at "
        "terminal states.",
        causes={"value-targets": 0.7, "steps-too-large": 0.3, "discount": 0.2, "reward-sign": 0.1},
        source="two routes to one number",
        algorithms=ON_POLICY,
        least_margin=0.3,
        extreme=1.0,
    ),
    Check(
        id="PV-LEVEL-LOW",
        title="values are below what rewards imply",
        quantity="decimal logarithm of the largest mean value until now divided by the mean "
        "reward-to-go of an episode of the mean length, from half of the budget on",
        measure=_level_low,
        needs=("reward_mean", "reward_min", "reward_max", "value_mean", "episode_length_mean"),
        bad_side="below",
        limit_from="calibrated",
        explanation="Values leave rewards out: they stop at the next step, or do not learn.",
        causes={
            "value-targets": 0.6,
            "values-do-not-learn": 0.7,
            "advantages": 0.3,
            "steps-too-small": 0.5,
        },
        source="two routes to one number",
        algorithms=ON_POLICY,
        least_margin=0.3,
    ),
    Check(
        id="PV-LOSS",
        title="the loss of the values is huge",
        quantity="decimal logarithm of the largest median of the value loss; if rewards are not "
        "normalised, only if its root is larger than any mean return",
        measure=_value_loss,
        needs=("value_loss",),
        bad_side="above",
        limit_from="calibrated",
        explanation="Squared errors of this size dominate every other gradient in a shared "
        "network.",
        causes={"reward-scale": 0.9, "value-targets": 0.4, "steps-too-large": 0.2, "discount": 0.3},
        source="CleanRL issue 441; Stable-Baselines3 issue 2240 (738,000)",
        algorithms=ON_POLICY,
        least_margin=1.0,
        is_pooled=True,
    ),
)
