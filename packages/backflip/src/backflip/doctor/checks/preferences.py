"""Checks of a reward that is learned from comparisons."""

import numpy as np

from backflip.doctor.check import Check, Running
from backflip.doctor.log import Log, Signal, Values
from backflip.doctor.measures import WRONG, largest, largest_of, or_none, together

FEWEST_LABELS = 50  # fewer labels are not judged
FEWEST_TIES = 10  # fewer ties are not judged if there is no other answer
# Answers at random are further from one half of each side, in standard deviations, in one of 500
# million runs.
ONE_KEY = 6.0
SHARE_DECIDED = 0.05  # a warning is given if a smaller share of the answers is not a tie
ALARM = 20.0  # a larger e-value is a finding; see docs/reward-alarm.md
_RAHTZ = "M. Rahtz, Lessons Learned Reproducing a Deep RL Paper"


def _with_labels(log: Log, name: str) -> Signal:
    """Return a signal where at least `FEWEST_LABELS` labels are decided, else NaN."""
    ties = log.signals.get("reward_model_ties")
    labels = log.signals["reward_model_labels"]
    decided = together(labels, ties, lambda all_of, tied: all_of - tied) if ties else labels
    return together(
        log.signals[name],
        decided,
        lambda value, count: np.where(count >= FEWEST_LABELS, value, np.nan),
    )


def _held_out(log: Log) -> Running | None:
    found = _with_labels(log, "reward_model_held_out_accuracy")
    return or_none(largest(Running(found.x, found.y)))


def _gap(log: Log) -> Running | None:
    seen = _with_labels(log, "reward_model_accuracy")
    fresh = log.signals["reward_model_held_out_accuracy"]
    found = together(seen, fresh, lambda one, other: one - other)
    return or_none(Running(found.x, found.y))


def _ties(log: Log) -> Running | None:
    """Return the share of answers that are not ties.

    It is known from `FEWEST_LABELS` answers on, or from `FEWEST_TIES` on if all are ties.
    """
    labels, ties = log.signals["reward_model_labels"], log.signals["reward_model_ties"]

    def decided(ties: Values, count: Values) -> Values:
        counts = (count >= FEWEST_LABELS) | ((count >= FEWEST_TIES) & (ties == count))
        return np.where(counts, 1.0 - ties / count, np.nan)

    found = together(ties, labels, decided)
    return or_none(Running(found.x, found.y))


def _one_key(log: Log) -> Running | None:
    """Return |2 L - n| / √n of L answers `left` among n decided ones, about N(0, 1) by chance."""
    found = log.signals["label_left"]
    decided = np.isfinite(found.y)
    x, left = found.x[decided], found.y[decided]
    count = np.arange(1, len(x) + 1)
    distance = np.abs(2.0 * np.cumsum(left) - count) / np.sqrt(count)
    return or_none(largest(Running(x, np.where(count >= FEWEST_LABELS, distance, np.nan))))


def _hacked(log: Log) -> Running | None:
    found = log.signals["fresh_evidence"]
    return or_none(largest(Running(found.x, found.y)))


def _symmetry(log: Log) -> Running | None:
    return largest_of(log, "reward_model_symmetry_error")


def _paths(log: Log) -> Running | None:
    return largest_of(log, "reward_model_path_error")


def _collapsed(log: Log) -> Running | None:
    found = log.signals["reward_model_collapsed"]
    return or_none(Running(found.x, found.y))


