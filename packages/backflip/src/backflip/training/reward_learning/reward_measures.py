"""Measures of a learned reward at the end of teaching, in the run's folder as `MEASURES`.

For each seed: true against learned return of clips and of episodes, calibration of P(left) against
the answers, EPIC and DARD distance to the true reward where it is known, the learned reward along
an episode, and the labels that the model is most wrong and most unsure about. The true reward is
only compared with; the reward model never sees it.
"""

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
from jaxtyping import Bool, Float, Int

from backflip.core.trees import row_of
from backflip.core.types import Transition
from backflip.preferences.clips import Clip, from_arrays, observed
from backflip.preferences.fresh_pairs import fresh_answers
from backflip.preferences.labels import LabelStore
from backflip.rewards.calibration import (
    calibration_error,
    expected_answer,
    left_probability,
    reliability,
    spearman,
)
from backflip.rewards.interface import TIE, TIE_WIDTH, ObservedClip, RewardModel
from backflip.training.reward_learning.reward_distances import RewardDistances
from backflip.training.reward_learning.reward_fits import LEFT_PREFERRED
from runshelf.received_json import parse_record
from runshelf.store.opening import read_whole
from runshelf.store.records import to_json
from runshelf.store.writing import replace_file

MEASURES = "learned-reward.json"
MOST_LABELS = 300  # newest labels of a seed that its calibration is measured on
LISTED = 5  # most labels that the model is most wrong or most unsure about
FEWEST_EPISODES = 8  # complete episodes in a record; with fewer, parts of episodes are compared


class AlongSteps(NamedTuple):
    """Rewards of the last record of a seed, whole clips of each environment: (T, M) each.

    Attributes:
        learned: the learned reward; 0 where not valid.
        spread: the standard deviation over members.
        true: the true reward.
        ended: an episode ended with this step.
        valid: the row is a transition.
    """

    learned: Float[np.ndarray, "T M"]
    spread: Float[np.ndarray, "T M"]
    true: Float[np.ndarray, "T M"]
    ended: Bool[np.ndarray, "T M"]
    valid: Bool[np.ndarray, "T M"]


