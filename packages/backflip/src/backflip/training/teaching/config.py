"""The settings of teaching: their bounds, and what they refuse."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from backflip.algorithms.interface import Recency
from backflip.core.settings import (
    LARGEST_COUNT,
    Bounds,
    Count,
    CountOrZero,
    Fraction,
    PositiveFraction,
)
from backflip.core.spec import EnvSpec
from backflip.preferences.ask import MOST_AT_ONCE, Ask
from backflip.rewards.interface import LABELS_ONLY, FitSettings
from backflip.training.queries.candidate_clips import CANDIDATE_CLIPS
from runshelf.errors import UsageError

SHORTEST_CLIP = 2  # env steps
MOST_CROPS = 100  # of each label: what counts in each step of each crop is kept during a fit

# Of old runs, which have no such settings.
OLD_RUN: dict[str, Any] = {
    "reward_model": "linear",
    "fresh_share": 0.0,
    "restart_schedules": False,
}


@dataclass(frozen=True)
class TeachConfig:
    """The settings of teaching.

    Attributes:
        labels: label budget of each seed.
        phases: about how many times training pauses for queries.
        clip_length: env steps in a clip.
        clip_rollouts: number of a phase's last rollouts from which clips are cut.
        clip_envs: number of environments from which clips are cut.
        random_envs: environments of the random policy. Its observations are the only ones known
            when the first reward is fitted.
        random_env_steps: env steps of the random policy in each environment.
        repeat: probability that the random policy repeats its last action, so that its clips
            differ more.
        random_share: share of candidate clips from the random policy (at most 64 clips). An agent
            that is stuck produces clips that labels cannot distinguish.
        early_share: share of the other clips that are early in their episodes
            (`backflip.training.queries.candidate_clips`).
        ask: a query shows two clips (`compare`); or a set of clips is ranked (`rank`), or rated one
            by one (`rate`), and every pair of the set is a query.
        clips_at_once: clips in a set.
        queries: how pairs of clips are chosen: `disagreement` of the ensemble, expected
            `information` of the answers, `coverage` of the reward model's features, or `uniform`.
        stages: clips are sorted by the env step of their episode at which they begin, and divided
            into this many groups of about equal size; both clips of a pair come from one group. 1
            allows any pair.
        pretrain_env_steps: env steps of learning to explore before the first queries, whose clips
            are then of this behaviour, too. Random env steps before learning come on top.
        recent_share: share of each minibatch of a replay from the newest env steps only.
        recent_env_steps: how many those are.
        restart_at: share of the phases after which the networks are initialised again, to learn
            from a reward that knows most labels (`backflip.training.restart`); 0 or 1: never.
        restart_keeps: κ, the share of the learned parameters that a new start keeps.
        restart_schedules: whether schedules, such as that of the learning rate, start again with
            the networks, and end with the run; not with a replay, whose schedules go on.
        fresh_share: share of the labels that check the reward model on the newest behaviour
            (`backflip.preferences.reward_alarm`).
        optimism: β, the weight of a bonus where the reward model's members disagree, while queries
            are still to come (`backflip.training.queries.optimism`); 0 for none.
        demonstration_share: labels that demonstrations add for each query, if there are any
            (`backflip.training.queries.demonstrations`).
        reward_model: `additive`, `additive-7-knots`, `auto`, `change_map`, `contacts`,
            `intervals`, `linear`, `network`, `network-half-ties`, `numbers`, `place_map`, or
            `module:Class` for your own.
        crops: cropped copies of each label in a fit of a network
            (`backflip.rewards.network.crops`).
        shortest_crop: the least length of a crop, as a share of a clip.
        pseudo_label_weight: λ, the weight of pseudo-labels of the newest behaviour in a fit of a
            network (`backflip.rewards.network.pseudo_labels`).
        pseudo_label_threshold: τ, how probable an answer must be to be a pseudo-label.
    """

    labels: Annotated[int, Bounds(0, LARGEST_COUNT)] = 100
    phases: int = 20
    clip_length: Annotated[int, Bounds(SHORTEST_CLIP)] = 25
    clip_rollouts: Count = 4
    clip_envs: Count = 64
    random_envs: Count = 64
    random_env_steps: Count = 200
    repeat: Fraction = 0.8
    random_share: Fraction = 0.1
    early_share: Fraction = 0.0
    ask: Ask = "compare"
    clips_at_once: Annotated[int, Bounds(2, MOST_AT_ONCE)] = 4
    queries: Literal["disagreement", "information", "coverage", "uniform"] = "disagreement"
    stages: Count = 1
    pretrain_env_steps: CountOrZero = 0
    recent_share: Fraction = 0.0
    recent_env_steps: Count = 5_000
    restart_at: Fraction = 0.0
    restart_keeps: Fraction = 0.0
    restart_schedules: bool = True
    fresh_share: Fraction = 0.12
    optimism: Annotated[float, Bounds(0, 10)] = 0.0
    demonstration_share: Fraction = 0.25
    reward_model: str = "intervals"
    crops: Annotated[int, Bounds(0, MOST_CROPS)] = LABELS_ONLY.crops
    shortest_crop: PositiveFraction = LABELS_ONLY.shortest_crop
    pseudo_label_weight: Fraction = LABELS_ONLY.pseudo_label_weight
    pseudo_label_threshold: Annotated[float, Bounds(0.5, 1)] = LABELS_ONLY.pseudo_label_threshold

    @property
    def recency(self) -> Recency:
        """How much of each minibatch is recent."""
        return Recency(self.recent_share, self.recent_env_steps)

    @property
    def fit_settings(self) -> FitSettings:
        """What a fit uses besides whole labels."""
        return FitSettings(
            self.crops,
            self.shortest_crop,
            self.pseudo_label_weight,
            self.pseudo_label_threshold,
        )

    @property
    def queries_at_once(self) -> int:
        """The number of queries of one answer: the pairs of a set of clips."""
        return 1 if self.ask == "compare" else math.comb(self.clips_at_once, 2)

    def clip_env_steps(self, num_envs: int) -> int:
        """Return the env steps of each environment in which there are enough different clips.

        L - 1 + w env steps have w clips of L env steps, and `num_envs` environments, of which at
        most `clip_envs` are recorded, so many times more. `CANDIDATE_CLIPS` are enough, or w = L.
        """
        each = -(-CANDIDATE_CLIPS // min(num_envs, self.clip_envs))
        return self.clip_length - 1 + min(self.clip_length, each)

    def check(self, spec: EnvSpec, updates: int, usual_phases: int) -> None:
        """Refuse settings that are inconsistent or do not fit the environment.

        Args:
            spec: of the environment.
            updates: updates after the first queries could be made.
            usual_phases: a valid number of phases.

        Raises:
            UsageError: the message has all invalid settings, and values to use instead.
        """
        wrong: list[str] = []
        limit = spec.max_episode_steps
        if limit is not None and self.clip_length > limit:
            wrong.append(_no_clip_fits(spec.id, limit, self.clip_length))
        if not 1 <= self.phases <= updates:
            wrong.append(
                f"`phases` must lie between 1 and the {updates} updates, got {self.phases}; "
                f"try --set phases={usual_phases}"
            )
        if self.random_env_steps < self.clip_length:
            fits = max(SHORTEST_CLIP, self.random_env_steps // 8)
            wrong.append(
                f"in `random_env_steps={self.random_env_steps}` there is no clip of "
                f"{self.clip_length} env steps; try --set clip_length={fits} or "
                f"--set random_env_steps={2 * self.clip_length}"
            )
        first = self.random_envs * (self.random_env_steps - self.clip_length + 1)
        most = first * (first - 1) // 2
        if not wrong and self.labels > most:
            wrong.append(
                f"there are only {most} pairs of first clips, fewer than {self.labels} labels; "
                "try --set random_env_steps=500 or fewer labels"
            )
        if wrong:
            raise UsageError("; ".join(wrong))


def _no_clip_fits(env: str, limit: int, length: int) -> str:
    """Return the problem of clips that are longer than an episode, and what to type instead."""
    if limit < SHORTEST_CLIP:
        return (
            f"`teach` compares clips of at least {SHORTEST_CLIP} env steps, and an episode of "
            f"`{env}` has {limit}; try --env-arg max_episode_steps={SHORTEST_CLIP}, or "
            "`backflip train`, which learns from the true reward"
        )
    return (
        f"a clip of {length} env steps is longer than an episode of `{env}` ({limit}); "
        f"try --set clip_length={min(25, limit)}"
    )


def saved_teaching(teaching: Mapping[str, Any]) -> TeachConfig:
    """Return the configuration of teaching that a run has saved."""
    known = OLD_RUN | dict(teaching)
    if "ask" not in teaching and known["reward_model"] == "network":  # it had no width of ties
        known["reward_model"] = "network-half-ties"
    if "restart_at" not in teaching and known["reward_model"] == "additive":  # it had fewer knots
        known["reward_model"] = "additive-7-knots"
    return TeachConfig(**known)