CHECKS = (
    Check(
        id="RM-CHANCE",
        title="the learned reward agrees with new answers by chance",
        quantity=f"largest accuracy on held-out labels, from {FEWEST_LABELS} decided labels on",
        measure=_held_out,
        needs=("reward_model_held_out_accuracy", "reward_model_labels"),
        bad_side="below",
        limit_from="convention",
        explanation="The model cannot predict answers that it has not seen.",
        causes={"labels": 0.8, "reward-model": 0.7, "observations": 0.2},
        source=_RAHTZ,
        limit=0.6,
    ),
    Check(
        id="RM-OVERFIT",
        title="the learned reward fits its labels, and not new ones",
        quantity="accuracy on labels of the fit minus that on held-out labels, from "
        f"{FEWEST_LABELS} labels on",
        measure=_gap,
        needs=("reward_model_accuracy", "reward_model_held_out_accuracy", "reward_model_labels"),
        bad_side="above",
        limit_from="convention",
        explanation="The model has learned the labels by heart.",
        causes={"labels": 0.6, "reward-model": 0.8},
        source="Christiano et al. 2017, arXiv:1706.03741, section 2.2.3",
        limit=0.3,
    ),
    Check(
        id="RM-TIES",
        title="almost all answers are ties",
        quantity=f"share of decided answers, from {FEWEST_LABELS} labels on, or {FEWEST_TIES} if "
        "all are ties",
        measure=_ties,
        needs=("reward_model_labels", "reward_model_ties"),
        bad_side="below",
        limit_from="convention",
        explanation="Clips look alike to the teacher: the agent does not explore, or clips are too "
        "short.",
        causes={"labels": 0.9, "too-little-exploration": 0.2},
        source=_RAHTZ,
        limit=SHARE_DECIDED,
        severity="warning",
    ),
    Check(
        id="RM-ONE-KEY",
        title="almost all answers name the same side",
        quantity="how far the share of answers that name the left clip is from a half, in "
        f"standard deviations of answers at random, from {FEWEST_LABELS} decided answers on",
        measure=_one_key,
        needs=("label_left",),
        bad_side="above",
        limit_from="convention",
        explanation="Sides are random: such answers do not come from looking, or the sides were "
        "mixed up.",
        causes={"labels": 0.95},
        source=f"{_RAHTZ}; docs/teachers.md#careless-answers",
        limit=ONE_KEY,
    ),
    Check(
        id="RM-HACK",
        title="the learned reward is being exploited",
        quantity="evidence against agreement on fresh pairs, as an e-value",
        measure=_hacked,
        needs=("fresh_evidence",),
        bad_side="above",
        limit_from="convention",
        explanation="The learned return rises while the teacher no longer agrees: the policy found "
        "a gap in the learned reward.",
        causes={"reward-model": 0.95},
        source="Ibarz et al. 2018, arXiv:1811.06521, section 3.3; docs/reward-alarm.md",
        limit=ALARM,
    ),
    Check(
        id="RM-SIAMESE",
        title="the two branches of a comparison differ",
        quantity="largest error so far of P(A ≻ B) + P(B ≻ A) = 1 and P(A ≻ A) = ½",
        measure=_symmetry,
        needs=("reward_model_symmetry_error",),
        bad_side="above",
        limit_from="identity",
        explanation="The loss compares two different functions, such as two dropout masks. Noise "
        "of this kind can also regularise: compare a run with it and one without before you keep "
        "the fix.",
        causes={"branches-differ": 0.98, "reward-model": 0.05},
        source=_RAHTZ,
        limit=WRONG,
        is_conclusive=True,
    ),
    Check(
        id="RM-PATHS",
        title="the agent learns from another reward than the fitted one",
        quantity="largest 1 - correlation so far of the reward in the fit with that which the "
        "agent receives, of the same steps",
        measure=_paths,
        needs=("reward_model_path_error",),
        bad_side="above",
        limit_from="identity",
        explanation="Only a scale and a shift may differ: inputs are treated differently on the "
        "two paths.",
        causes={"reward-paths": 0.98, "reward-model": 0.05},
        source=_RAHTZ,
        limit=WRONG,
        is_conclusive=True,
    ),
    Check(
        id="RM-COLLAPSED",
        severity="warning",  # a reward that depends on actions alone is learned all the same
        title="the representation has collapsed",
        quantity="share of seeds whose features no longer tell states apart",
        measure=_collapsed,
        needs=("reward_model_collapsed",),
        bad_side="above",
        limit_from="convention",
        explanation="The reward model sees the same features in all states.",
        causes={"reward-model": 0.8, "observations": 0.3},
        source="docs/reward-models.md",
        limit=0.5,
    ),
)