@final
class RewardMeasures:
    """Measures the learned rewards of a run.

    Args:
        env_id: the environment's id.
        env_args: its arguments.
        model: the reward model.
        store: the run's labels.
        clip_length: env steps in a clip.
    """

    def __init__(
        self,
        env_id: str,
        env_args: Mapping[str, Any],
        model: RewardModel,
        store: LabelStore,
        clip_length: int,
    ) -> None:
        self._distances = RewardDistances(env_id, env_args, model)
        self._model, self._store, self._length = model, store, clip_length

    def write(
        self,
        folder: Path,
        seeds: Sequence[int],
        record: Transition,
        reward: Any,
        random_clips: Sequence[Sequence[Clip]],
        about: Mapping[str, Any],
        fit_metrics: Sequence[Mapping[str, float]],
    ) -> dict[str, Any] | None:
        """Measure every seed, write `MEASURES`, and return what was written.

        `about` says which reward model each seed uses (`RewardNotes.record`), `fit_metrics` are
        those of the last fit of each seed.

        None if a seed has no reward yet, or a record is shorter than a clip. Without clips of
        random play, only the newest behaviour is measured.
        """
        found = [
            self._seed(
                seed,
                row_of(record, row),
                row_of(reward, row),
                random_clips[row],
                fit_metrics[row].get(TIE_WIDTH, 0.0),
            )
            for row, seed in enumerate(seeds)
        ]
        if any(one is None for one in found):
            return None
        measures = {"seeds": found, "reward_model": dict(about)}
        replace_file(folder, MEASURES, json.dumps(to_json(measures)).encode())
        return measures

    def _seed(
        self,
        seed: int,
        record: Transition,
        reward: Any,
        random: Sequence[Clip],
        tie_width: float,
    ) -> dict[str, Any] | None:
        steps = self._along(record, reward)
        old = self._returns(reward, random)
        if steps is None or old is None:
            return None
        return {
            "seed": seed,
            "clips": _clip_returns(steps, self._length, old, random),
            "episodes": episode_returns(steps),
            **self._calibration(seed, reward, tie_width),
            **self._distances.of(reward),
            "episode": _one_episode(steps),
        }

    def _returns(self, reward: Any, clips: Sequence[Clip]) -> Float[np.ndarray, " clips"] | None:
        """Return the learned returns of clips, of which there may be none; None without reward."""
        if not clips:
            return np.zeros(0)
        opinions = self._model.opinions(reward, [observed(clip) for clip in clips])
        return None if opinions is None else opinions.reward.sum(1)

    def _along(self, record: Transition, reward: Any) -> AlongSteps | None:
        """Return the rewards of a record, whose environments are cut into clips."""
        envs, clips = record.valid.shape[1], len(record.valid) // self._length
        if not clips:
            return None
        cut = [slice(start * self._length, (start + 1) * self._length) for start in range(clips)]
        seen = [
            ObservedClip(
                record.obs[part, env],
                record.action[part, env],
                record.next_obs[part, env],
                record.valid[part, env],
            )
            for part in cut
            for env in range(envs)
        ]
        opinions = self._model.opinions(reward, seen)
        if opinions is None:
            return None

        def in_order(x: Float[np.ndarray, "C L"]) -> Float[np.ndarray, "T M"]:
            return x.reshape(clips, envs, self._length).swapaxes(1, 2).reshape(-1, envs)

        used = slice(clips * self._length)
        return AlongSteps(
            in_order(opinions.reward),
            in_order(opinions.spread),
            np.where(record.valid, record.reward, 0.0)[used],
            (record.terminated | record.truncated)[used],
            record.valid[used],
        )

    def _calibration(self, seed: int, reward: Any, tie_width: float) -> dict[str, Any]:
        """Return calibration on fresh pairs and on labels, and the most wrong and unsure labels."""
        fresh = [one for one in fresh_answers(self._store, seed) if one.answer in LEFT_PREFERRED]
        answers = self._store.in_force(seed, np.iinfo(np.int64).max)[-MOST_LABELS:]
        clips = [from_arrays(clip) for one in answers for clip in self._store.clips(one.query)]
        opinions = self._model.opinions(reward, [observed(x) for x in clips]) if clips else None
        truth = np.array([LEFT_PREFERRED[one.answer] for one in answers])
        margins, learned = np.zeros((0, 1)), np.zeros((0, 2))
        if opinions is not None:
            margins = opinions.clip_returns[0::2] - opinions.clip_returns[1::2]
            learned = opinions.reward.sum(1).reshape(-1, 2)
        true = np.array([clip.reward.sum() for clip in clips]).reshape(-1, 2)
        chance = left_probability(margins, tie_width)
        truth = truth[: len(chance)]
        spread = expected_answer(margins, tie_width).std(-1)

        def listed(order: np.ndarray) -> list[dict[str, Any]]:
            return [
                {
                    "query": answers[i].query,
                    "answer": answers[i].answer,
                    "left": float(chance[i]),
                    "spread": float(spread[i]),
                    "env_steps": answers[i].env_steps,
                    "learned_returns": learned[i],
                    "true_returns": true[i],
                }
                for i in order[:LISTED]
            ]

        return {
            "fresh": _table(
                np.array([one.forecast.left for one in fresh]),
                np.array([LEFT_PREFERRED[one.answer or ""] for one in fresh]),
            ),
            "labels": _table(chance, truth),
            "most_wrong": listed(most_wrong(chance, truth)),
            "most_unsure": listed(np.argsort(-spread, kind="stable")),
        }


def most_wrong(
    chance: Float[np.ndarray, " n"], truth: Float[np.ndarray, " n"]
) -> Int[np.ndarray, " wrong"]:
    """Return the places of the answers that the model contradicts, the most unlikely first.

    Args:
        chance: P(left) of the model.
        truth: the answers: 1 for left, 0 for right, ½ for a tie. A tie is contradicted where
            P(left) is nearer to 0 or 1 than to ½.
    """
    error = np.abs(chance - truth)
    worst = np.argsort(-error, kind="stable")
    return worst[(error > np.where(truth == TIE, 0.25, 0.5))[worst]]


def _table(chance: Float[np.ndarray, " n"], truth: Float[np.ndarray, " n"]) -> dict[str, Any]:
    bins = reliability(chance, truth)
    return {
        "answers": len(chance),
        "error": calibration_error(bins),
        "bins": [one._asdict() for one in bins],
    }


