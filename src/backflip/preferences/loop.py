"""`teach`: learn what a teacher wants from comparisons of clips.

First questions are asked about clips of a random policy. Then, phase by phase: wait for answers
(a simulated teacher's come at once), fit the reward anew, train on it, ask about the last
rollouts. Questions and labels are in `labels.sqlite` of the run's folder before anything is learnt
from them; a run killed at any moment goes on from its last checkpoint and asks nothing twice.
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

from backflip.algorithms.drivers.driver import Learner
from backflip.algorithms.drivers.native import NativeDriver
from backflip.archive.checkpoint import write_whole
from backflip.archive.pictures import clip_strip_png
from backflip.archive.run import NOTHING_ASKED, Asked, Run
from backflip.core.errors import UsageError, did_you_mean
from backflip.core.trees import row_of
from backflip.core.types import Transition
from backflip.preferences.asking import Asker, some_clips
from backflip.preferences.clips import Clip
from backflip.preferences.defaults import TeachConfig, teach_settings
from backflip.preferences.label_file import LABELS
from backflip.preferences.labels import LabelStore
from backflip.preferences.learned_reward import (
    LEFT_PREFERRED,
    Glimpses,
    Lesson,
    RewardFitter,
    RewardParameters,
    encode_all,
    learned_reward,
    untaught,
)
from backflip.preferences.people.answering import Answering, ByPeople, DeskSettings, Simulated
from backflip.preferences.people.drawing import Drawer
from backflip.preferences.schedule import label_schedule
from backflip.preferences.starting import (
    Start,
    bring_labels,
    bring_reward,
    check_labels,
    find_start,
)
from backflip.preferences.teachers import People, SimulatedTeacher, parse_teacher
from backflip.training import runtime
from backflip.training.build import Built, build, rebuild, spec_of
from backflip.training.memory import check_memory
from backflip.training.offers import offer_of
from backflip.training.planning import evaluation_episodes, plan
from backflip.training.policy import refuse_changed
from backflip.training.progress import Progress, Report
from backflip.training.result import Result
from backflip.training.session import Session, begin, go_on, seeds_from

USUAL_LABELS = 100  # of each seed, unless another number is asked for
PEOPLES_LABELS = 150  # people err: with 5 % of answers wrong, these are worth 100 right ones
CLIPS = "clips.png"
RANDOM_CLIPS = 64  # of the random policy, kept for each seed


class Taught(NamedTuple):
    """What a checkpoint of teaching holds."""

    learners: Learner
    reward: RewardParameters


def teach(
    env: str = "dot",
    *,
    algorithm: str = "ppo",
    teacher: str = "oracle",
    labels: int | None = None,
    labels_from: str | None = None,
    reward_from: str | None = None,
    seeds: int = 1,
    first_seed: int = 0,
    env_steps: int | None = None,
    env_args: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    home: Path | str | None = None,
    desk: DeskSettings | None = None,
    argv: Sequence[str] | None = None,
    asked: Asked = NOTHING_ASKED,
    report: Report | None = None,
) -> Result:
    """Teach a policy what a teacher prefers; the true reward is for teacher and evaluation only.

    Args:
        env: an id of ours, a Gymnasium id, or `module:Class`.
        algorithm: what learns from the learned reward.
        teacher: `human` (a page), `terminal`, `oracle`, or `noisy:mistake=0.1,...` (see
            `preferences.teachers`).
        labels: the budget of each seed, what it starts with included; if None, as many as it
            starts with, else 100, or 150 of people.
        labels_from: a run, or a file that `backflip labels export` wrote: every seed starts with
            all labels of it.
        reward_from: a run of `teach`: learn from its reward model, and ask nothing.
        seeds: how many, taught side by side, each with labels of its own.
        first_seed: the first of them.
        env_steps: of each seed; the environment's default if None.
        env_args: for the environment's constructor.
        settings: of the algorithm or of `TeachConfig`, by name, over the defaults.
        home: the folder whose `runs/` keeps the run; BACKFLIP_HOME or the current one if None.
        desk: how people come to answer, where the teacher is `human` or `terminal`.
        argv: the command line to record; this process's by default.
        asked: what you say of the run: its name, group, question and tags.
        report: told of progress after each phase, and outside JAX every few seconds of one.

    Raises:
        UsageError: something of it does not exist or does not fit; nothing was begun.
        EnvironmentFailed: the environment did not keep its word; all until then is saved.
        Interrupted: Ctrl-C; the message says how to go on.
    """
    began = time.perf_counter()
    numbers = seeds_from(first_seed, seeds)
    who = parse_teacher(teacher)
    desk = desk or DeskSettings()
    report = report or (_say_notes if who == People("human") else None)
    place = runtime.place_of(home)
    start = find_start(place.home, labels_from, reward_from)
    budget = _budget(labels, start, who)
    runtime.prepare()
    config, built = _resolve(algorithm, env, env_args or {}, settings or {}, env_steps, budget)
    check_labels(start, built.driver.spec, config.clip_length)
    check_memory(built.driver, built.config, seeds)
    session = begin(
        place,
        command="teach",
        env=env,
        algorithm=algorithm,
        config={
            "env_args": dict(env_args or {}),
            "settings": dataclasses.asdict(built.config),
            "teaching": dataclasses.asdict(config),
            "teacher": who.name,
            "overlap": desk.overlap,
            "start": start._asdict(),
            "evaluation_episodes": evaluation_episodes(built.driver),
        },
        seeds=numbers,
        argv=sys.argv if argv is None else argv,
        asked=asked,
        report=report,
        began=began,
    )
    with session, LabelStore.open(session.folder / LABELS) as store:
        return _Teaching(session, built, config, store, desk).carry_out()


def resume_teach(
    run: Run, report: Report | None = None, desk: DeskSettings | None = None
) -> Result:
    """Carry on with a run of `teach`."""
    began = time.perf_counter()
    runtime.prepare()
    with go_on(run, report, began) as session:
        built, saved = rebuild(run), run.config
        config = TeachConfig(**saved["teaching"])
        desk = (desk or DeskSettings())._replace(overlap=saved.get("overlap", 0.0))
        with LabelStore.open(session.folder / LABELS) as store:
            return _Teaching(session, built, config, store, desk).carry_out()


def _say_notes(progress: Progress) -> None:
    """Tell whoever called from Python where the page is."""
    if progress.note:
        sys.stderr.write(f"backflip: {progress.note}\n")


def _budget(labels: int | None, start: Start, who: SimulatedTeacher | People) -> int:
    """Return the labels that each seed is to have."""
    if start.reward_from:
        if labels is not None:
            raise UsageError("with --reward-from nothing is asked: leave --labels out")
        return 0
    if labels is not None and labels < 2:
        raise UsageError(f"`labels` must be at least 2, got {labels}; try --labels 100")
    usual = PEOPLES_LABELS if isinstance(who, People) else USUAL_LABELS
    return max(labels if labels is not None else start.labels or usual, start.labels)


def _resolve(
    algorithm: str,
    env: str,
    env_args: Mapping[str, Any],
    settings: Mapping[str, Any],
    env_steps: int | None,
    labels: int,
) -> tuple[TeachConfig, Built]:
    """Return both configurations, the defaults for the environment filled in."""
    if offer_of(algorithm).name != "ppo":
        raise UsageError(f"`teach` learns with ppo, got the algorithm `{algorithm}`")
    own = {field.name for field in dataclasses.fields(TeachConfig)}
    learners = {field.name for field in dataclasses.fields(offer_of(algorithm).config)}
    unknown = [name for name in settings if name not in own | learners]
    if unknown:
        named = "; ".join(f"`{name}`{did_you_mean(name, own | learners)}" for name in unknown)
        raise UsageError(f"unknown settings {named} (known: {', '.join(sorted(own | learners))})")
    if "labels" in settings:
        raise UsageError("settings: how many `labels` is said by --labels, in Python by labels=")
    chosen = {name: value for name, value in settings.items() if name not in own}
    spec = spec_of(env, env_args)
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
    store: LabelStore
    desk: DeskSettings

    def __post_init__(self) -> None:
        self.driver = self.built.driver
        self.seeds = list(self.session.run.seeds)
        spec = self.driver.spec
        self.fitter = RewardFitter(spec, self.config.labels)
        self.lessons: list[list[Lesson]] = [[] for _ in self.seeds]
        self.glimpses: dict[int, tuple[Glimpses, Glimpses]] = {}  # of clips, by query
        self.asked_at: list[list[int]] = [[] for _ in self.seeds]  # env steps, of each lesson
        self.encoders = [untaught(spec, 1).encoder for _ in self.seeds]
        self.encoded_labels = [-1] * len(self.seeds)
        self.random_glimpses: list[tuple[np.ndarray, np.ndarray]] = []
        self.random_clips: list[list[Clip]] = []
        self.fit_metrics: list[dict[str, float]] = [{} for _ in self.seeds]
        self.newest_learnt = 0  # the newest record of the label store that was learnt from
        self.phases = plan(self.built.config.updates, self.config.phases)
        self.start = Start(**self.session.run.config.get("start", {}))
        self.due = label_schedule(self.config.labels - self.start.labels, len(self.phases))
        self.drawer: Drawer | None = None
        self.answering = self._answering()
        self.asker = Asker(
            spec.id, self.config, self.fitter, self.store, self.drawer, self.answering.enough
        )

    def _answering(self) -> Answering:
        """Return where answers come from; who answers is the run's, not this sitting's."""
        run, spec = self.session.run, self.driver.spec
        who = parse_teacher(run.config["teacher"])
        if not isinstance(who, People):
            return Simulated(who, self.store, self.seeds)
        if not any(self.due):
            return Simulated(SimulatedTeacher(), self.store, self.seeds)
        env, env_args = run.manifest["env"], run.config["env_args"]
        self.drawer = Drawer(self.session.folder, env, env_args, spec)
        facts = {
            "env": env,
            "phases": len(self.phases),
            "budget": self.config.labels * len(self.seeds),
        }
        restore = partial(self.drawer.restore, self.store)
        return ByPeople(who, self.session, self.store, self.desk, restore, facts)

    def carry_out(self) -> Result:
        """Do what is left of the run; return its result."""
        try:
            with self.answering.open():
                return self._carry_out()
        finally:
            self.driver.close()

    def _carry_out(self) -> Result:
        learners, reward, done = self._begin()
        functions = {updates: self._function(updates) for updates in set(self.phases)}
        self.session.clock.spent("setup")
        for number in range(done, len(self.phases)):
            if number == 0:
                self._ask(None, reward, 0)
            if number == done:
                self._compile_ahead(functions, learners, reward)
                self.session.clock.spent("setup")
            reward = self._learn_from_answers(number, reward)
            learners = self._train(number, functions, learners, reward)
        self.answering.tell("evaluating", phase=len(self.phases))
        episodes = self.session.run.config["evaluation_episodes"]
        evaluation = self.driver.evaluate(
            learners, self.seeds, episodes=episodes, tell=self.session.teller.evaluating(episodes)
        )
        env_steps = self._env_steps(len(self.phases))
        labels = self.store.counts().labels // len(self.seeds)
        result = self.session.finish(evaluation, env_steps=env_steps, labels=labels)
        self.answering.tell("finished", result=result.in_words())
        return result

    def _begin(self) -> tuple[Learner, RewardParameters, int]:
        """Return what the run goes on from, and how many phases are done."""
        spec = self.driver.spec
        blank = Taught(self.driver.start(self.seeds), untaught(spec, len(self.seeds)))
        refuse_changed(self.session.run, spec)
        restored = self.session.restore(blank)
        learners, reward = restored.state
        if restored.phases == 0:
            bring_labels(self.start, self.store, self.seeds)
            reward = bring_reward(self.start, spec, len(self.seeds))
        self.fit_metrics = restored.extra.get("fit_metrics", self.fit_metrics)
        self.newest_learnt = restored.extra.get("newest_learnt", self.newest_learnt)
        self._watch_random_policy()
        return learners, reward, restored.phases

    def _train(
        self,
        number: int,
        functions: Mapping[int, Any],
        learners: Learner,
        reward: RewardParameters,
    ) -> Learner:
        """Do phase `number`, counted from 0, ask about it, save; return the learners after it."""
        env_steps = self._env_steps(number + 1)
        self.answering.tell("learning", phase=number, env_steps=self._env_steps(number))
        done, updates = sum(self.phases[:number]), self.phases[number]
        tell = self.session.teller.learning(
            self.driver.algorithm, number, len(self.phases), done=done, updates=updates
        )
        learners, measured = functions[updates](learners, reward, tell)
        health = self.session.log_phase(
            self.built,
            measured,
            learners,
            done=done,
            updates=updates,
            learns_own_reward=False,
            extra=self._mean_fit_metrics(),
        )
        record = jax.tree.map(np.asarray, measured.record)
        self._ask(record, reward, number + 1)
        if number + 1 == len(self.phases):
            self._draw_clips(record)
        self.session.save(
            self.built,
            Taught(learners, reward),
            learners,
            phases=number + 1,
            extra={"fit_metrics": self.fit_metrics, "newest_learnt": self.newest_learnt},
        )
        shown = dict(health) | {"labels": float(self.store.counts().labels / len(self.seeds))}
        to_ask = sum(self.due[number + 2 :]) * len(self.seeds)
        self.session.teller.phase_done(
            number + 1,
            len(self.phases),
            env_steps,
            shown,
            self.answering.seconds_to_go(to_ask),
        )
        return learners

    def _compile_ahead(
        self, functions: Mapping[int, Any], learners: Learner, reward: RewardParameters
    ) -> None:
        """Compile everything while people look at the first clips; what comes of it is dropped."""
        if self.drawer is None or not isinstance(self.driver, NativeDriver):
            return
        self.answering.tell("setting up")
        for function in functions.values():
            jax.block_until_ready(function(jax.tree.map(np.array, learners), reward))
        keys = np.stack([_fit_key(seed, 0) for seed in self.seeds])
        self.fitter.refit([[] for _ in self.seeds], self.encoders, keys)

    def _env_steps(self, phases: int) -> int:
        """Return the env steps that each seed has taken after so many phases."""
        config = self.built.config
        return sum(self.phases[:phases]) * config.num_envs * config.rollout_length

    def _watch_random_policy(self) -> None:
        """Keep of what random policies live through the glimpses, and some clips."""
        config, envs = self.config, self.config.random_envs
        for seed in self.seeds:  # one at a time: images are hundreds of MiB
            what, env_steps = f"watching random actions of seed {seed}", config.random_env_steps
            records = self.driver.random_record(
                [seed],
                envs=envs,
                env_steps=env_steps,
                repeat=config.repeat,
                tell=self.session.teller.acting_at_random(what, envs * env_steps, envs),
            )
            record = row_of(records, 0)
            rng = np.random.default_rng([seed, 0])
            self.random_glimpses.append(self.fitter.look_around(record))
            self.random_clips.append(some_clips(rng, record, config.clip_length, RANDOM_CLIPS))

    def _function(self, updates: int) -> Any:
        return self.driver.phase(
            updates,
            reward=partial(learned_reward, self.driver.spec),
            record_rollouts=min(self.config.clip_rollouts, updates),
            record_envs=self.config.clip_envs,
        )

    def _ask(self, record: Transition | None, reward: RewardParameters, number: int) -> None:
        """Ask every seed's questions of round `number`; there are none after the last phase."""
        count = self.due[number] if number < len(self.due) else 0
        env_steps = self._env_steps(number)
        if count and not self.answering.enough():
            self.answering.tell("drawing", phase=number, env_steps=env_steps)
            for row, seed in enumerate(self.seeds):
                seen = None if record is None else row_of(record, row)
                own = row_of(reward, row)
                self.asker.ask(seed, self.random_clips[row], seen, own, count, env_steps)
        if self.drawer is not None and record is not None:
            episode = self.drawer.latest(row_of(record, 0))
            self.answering.tell("drawing", episode=episode, episode_env_steps=env_steps)

    def _learn_from_answers(self, number: int, reward: RewardParameters) -> RewardParameters:
        """Wait for answers; return the reward fitted to all labels, if there are new ones.

        A process killed after it asked the next round and before it saved leaves questions, and
        perhaps answers, of a round that has not begun again: they are learnt from when it has.
        """
        last = number + 1 == len(self.phases)  # what is not answered by then is never learnt from
        self.answering.attend(0 if last else self.due[number] * len(self.seeds))
        self.answering.tell("learning", phase=number)
        newest = self.store.newest_record(self._env_steps(number))
        if newest == self.newest_learnt:
            return reward
        self.newest_learnt = newest
        for row, seed in enumerate(self.seeds):
            self._take_lessons(row, seed, self._env_steps(number))
        self._encode()
        keys = np.stack([_fit_key(seed, self._env_steps(number)) for seed in self.seeds])
        fitted = self.fitter.refit(self.lessons, self.encoders, keys)
        self.fit_metrics = fitted.metrics
        return fitted.parameters

    def _take_lessons(self, row: int, seed: int, env_steps: int) -> None:
        """Take in the labels in force; one that was taken in before may have been undone."""
        answers = self.store.in_force(seed, env_steps)
        for query in (answer.query for answer in answers if answer.query not in self.glimpses):
            left, right = (self.fitter.look(Clip(**clip)) for clip in self.store.clips(query))
            self.glimpses[query] = left, right
        self.lessons[row] = [
            Lesson(*self.glimpses[answer.query], LEFT_PREFERRED[answer.answer])
            for answer in answers
        ]
        self.asked_at[row] = [answer.env_steps for answer in answers]

    def _draw_clips(self, after: Transition) -> None:
        """Draw what the first seed did before it was taught, and what it does now."""
        length = self.config.clip_length
        now = some_clips(np.random.default_rng(0), row_of(after, 0), length, 1)
        shown = [np.asarray(clip.obs) for clip in [*self.random_clips[0][:1], *now]]
        labels = self.store.counts().labels // len(self.seeds)  # people may have said: enough
        captions = ["before: a random policy", f"after {labels} labels"]
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
