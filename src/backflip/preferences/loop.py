"""`teach`: learn what a teacher wants from comparisons of clips.

First labels are asked on clips of a random policy. Then, phase by phase: train on the learned
reward, cut clips from the last rollouts, ask, commit the answers, fit the reward anew. Queries
and labels are in `labels.sqlite` of the run's folder before anything is learnt from them; a run
killed at any moment goes on from its last checkpoint and asks nothing twice.
"""

import dataclasses
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from backflip.algorithms.driver import Learner
from backflip.algorithms.ppo import PPOConfig
from backflip.archive.checkpoint import write_whole
from backflip.archive.pictures import clip_strip_png
from backflip.archive.run import Run
from backflip.core.errors import UsageError, did_you_mean
from backflip.core.trees import row_of
from backflip.core.types import Transition
from backflip.preferences.clips import Clip, cut, windows
from backflip.preferences.defaults import TeachConfig, teach_settings
from backflip.preferences.labels import LabelStore, NewLabel, NewQuery
from backflip.preferences.learned_reward import (
    Lesson,
    RewardFitter,
    RewardParameters,
    encode_all,
    learned_reward,
    untaught,
)
from backflip.preferences.queries import CANDIDATES, most_disputed, uniform_pairs
from backflip.preferences.schedule import label_schedule
from backflip.preferences.teachers import Teacher, parse_teacher
from backflip.training import runtime
from backflip.training.build import Built, build, rebuild
from backflip.training.result import Result
from backflip.training.session import Report, Session, begin, go_on, register, seeds_from
from backflip.training.train import evaluation_episodes, plan

LABELS = "labels.sqlite"
CLIPS = "clips.png"
CLIPS_LOOKED_AT = 200  # of which pairs are made, at most
RANDOM_CLIPS = 64  # of the random policy, kept for each seed
ANSWERS = 1  # sets the teacher's chances apart from those that chose the clips


class Taught(NamedTuple):
    """What a checkpoint of teaching holds."""

    learners: Learner
    reward: RewardParameters


def teach(
    env: str = "dot",
    *,
    algorithm: str = "ppo",
    teacher: str = "oracle",
    labels: int = 100,
    seeds: int = 1,
    first_seed: int = 0,
    env_steps: int | None = None,
    env_args: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    home: Path | str | None = None,
    argv: Sequence[str] | None = None,
    report: Report | None = None,
) -> Result:
    """Teach a policy what a teacher prefers; the true reward is for teacher and evaluation only.

    Args:
        env: an id of ours, a Gymnasium id, or `module:Class`.
        algorithm: what learns from the learned reward.
        teacher: `oracle`, or `noisy:mistake=0.1,...` (see `preferences.teachers`).
        labels: the budget of each seed.
        seeds: how many, taught side by side, each with labels of its own.
        first_seed: the first of them.
        env_steps: of each seed; the environment's default if None.
        env_args: for the environment's constructor.
        settings: of the algorithm or of `TeachConfig`, by name, over the defaults.
        home: the folder whose `runs/` keeps the run; BACKFLIP_HOME or the current one if None.
        argv: the command line to record; this process's by default.
        report: told of progress after each phase.

    Raises:
        UsageError: something of it does not exist or does not fit; nothing was begun.
        EnvironmentFailed: the environment did not keep its word; all until then is saved.
        Interrupted: Ctrl-C; the message says how to go on.
    """
    began = time.perf_counter()
    numbers = seeds_from(first_seed, seeds)
    answering = parse_teacher(teacher)
    runtime.prepare()
    config, built = _resolve(algorithm, env, env_args or {}, settings or {}, env_steps, labels)
    session = begin(
        Path(home) if home is not None else runtime.default_home(),
        command="teach",
        env=env,
        algorithm=algorithm,
        config={
            "env_args": dict(env_args or {}),
            "settings": dataclasses.asdict(built.config),
            "teaching": dataclasses.asdict(config),
            "teacher": answering.name,
            "evaluation_episodes": evaluation_episodes(built.driver),
        },
        seeds=numbers,
        argv=sys.argv if argv is None else argv,
        report=report,
        began=began,
    )
    with session, LabelStore.open(session.folder / LABELS) as store:
        return _Teaching(session, built, config, answering, store).carry_out()


