"""Compare ways to choose queries on fixed pools of clips, without training a policy on the reward.

    python benchmarks/queries.py [TASK ...] [--methods NAME ...] [--fit NAME] [--seeds 5]

The pool of a task is half clips of random actions, half of a policy that PPO trained for a short
time on the true reward. The oracle labels a first round of uniform pairs, then rounds chosen by
the method, after a fit of the reward model to all labels so far. Accuracy is measured on decided
pairs of other clips of both kinds. Intervals are 95 %, Student's t over seeds.

`--fit` tries what is not part of teaching, with the additive model: `crops` adds to each label two
random windows of its clips, `pseudo` adds as many pairs of labelled clips as there are labels, of
which the previous fit is sure (SURF, arXiv:2203.10050, sections 4.1 and 4.2).
"""

import argparse
import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from backflip.core.trees import row_of
from backflip.preferences.clips import Clip, observed
from backflip.preferences.queries import uniform_pairs
from backflip.rewards.interface import LabelledComparison
from backflip.rewards.linear.model import LinearRewardModel
from backflip.rewards.registry import make_reward_model
from backflip.rewards.representations.additive import AdditiveFeatures
from backflip.training.build import build
from backflip.training.queries.candidate_clips import Found, some_clips
from backflip.training.queries.query_choice import Known, QueryChoice
from backflip.training.teaching.config import TeachConfig
from backflip.training.teaching.defaults import teach_settings
from runshelf.statistics.intervals import mean_interval

TASKS = {"Pendulum-v1": 50_000, "Acrobot-v1": 40_960, "fixed:Hopper-v5": 60_000}  # env steps of PPO
METHODS = ("uniform", "disagreement", "information", "coverage")
ROUNDS = (12, 13, 12, 13, 12, 13, 12, 13)
REPORTED = (25, 50, 100)
POOL, HELD_OUT = 200, 2_000  # clips to choose from; held-out pairs


class Pool(NamedTuple):
    """The clips of a task, and the record of random actions for the encoder."""

    spec: Any
    config: TeachConfig
    random_record: Any
    random: Found
    trained: Found


class CropsModel(LinearRewardModel):
    """The additive model, fitted also to two random windows of the clips of each label."""

    representation_of = AdditiveFeatures

    def _steps(self, row: int, inputs: Any, comparisons: Sequence[LabelledComparison]) -> Any:
        steps = super()._steps(row, inputs, comparisons)
        if not comparisons:
            return steps
        clips = self._clips.labelled(comparisons)
        alive = np.stack([clip.alive for clip in clips])
        every = self._clip_features(inputs, clips) * alive[..., None]
        rng, length = np.random.default_rng(0), alive.shape[1]
        sums, preferred = [steps.sums], [steps.left_preferred]
        for _ in range(2):
            lasts = rng.integers(round(0.7 * length), length, len(comparisons)).repeat(2)
            begins = rng.integers(0, length - lasts + 1)
            at = np.arange(length)[None] - begins[:, None]
            sums.append((every * ((at >= 0) & (at < lasts[:, None]))[..., None]).sum(1))
            preferred.append(steps.left_preferred)
        return steps._replace(sums=np.concatenate(sums), left_preferred=np.concatenate(preferred))


class PseudoModel(LinearRewardModel):
    """The additive model, fitted also to pairs of labelled clips that its last fit was sure of."""

    representation_of = AdditiveFeatures
    _last: Any = None

    def _steps(self, row: int, inputs: Any, comparisons: Sequence[LabelledComparison]) -> Any:
        steps = super()._steps(row, inputs, comparisons)
        if self._last is None or not comparisons:
            return steps
        pairs = uniform_pairs(np.random.default_rng(0), len(steps.sums), 10 * len(comparisons))
        logits = (steps.sums[pairs[:, 0]] - steps.sums[pairs[:, 1]]) @ self._last
        sure = np.flatnonzero(1 / (1 + np.exp(-np.abs(logits))) > SURE)[: len(comparisons)]
        sums = np.concatenate(
            [steps.sums, steps.sums[pairs[sure]].reshape(-1, steps.sums.shape[1])]
        )
        preferred = np.concatenate([steps.left_preferred, (logits[sure] > 0).astype(float)])
        return steps._replace(sums=sums, left_preferred=preferred)

    def fit(self, previous: Any, comparisons: Any, keys: Any) -> Any:
        """Fit, and keep the mean of the members for the next fit."""
        fitted = super().fit(previous, comparisons, keys)
        self._last = np.asarray(fitted.parameters.members)[0].mean(0)
        return fitted


FITS = {"plain": None, "crops": CropsModel, "pseudo": PseudoModel}
SURE = 0.95