def _clip_returns(
    steps: AlongSteps, length: int, random: Float[np.ndarray, " clips"], clips: Sequence[Clip]
) -> dict[str, Any]:
    """Return true and learned returns of clips of the newest behaviour and of random play."""
    envs = steps.true.shape[1]

    def sums(x: Float[np.ndarray, "T M"]) -> Float[np.ndarray, " clips"]:
        return x.reshape(-1, length, envs).sum(1).ravel()

    new, old = sums(steps.true), np.array([clip.reward.sum() for clip in clips])
    learned = sums(steps.learned)
    return {
        "spearman": spearman(np.concatenate([new, old]), np.concatenate([learned, random])),
        "newest_spearman": spearman(new, learned),
        "newest": {"true": new, "learned": learned},
        "random": {"true": old, "learned": random},
    }


def episode_returns(steps: AlongSteps) -> dict[str, Any]:
    """Return true and learned return of each episode of the newest behaviour.

    If fewer than `FEWEST_EPISODES` are complete, mean rewards of all parts that are at least half
    as long as the longest one.
    """
    parts = [part for env in range(steps.true.shape[1]) for part in _parts(steps, env)]
    complete = [part for part in parts if part.complete]
    whole = len(complete) >= FEWEST_EPISODES
    longest = max((part.length for part in parts), default=0)
    used = complete if whole else [part for part in parts if 2 * part.length >= longest]
    true = np.array([part.true if whole else part.true / part.length for part in used])
    learned = np.array([part.learned if whole else part.learned / part.length for part in used])
    return {
        "complete": whole,
        "spearman": spearman(true, learned),
        "true": true,
        "learned": learned,
    }


class _Part(NamedTuple):
    """Sums over a part of an episode; complete if it has its first and its last step."""

    true: float
    learned: float
    length: int
    complete: bool


def _parts(steps: AlongSteps, env: int) -> list[_Part]:
    ends = (np.flatnonzero(steps.ended[:, env]) + 1).tolist()
    borders = sorted({0, *ends, len(steps.ended)})
    found: list[_Part] = []
    for start, stop in itertools.pairwise(borders):
        length = int(steps.valid[start:stop, env].sum())
        true, learned = (x[start:stop, env].sum() for x in (steps.true, steps.learned))
        whole = start in ends and stop in ends
        if length:
            found.append(_Part(float(true), float(learned), length, whole))
    return found


def _one_episode(steps: AlongSteps) -> dict[str, Any]:
    """Return the rewards along the first environment's longest part of one episode."""
    borders = sorted({0, *(np.flatnonzero(steps.ended[:, 0]) + 1).tolist(), len(steps.ended)})
    pieces = [*itertools.pairwise(borders)]
    start, stop = max(pieces, key=lambda piece: piece[1] - piece[0])
    chosen = slice(start, stop)
    names = ("learned", "spread", "true")
    return {name: getattr(steps, name)[chosen, 0] for name in names}


def read_measures(folder: Path) -> dict[str, Any] | None:
    """Return the measures of a run; None if it has none."""
    data = read_whole(folder, MEASURES)
    return None if data is None else parse_record(data)


def summary_of(measures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the means over seeds, for the result."""
    seeds: Sequence[Mapping[str, Any]] = measures["seeds"]
    found = {
        "spearman_clips": _mean([one["clips"]["spearman"] for one in seeds]),
        "spearman_episodes": _mean([one["episodes"]["spearman"] for one in seeds]),
        "calibration_error": _mean([one["labels"]["error"] for one in seeds]),
        "fresh_calibration_error": _mean([one["fresh"]["error"] for one in seeds]),
        "epic": _mean([one["epic"] for one in seeds]),
        "dard": _mean([one["dard"] for one in seeds]),
    }
    about = {"reward_model": measures["reward_model"]} if "reward_model" in measures else {}
    return found | about | {"in_words": _in_words(found), "file": MEASURES}


def _in_words(found: Mapping[str, float | None]) -> str:
    names = {
        "spearman_clips": "Spearman of true and learned return of clips",
        "fresh_calibration_error": "calibration error on fresh pairs",
        "epic": "EPIC",
        "dard": "DARD",
    }
    known = [f"{name} {found[key]:.2f}" for key, name in names.items() if found[key] is not None]
    return f"learned reward: {', '.join(known) or 'nothing to compare it with'}"


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