def resume_teach(run: Run, report: Report | None = None) -> Result:
    """Carry on with a run of `teach`."""
    began = time.perf_counter()
    runtime.prepare()
    with go_on(run, report, began) as session:
        built, saved = rebuild(run), run.config
        config = TeachConfig(**saved["teaching"])
        with LabelStore.open(session.folder / LABELS) as store:
            teacher = parse_teacher(saved["teacher"])
            return _Teaching(session, built, config, teacher, store).carry_out()


def _resolve(
    algorithm: str,
    env: str,
    env_args: Mapping[str, Any],
    settings: Mapping[str, Any],
    env_steps: int | None,
    labels: int,
) -> tuple[TeachConfig, Built]:
    """Return both configurations, the defaults for the environment filled in."""
    own = {field.name for field in dataclasses.fields(TeachConfig)}
    learners = {field.name for field in dataclasses.fields(PPOConfig)}
    unknown = [name for name in settings if name not in own | learners]
    if unknown:
        named = "; ".join(f"`{name}`{did_you_mean(name, own | learners)}" for name in unknown)
        raise UsageError(f"unknown settings {named} (known: {', '.join(sorted(own | learners))})")
    chosen = {name: value for name, value in settings.items() if name not in own}
    spec = build(algorithm, env, env_args=env_args, settings={}).driver.spec
    learning, teaching = teach_settings(spec)
    learning |= chosen | ({} if env_steps is None else {"env_steps": env_steps})
    teaching |= {name: value for name, value in settings.items() if name in own}
    built = build(algorithm, env, env_args=env_args, settings=learning)
    _check_kinds(teaching)
    asked = int(teaching.get("phases", TeachConfig.phases))
    phases = asked if "phases" in settings else min(asked, built.config.updates)
    numbers: dict[str, Any] = {"labels": labels, "phases": phases}
    config = TeachConfig(**(teaching | numbers))
    config.check(built.driver.spec, built.config.updates)
    return config, built


def _check_kinds(teaching: Mapping[str, Any]) -> None:
    """Refuse values of another type than the field's."""
    wrong: list[str] = []
    for field in dataclasses.fields(TeachConfig):
        value, kind = teaching.get(field.name, field.default), type(field.default)
        wanted = (int, float) if kind is float else kind
        if not isinstance(value, wanted) or isinstance(value, bool):
            names: dict[Any, str] = {int: "a whole number", float: "a number"}
            what = names.get(kind, "disagreement or uniform")
            wrong.append(f"`{field.name}` must be {what}, got {value!r}")
    if wrong:
        raise UsageError(f"settings: {'; '.join(wrong)}")