def pool_of(env: str, env_steps: int) -> Pool:
    """Return the clips of random actions and of a policy after so many env steps of PPO."""
    built = build("ppo", env, env_args={}, settings={"env_steps": env_steps})
    driver, rng = built.driver, np.random.default_rng(0)
    config = TeachConfig(**teach_settings("ppo", driver.spec)[1])
    record = row_of(
        driver.random_record(
            [0], envs=config.random_envs, env_steps=config.random_env_steps, repeat=config.repeat
        ),
        0,
    )
    rollouts = min(-(-20_480 // (driver.algorithm.num_envs * driver.algorithm.rollout_length)), 40)
    phase = driver.phase(
        built.config.updates, record_rollouts=min(rollouts, built.config.updates), record_envs=64
    )
    _, done = phase(driver.start([0]), ())
    trained = jax.tree.map(np.asarray, row_of(done.record, 0))
    driver.close()
    found = [some_clips(rng, x, config.clip_length, 400, shown=False) for x in (record, trained)]
    return Pool(driver.spec, config, record, *found)


def accuracies(pool: Pool, method: str, fit: str, seed: int) -> dict[int, float]:
    """Return the held-out accuracy at each number of labels."""
    name, _, stages = method.partition(":")
    config = dataclasses.replace(pool.config, queries=name, stages=int(stages or 1))
    rng = np.random.default_rng([seed, 1])
    ours, theirs = (_split(found, rng) for found in (pool.random, pool.trained))
    clips = [*ours[0].clips, *theirs[0].clips]
    begins = np.array([*ours[0].begins, *theirs[0].begins])
    held_out = [*ours[1].clips, *theirs[1].clips]
    made = FITS[fit]
    if made is None:
        model: Any = make_reward_model(
            config.reward_model, pool.spec, sum(ROUNDS), config.clip_length
        )
    else:
        model = made(pool.spec, 3 * sum(ROUNDS), config.clip_length)
    model.observe(pool.random_record)
    choice, labels, parameters = QueryChoice(model, config), list[LabelledComparison](), None
    found: dict[int, float] = {}
    for number, count in enumerate(ROUNDS):
        known = None if parameters is None else Known(0, row_of(parameters, 0), labels)
        pairs = choice.choose(np.random.default_rng([seed, number]), clips, begins, known, count)
        labels = [
            *labels,
            *(_label(clips, i, j, len(labels) + k, number) for k, (i, j) in enumerate(pairs)),
        ]
        key = np.asarray(jax.random.key_data(jax.random.key(seed)))[None]
        parameters = model.fit(model.initial(1), [labels], key).parameters
        found[len(labels)] = _accuracy(model, row_of(parameters, 0), held_out, seed)
    return found


def _split(found: Found, rng: np.random.Generator) -> tuple[Found, Found]:
    order = rng.permutation(len(found.clips))
    parts = order[: POOL // 2], order[POOL // 2 :]
    ours, theirs = (
        Found([found.clips[i] for i in part], [found.begins[i] for i in part]) for part in parts
    )
    return ours, theirs


def _label(clips: Sequence[Clip], i: int, j: int, query: int, number: int) -> LabelledComparison:
    left, right = (float(clips[at].reward.sum(dtype=np.float64)) for at in (i, j))
    preferred = 0.5 if left == right else float(left > right)
    pair = observed(clips[i]), observed(clips[j])
    return LabelledComparison(query, lambda: pair, preferred, number)


def _accuracy(model: Any, parameters: Any, clips: Sequence[Clip], seed: int) -> float:
    """Return how often the learned reward orders decided held-out pairs rightly; a tie is half."""
    opinions = model.opinions(parameters, [observed(clip) for clip in clips])
    if opinions is None:
        return 0.5
    true = np.array([clip.reward.sum(dtype=np.float64) for clip in clips])
    pairs = uniform_pairs(np.random.default_rng(seed), len(clips), HELD_OUT)
    truth = np.sign(true[pairs[:, 0]] - true[pairs[:, 1]])
    learned = opinions.reward.sum(1, dtype=np.float64)
    guess = np.sign(learned[pairs[:, 0]] - learned[pairs[:, 1]])
    decided = truth != 0
    return float(((guess * truth)[decided] / 2 + 0.5).mean())


def main() -> None:
    """Print a table of held-out accuracy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"of {', '.join(TASKS)}")
    parser.add_argument("--methods", nargs="+", default=METHODS, metavar="NAME[:STAGES]")
    parser.add_argument("--fit", default="plain", choices=FITS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    print(
        f"| task | queries | {' | '.join(f'{n} labels' for n in REPORTED)} |\n|---|---|---|---|---|"
    )
    for task in options.tasks or TASKS:
        pool = pool_of(task, TASKS[task])
        for method in options.methods:
            seeds = range(options.first, options.first + options.seeds)
            every = [accuracies(pool, method, options.fit, seed) for seed in seeds]
            cells = [_cell([one[n] for one in every]) for n in REPORTED]
            print(f"| {task} | {method}, {options.fit} | {' | '.join(cells)} |", flush=True)


def _cell(scores: Sequence[float]) -> str:
    found = mean_interval(np.array(scores)[:, None])
    half = float(found.high[0] - found.low[0]) / 2
    return f"{np.mean(scores):.3f} ± {half:.3f}, worst {min(scores):.3f}"


if __name__ == "__main__":
    main()