@dataclass
class _Teaching:
    """One run of `teach` at work: only this knows all the parts."""

    session: Session
    built: Built
    config: TeachConfig
    teacher: Teacher
    store: LabelStore

    def __post_init__(self) -> None:
        self.driver = self.built.driver
        self.seeds = list(self.session.run.seeds)
        self.fitter = RewardFitter(self.driver.spec, self.config.labels)
        self.lessons: list[list[Lesson]] = [[] for _ in self.seeds]
        self.newest_label = [0] * len(self.seeds)
        self.asked_at: list[list[int]] = [[] for _ in self.seeds]  # env steps, of each lesson
        self.encoders = [untaught(self.driver.spec, 1).encoder for _ in self.seeds]
        self.encoded_labels = [-1] * len(self.seeds)
        self.random_glimpses: list[tuple[np.ndarray, np.ndarray]] = []
        self.random_clips: list[list[Clip]] = []
        self.fit_metrics: list[dict[str, float]] = [{} for _ in self.seeds]

    def carry_out(self) -> Result:
        """Do what is left of the run; return its result."""
        try:
            return self._carry_out()
        finally:
            self.driver.close()

    def _carry_out(self) -> Result:
        spec, config = self.driver.spec, self.built.config
        rollout = config.num_envs * config.rollout_length
        phases = plan(config.updates, self.config.phases)
        due = label_schedule(self.config.labels, len(phases))
        blank = Taught(self.driver.start(self.seeds), untaught(spec, len(self.seeds)))
        restored = self.session.restore(blank)
        learners, reward = restored.state
        self.fit_metrics = restored.extra.get("fit_metrics", self.fit_metrics)
        self._watch_random_policy()
        if restored.phases == 0:
            reward = self._ask_and_refit(None, reward, due[0], env_steps=0)
        functions = {updates: self._function(updates) for updates in set(phases)}
        self.session.spent("setup")
        done = sum(phases[: restored.phases])
        for number, updates in enumerate(phases[restored.phases :], restored.phases + 1):
            learners, measured = functions[updates](learners, reward)
            health = self.session.log_phase(
                self.built,
                measured,
                learners,
                done=done,
                learns_own_reward=False,
                extra=self._mean_fit_metrics(),
            )
            done += updates
            if number < len(phases) and due[number]:
                record = jax.tree.map(np.asarray, measured.record)
                env_steps = done * rollout
                reward = self._ask_and_refit(record, reward, due[number], env_steps=env_steps)
            if number == len(phases):
                self._draw_clips(jax.tree.map(np.asarray, measured.record))
            self.session.save(
                self.built,
                Taught(learners, reward),
                learners,
                phases=number,
                extra={"fit_metrics": self.fit_metrics},
            )
            shown = dict(health) | {"labels": float(sum(due[: number + 1]))}
            self.session.progress(number, len(phases), done * rollout, shown)
        episodes = self.session.run.config["evaluation_episodes"]
        evaluation = self.driver.evaluate(learners, self.seeds, episodes=episodes)
        return self.session.finish(evaluation, env_steps=done * rollout, labels=self.config.labels)

    def _watch_random_policy(self) -> None:
        """Keep of what random policies live through the glimpses, and some clips."""
        config = self.config
        for seed in self.seeds:  # one at a time: images are hundreds of MiB
            records = self.driver.random_record(
                [seed],
                envs=config.random_envs,
                env_steps=config.random_env_steps,
                repeat=config.repeat,
            )
            record = row_of(records, 0)
            rng = np.random.default_rng([seed, 0])
            self.random_glimpses.append(self.fitter.look_around(record))
            self.random_clips.append(self._some_clips(rng, record, RANDOM_CLIPS))

    def _some_clips(self, rng: np.random.Generator, record: Transition, count: int) -> list[Clip]:
        """Return `count` clips of one seed's record, or as many as there are."""
        length = self.config.clip_length
        places = windows(record, length)
        chosen = rng.permutation(len(places))[:count]
        return [cut(record, places[i], length) for i in chosen]

    def _function(self, updates: int) -> Any:
        return self.driver.phase(
            updates,
            reward=partial(learned_reward, self.driver.spec),
            record_rollouts=min(self.config.clip_rollouts, updates),
            record_envs=self.config.clip_envs,
        )

    def _ask_and_refit(
        self, record: Transition | None, reward: RewardParameters, count: int, *, env_steps: int
    ) -> RewardParameters:
        """Ask `count` queries of every seed about a record, and fit the reward to all labels.

        Where there is no record yet, they are about the random policies' clips.
        """
        for row, seed in enumerate(self.seeds):
            if not self.store.asked(seed, env_steps):
                seen = None if record is None else row_of(record, row)
                self._ask(row, seen, row_of(reward, row), count, env_steps)
            self._answer(seed)
            self._learn(row, seed)
        self._encode()
        keys = np.stack([_fit_key(seed, env_steps) for seed in self.seeds])
        fitted = self.fitter.refit(self.lessons, self.encoders, keys)
        self.fit_metrics = fitted.metrics
        return fitted.parameters

    def _ask(
        self,
        row: int,
        record: Transition | None,
        reward: RewardParameters,
        count: int,
        env_steps: int,
    ) -> None:
        """Choose pairs of clips from one seed's record, and put them into the store."""
        seed = self.seeds[row]
        rng = np.random.default_rng([seed, 1 + env_steps])
        clips = self.random_clips[row]
        if record is not None:
            again = clips[: round(self.config.random_share * CLIPS_LOOKED_AT)]
            clips = [*self._some_clips(rng, record, CLIPS_LOOKED_AT - len(again)), *again]
        if len(clips) < 2:
            length = self.config.clip_length
            raise UsageError(
                f"no two clips of {length} env steps fit into what `{self.driver.spec.id}` lived "
                f"through; try --set clip_length={max(2, length // 2)}"
            )
        pairs = self._choose(rng, clips, reward, count, first=record is None)
        self.store.add_queries(
            NewQuery(seed, clips[left]._asdict(), clips[right]._asdict(), env_steps)
            for left, right in pairs
        )

    def _choose(
        self,
        rng: np.random.Generator,
        clips: Sequence[Clip],
        reward: RewardParameters,
        count: int,
        *,
        first: bool,
    ) -> np.ndarray:
        if first or self.config.queries == "uniform":
            return uniform_pairs(rng, len(clips), count)
        candidates = uniform_pairs(rng, len(clips), CANDIDATES * count)
        looked_at, pairs = np.unique(candidates, return_inverse=True)
        returns = self.fitter.clip_returns(reward, [clips[i] for i in looked_at])
        return looked_at[most_disputed(returns, pairs.reshape(candidates.shape), count)]

    def _answer(self, seed: int) -> None:
        """Let the teacher answer what is open; the chances follow from the seed alone."""
        before = self.store.counts(seed).labels
        answers: list[NewLabel] = []
        for number, query in enumerate(self.store.pending(seed), before):
            left, right = self.store.clips(query.id)
            rng = np.random.default_rng([seed, number, ANSWERS])
            answer = self.teacher.answer(left["reward"], right["reward"], rng)
            answers.append(NewLabel(query.id, answer, self.teacher.name, 0.0))
        self.store.add_labels(answers)

    def _learn(self, row: int, seed: int) -> None:
        """Take in the labels that came since the last time."""
        for pair in self.store.labelled(seed, after=self.newest_label[row]):
            clips = Clip(**pair.left), Clip(**pair.right)
            self.lessons[row].append(self.fitter.lesson(*clips, pair.answer))
            self.asked_at[row].append(pair.env_steps)
            self.newest_label[row] = pair.label

    def _draw_clips(self, after: Transition) -> None:
        """Draw what the first seed did before it was taught, and what it does now."""
        now = self._some_clips(np.random.default_rng(0), row_of(after, 0), 1)
        shown = [np.asarray(clip.obs) for clip in [*self.random_clips[0][:1], *now]]
        captions = ["before: a random policy", f"after {self.config.labels} labels"]
        if len(shown) == len(captions):
            write_whole(self.session.folder / CLIPS, clip_strip_png(shown, captions))

    def _encode(self) -> None:
        """Fit a seed's encoder anew whenever its labels have doubled.

        When that was follows from the labels alone, so that a resumed run has the same encoders.
        """
        for row, lessons in enumerate(self.lessons):
            labels = _last_doubling(self.asked_at[row])
            if labels != self.encoded_labels[row]:
                self.encoders[row] = encode_all(self.random_glimpses[row], lessons[:labels])
                self.encoded_labels[row] = labels

    def _mean_fit_metrics(self) -> dict[str, float]:
        """Return the reward model's metrics, averaged over the seeds."""
        names = self.fit_metrics[0].keys()
        return {
            name: float(np.mean([metrics[name] for metrics in self.fit_metrics])) for name in names
        }


def _last_doubling(asked_at: Sequence[int]) -> int:
    """Return how many labels there were when, round by round, they had last doubled; 0 if none."""
    labels = 0
    for env_steps in sorted(set(asked_at)):
        so_far = sum(at <= env_steps for at in asked_at)
        if so_far >= 2 * labels:
            labels = so_far
    return labels


def _fit_key(seed: int, env_steps: int) -> np.ndarray:
    key = jax.random.fold_in(jax.random.key(seed), env_steps + 1)
    return np.asarray(jax.random.key_data(key))


register("teach", resume_teach)
