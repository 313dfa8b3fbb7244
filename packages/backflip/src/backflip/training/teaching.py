"""The loop of a run of `teach`.

The first queries show clips of a random policy. Then each phase waits for answers, fits the reward
model to all labels, trains the algorithm on it, and makes queries about the last rollouts. Queries
and labels are saved in `labels.sqlite` before they are used. A killed run continues from its last
checkpoint and repeats no query.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from backflip.core.spec import conversions
from backflip.core.trees import row_of
from backflip.core.types import Transition
from backflip.drivers.driver import Learner, Phase
from backflip.drivers.learning import env_steps_after
from backflip.preferences.answer_source import Answers, AnswerSource, QueriedRun
from backflip.preferences.careless import careless_people
from backflip.preferences.clips import Clip, episode_start
from backflip.preferences.drawer import Drawer
from backflip.preferences.fresh_pairs import fresh_answers
from backflip.preferences.kept_labels import LabelHash
from backflip.preferences.labels import LabelStore
from backflip.preferences.program_source import NoTeacher
from backflip.rewards.interface import RewardModel
from backflip.training.build import Built, env_args_of
from backflip.training.demonstrations import Demonstrations, demonstrations_in_words
from backflip.training.exploring import Exploring
from backflip.training.finished import with_more
from backflip.training.fresh_checks import (
    FreshChecks,
    fresh_until,
    health_of_checks,
    metrics_of,
)
from backflip.training.initial_labels import (
    Start,
    from_elsewhere,
    import_initial_labels,
    initial_reward,
)
from backflip.training.label_pictures import write_label_pictures
from backflip.training.memory import report_replay_memory
from backflip.training.optimism import Optimism
from backflip.training.phase_programs import PhasePrograms
from backflip.training.policy import refuse_changed
from backflip.training.query_choice import Known
from backflip.training.query_maker import QueryMaker
from backflip.training.random_policy import RandomPolicy, watch_random_policy
from backflip.training.recorded_clips import recorded_clips, said_of
from backflip.training.restart import restarted
from backflip.training.result import Result
from backflip.training.reward_fits import RewardFits
from backflip.training.reward_measures import RewardMeasures, read_measures, summary_of
from backflip.training.reward_notes import RewardNotes, collapse_shown
from backflip.training.reward_paths import RewardPaths
from backflip.training.reward_picture import PICTURE as REWARD_PICTURE
from backflip.training.reward_picture import reward_picture
from backflip.training.session import Session
from backflip.training.teach_config import TeachConfig
from backflip.training.teach_plan import teach_plan_of
from backflip.training.teaching_picture import DURING_SHARE, draw_clips, keep_during
from backflip.training.unlabelled import Pairs, Unlabelled
from backflip.training.who_teaches import who_answers, who_taught
from runshelf.errors import UserFacingError
from runshelf.store.writing import replace_file

# Most env steps of each seed and record that get a picture, where the environment draws itself: to
# choose clips from if the teacher sees them, else for the picture at the end of teaching.
PICTURES_TO_CHOOSE, PICTURES_TO_KEEP = 1_024, 128


class Taught(NamedTuple):
    """The state in a checkpoint of `teach`."""

    learners: Learner
    reward: Any
    unlabelled: Pairs = ()


@dataclass
class TeachRun:
    """The loop of one session of `teach`."""

    session: Session
    built: Built
    config: TeachConfig
    store: LabelStore
    model: RewardModel
    source: AnswerSource

    def __post_init__(self) -> None:
        self.driver = self.built.driver
        self.seeds = list(self.session.run.seeds)
        spec = self.driver.spec
        self.random_policy = RandomPolicy(None, [])
        self.random_clips: list[list[Clip]] = []  # that the first queries show, of each seed
        self.not_drawn = False
        self.said_careless: set[str] = set()
        self.label_hash = LabelHash(self.store.file)
        self.start = Start(**self.session.run.config.get("start", {}))
        self.plan = teach_plan_of(self.session.run, self.built, self.config, self.start.labels)
        self.demonstrations = Demonstrations(self.session.run, spec, self.config, self.store)
        fresh = fresh_until(self.store, self.seeds, self.plan.before.env_steps)
        fresh += sum(self.plan.due.fresh)
        alarms = self.session.run.alarms()
        self.fresh_checks = FreshChecks(self.store, self.seeds, fresh, alarms)
        name, say = self.config.reward_model, self.session.reporter.say
        self.reward_notes = RewardNotes(name, self.model, self.seeds, say)
        self.paths = RewardPaths(self.model, self.config.clip_length)
        self.optimism = Optimism(
            self.model, self.config.optimism, self.plan.due.others, len(self.seeds)
        )
        self.exploring = Exploring(
            self.driver,
            self.optimism.reward,
            self.seeds,
            before_labels=self.plan.pretrains and self.plan.asks,
        )
        env, env_args = self.session.run.manifest["env"], self.session.run.config["env_args"]
        self.drawer = Drawer(self.session.folder, env, env_args, spec)
        if not self.plan.asks:  # people are not needed
            self.source = NoTeacher()
        self.unlabelled = Unlabelled(self.config, spec, self.seeds)
        self.fits = RewardFits(self.model, self.store, self.seeds, self.unlabelled)
        self.answers: Answers
        self.query_maker = QueryMaker(
            spec.id,
            self.config,
            self.model,
            self.store,
            self.drawer if self.source.needs_films else None,
            lambda: self.answers.enough(),
            shows_clips=self.source.shows_clips,
            say=self.session.reporter.say,
        )
        most = PICTURES_TO_CHOOSE if self.source.shows_clips else PICTURES_TO_KEEP
        self.pictures = max(most, 4 * self.config.clip_length)
        self.programs = PhasePrograms(
            self.driver, self.config, self.optimism.reward, self.exploring, self.pictures
        )

    def _queried_run(self) -> QueriedRun:
        """Return the run for the answer source."""
        session = self.session
        return QueriedRun(
            folder=session.folder,
            env=session.run.manifest["env"],
            seeds=self.seeds,
            store=self.store,
            drawer=self.drawer,
            phases=len(self.plan.phases),
            due_after=self._due_after,
            budget=self.config.labels * len(self.seeds),
            say=session.reporter.say,
            wait=session.reporter.wait,
            book_time=session.clock.book,
        )

    def _due_after(self, number: int) -> int:
        """Return the queries of all seeds after `number` phases."""
        return self.plan.due_after(number) * len(self.seeds)

    def carry_out(self) -> Result:
        """Complete the run and return its result."""
        algorithm, env = self.driver.algorithm.name, self.session.run.manifest["env"]
        self.session.reporter.say(f"{algorithm} learns `{env}`; {self._who_answers()}")
        demonstrated = demonstrations_in_words(self.session.run, self.config, self.plan.due.every)
        notes = said_of(self.session.run), from_elsewhere(self.start, self.session.run)
        for line in [*conversions(self.driver.spec), *notes, demonstrated]:
            if line:
                self.session.reporter.say(line)
        with self.source.open(self._queried_run()) as self.answers:
            return self._carry_out()

    def _carry_out(self) -> Result:
        algorithm = self.driver.algorithm
        learners, reward, done = self._begin()
        self.answers.set_status("setting up", phase=done, env_steps=self.plan.env_steps(done))
        self.programs.prepare(self.plan.phases)
        self.session.clock.book("setup")
        for number in range(done, len(self.plan.phases)):
            if number == 0 and not self.plan.before.updates:
                self._make_queries(None, reward, 0)
                learners = self._warm_up(learners)
            if number == done:
                self._compile_ahead(learners, reward)
                self.session.clock.book("setup")
            explored = self.exploring.now
            reward = self._fit_reward(number, reward)
            learners = self.exploring.restarted(learners, explored)
            if number == self.plan.restart_phase:
                learners = restarted(
                    algorithm,
                    self.seeds,
                    learners,
                    keeps=self.config.restart_keeps,
                    schedules=self.config.restart_schedules,
                )
            learners = self._train(number, learners, reward)
        return self._finish(learners)

    def _finish(self, learners: Learner) -> Result:
        """Evaluate the final policies; return the result."""
        self.answers.set_status("evaluating", phase=len(self.plan.phases))
        episodes = self.session.run.config["evaluation_episodes"]
        evaluation = self.driver.evaluate(
            learners,
            self.seeds,
            episodes=episodes,
            on_progress=self.session.reporter.evaluating(
                episodes, self.driver.spec.longest_episode
            ),
        )
        self._say_if_nothing_is_preferred()
        measures = read_measures(self.session.folder)
        result = self.session.finish(
            evaluation,
            updates=self.plan.before.updates + sum(self.plan.phases),
            env_steps=self.plan.env_steps(len(self.plan.phases)),
            labels=self.store.counts().labels // len(self.seeds),
            teacher=self._teacher(),
            reward_alarm=self.fresh_checks.result(),
            careless=careless_people(self.store) or None,
            reward_measures=None if measures is None else summary_of(measures),
        )
        result = with_more(result, self.session.run)
        self.answers.set_status("finished", result=result.summary(), more=result.more)
        return result

    def _say_if_nothing_is_preferred(self) -> None:
        """Say that nothing was learned if there is no answer, or every one is `skip` or `tie`."""
        counts = self.store.counts()
        if self.plan.asks and not counts.labels:
            self.session.reporter.say("there are no answers: no reward was learned")
        elif counts.labels and counts.labels == counts.skip + counts.tie:
            kinds = [name for name in ("skip", "tie") if getattr(counts, name)]
            what = " or ".join(f"`{name}`" for name in kinds)
            said = f"all {counts.labels} answers are {what}: no reward was learned from them"
            self.session.reporter.say(said)

    def _who_answers(self) -> str:
        if not self.plan.asks:
            return self._teacher()
        return who_answers(self.source.teacher, self.config, self.plan.queries)

    def _teacher(self) -> str:
        """Return who teaches, for the user."""
        if self.plan.asks:
            return self.source.teacher
        return who_taught(self.session.run, self.start, self.plan.before)

    def _begin(self) -> tuple[Learner, Any, int]:
        """Return learners, reward parameters and the number of finished phases."""
        spec = self.driver.spec
        reward = self.model.initial(len(self.seeds))
        blank = Taught(self.driver.start(self.seeds), reward, self.unlabelled.pairs)
        refuse_changed(self.session.run, spec)
        restored = self.session.restore(blank)
        learners, reward, self.unlabelled.pairs = restored.state
        if not restored.begun:
            import_initial_labels(self.start, self.store, self.seeds)
            reward = initial_reward(self.start, self.model, spec.id, len(self.seeds))
        for number in range(restored.phases + restored.begun):
            self._plan_round(number, 0, max(self._asked(seed, number) for seed in self.seeds))
        self.fits.restore(restored.extra)
        self.exploring.now = restored.extra.get("explores", self.exploring.now)
        self._watch_random_policy()
        return learners, reward, restored.phases

    def _warm_up(self, learners: Learner) -> Learner:
        """Return the learners; random env steps fill the replay of an off-policy algorithm."""
        algorithm = self.driver.algorithm
        report_replay_memory(self.driver, len(self.seeds), self.session.reporter.say)
        report = self.session.reporter.acting_at_random(
            "warming up", env_steps_after(algorithm, 0), algorithm.num_envs
        )
        return self.driver.fill_replay(learners, report)

    def _train(self, number: int, learners: Learner, reward: Any) -> Learner:
        """Train for phase `number` (from 0), make queries and save; return the learners."""
        self.answers.set_status("learning", phase=number, env_steps=self.plan.env_steps(number))
        learners, measured = self._learn(number, learners, reward)
        checked = self._check_reward()
        record = jax.tree.map(np.asarray, measured.record)
        health = self.session.log_phase(
            self.built,
            measured,
            learners,
            done=self.plan.updates_before(number),
            updates=self.plan.phases[number],
            learns_own_reward=False,
            extra=self.fits.mean_metrics() | checked | self.paths.metrics(reward, record),
        )
        self._make_queries(record, reward, number + 1)
        self.unlabelled.follow(record, self.plan.env_steps(number + 1))
        self._show(number, record, reward)
        self._save(number, learners, reward)
        self._report_phase(number, health, health_of_checks(checked))
        return learners

    def _learn(self, number: int, learners: Learner, reward: Any) -> tuple[Learner, Phase]:
        """Return the learners after phase `number` and what it measured and recorded."""
        done, updates = self.plan.updates_before(number), self.plan.phases[number]
        report = self.session.reporter.learning(
            self.driver.algorithm, number, len(self.plan.phases), done=done, updates=updates
        )
        keep = self.session.policy_keeper(self.built, done=done)
        rewarded = self.optimism.parameters(reward, number)
        return self.programs.run(updates, learners, rewarded, report, keep)

    def _show(self, number: int, record: Transition, reward: Any) -> None:
        """Keep a clip during teaching; after the last phase, draw clips and measure the reward."""
        if number + 1 == len(self.plan.phases):
            self._draw_clips(row_of(record, 0))
            self._measure_reward(record, reward)
        elif number == len(self.plan.phases) // DURING_SHARE:
            keep_during(self.session.folder, row_of(record, 0), self.config.clip_length)

    def _save(self, number: int, learners: Learner, reward: Any) -> None:
        """Save a checkpoint after phase `number`, with the labels that it counts."""
        kept = self.label_hash.first()
        self.store.file.merge_log()  # the file alone then has all that the checkpoint counts
        self.session.save(
            self.built,
            Taught(learners, reward, self.unlabelled.pairs),
            learners,
            phases=number + 1,
            extra=self.fits.saved | {"explores": self.exploring.now},
            labels=kept,
        )

    def _report_phase(
        self, number: int, health: Mapping[str, float], checked: Mapping[str, float]
    ) -> None:
        """Report the progress after phase `number`, with the health of learning and teaching."""
        labels = self.store.counts().labels / len(self.seeds)
        shown = {**health, "labels": labels, **checked}
        shown |= self._say_who_is_careless() | collapse_shown(self.fits.metrics)
        later_queries = sum(self.plan.due.every[number + 2 :]) * len(self.seeds)
        self.session.reporter.phase_done(
            number + 1,
            len(self.plan.phases),
            self.plan.env_steps(number + 1),
            shown,
            self.answers.remaining_seconds(later_queries),
        )

    def _check_reward(self) -> dict[str, float]:
        """Return the metrics of the reward alarm; announce it when it is raised."""
        if not self.fresh_checks.planned:
            return {}
        reporter, record = self.session.reporter, self.session.writer.record_alarm
        return metrics_of(self.fresh_checks.announce(reporter.say, record))

    def _say_who_is_careless(self) -> dict[str, float]:
        """Say once who seems to answer carelessly; return what the health line shows."""
        found = careless_people(self.store)
        for who, words in found.items():
            if who not in self.said_careless:
                self.said_careless.add(who)
                said = f"CARELESS ANSWERS of `{who}`: {words}"
                self.session.writer.record_alarm(said)
                self.session.reporter.say(said)
        return {"careless_people": float(len(found))} if found else {}

    def _compile_ahead(self, learners: Learner, reward: Any) -> None:
        """Compile all programs while people watch the first clips."""
        if not self.source.needs_films or not self.driver.runs_compiled:
            return
        self.answers.set_status("setting up")
        self.programs.compile_ahead(learners, self.optimism.parameters(reward, 0))
        self.fits.compile_ahead(reward)

    def _watch_random_policy(self) -> None:
        """Let the reward model see the random policy; keep the clips of the first queries."""
        self.random_policy = watch_random_policy(
            self.driver,
            self.model,
            self.config,
            self.seeds,
            self.session.reporter,
            pictures=self.pictures,
            shown=self.source.shows_clips,
        )
        recorded = recorded_clips(self.session.run, self.driver.spec, self.config.clip_length)
        clips = self.random_policy.clips
        self.random_clips = [recorded or of_seed.usual for of_seed in clips]
        if not recorded:
            self.query_maker.random_policy = dict(zip(self.seeds, clips, strict=True))
        self._say_why_not_drawn()

    def _say_why_not_drawn(self) -> None:
        """Say once that the environment's own `render()` gives no pictures, and why."""
        why = self.driver.drawing_problem
        if why and not self.not_drawn:
            env = self.driver.spec.id
            self.session.reporter.say(f"`{env}` is shown as it is observed: {why}")
        self.not_drawn = bool(why)

    def _make_queries(self, record: Transition | None, reward: Any, number: int) -> None:
        """Make the queries of all seeds after `number` phases; there are none after the last."""
        self._say_why_not_drawn()
        self._ask_sooner(number)
        count = self.plan.due_after(number)
        env_steps = self.plan.env_steps(number)
        asks = bool(count) and not self.answers.enough()
        # also without queries: the page counts phases to know which answers training waits for
        doing = "drawing" if asks or not count else "waiting"
        self.answers.set_status(doing, phase=number, env_steps=env_steps)
        if asks:
            fresh = self.plan.fresh_after(number)
            for row, seed in enumerate(self.seeds):
                seen = None if record is None else row_of(record, row)
                before = self.plan.env_steps(number - 1) if number else 0
                fitted_to = self.fits.comparisons_of(seed, before) if number else ()
                known = Known(row, row_of(reward, row), fitted_to, self.fits.tie_width(row))
                self.query_maker.add_queries(
                    seed, self.random_clips[row], seen, known, count, env_steps, fresh
                )
                random = self.random_policy.clips[row].usual
                self.demonstrations.add_labels(
                    self.plan.due.every, number, seed, random, seen, env_steps
                )
        if self.source.needs_films and record is not None:
            episode = self.drawer.latest(row_of(record, 0))
            self.answers.set_status("drawing", episode=episode, episode_env_steps=env_steps)

    def _ask_sooner(self, number: int) -> None:
        """Move later queries to the round after `number` phases if people would wait for them."""
        wanted = -(-self.answers.queries_wanted() // len(self.seeds))
        self._plan_round(number, wanted, max(self._begun(seed, number) for seed in self.seeds))

    def _plan_round(self, number: int, wanted: int, asked: int) -> None:
        self.plan = self.plan.sooner(number, wanted, asked, self.config.queries_at_once)
        self.optimism.follow(self.plan.due.others)

    def _asked(self, seed: int, number: int) -> int:
        """Return the queries that were made after `number` phases."""
        return self.store.count_queries(seed, self.plan.env_steps(number))

    def _begun(self, seed: int, number: int) -> int:
        """Return the queries of a round of which a stopped process made some.

        Fresh pairs are made last. If there are more queries than planned, those that are missing
        still belong to the round.
        """
        asked, planned = self._asked(seed, number), self.plan.fresh_after(number)
        if asked <= self.plan.due_after(number):
            return asked
        env_steps = self.plan.env_steps(number)
        fresh = sum(one.env_steps == env_steps for one in fresh_answers(self.store, seed))
        return asked + max(0, len(planned) - fresh)

    def _fit_reward(self, number: int, reward: Any) -> Any:
        """Wait for answers; return the reward parameters, fitted again if there are new labels.

        If a process is killed between making queries and saving, the store has queries, and maybe
        answers, of a later round. They are used when the resumed run reaches that round.
        """
        last = number + 1 == len(self.plan.phases)  # answers after this are never used
        self.answers.wait_for_labels(0 if last else self._due_after(number))
        self.answers.set_status("learning", phase=number)
        env_steps = self.plan.env_steps(number)
        if not self.fits.has_new_labels(env_steps):
            return reward
        fitted = self.fits.fit(reward, env_steps)
        self.exploring.follow(self.fits.comparisons)
        self.reward_notes.announce(fitted, self.fits.metrics)
        return fitted

    def _draw_clips(self, after: Transition) -> None:
        """Draw clips of the first seed before, during and after teaching."""
        before, now = self.random_policy.first, episode_start(after, self.config.clip_length)
        labels = self.store.counts().labels // len(self.seeds)  # people may stop before the budget
        if before is not None and now is not None:
            draw_clips(self.session.folder, self.drawer, before, now, labels)

    def _measure_reward(self, record: Transition, reward: Any) -> None:
        """Write the measures of the learned reward and their picture into the run's folder."""
        run, folder = self.session.run, self.session.folder
        env, length = run.manifest["env"], self.config.clip_length
        measures = RewardMeasures(env, env_args_of(run), self.model, self.store, length)
        try:
            about = self.reward_notes.record(reward, self.fits.metrics)
            found = measures.write(
                folder, self.seeds, record, reward, self.random_clips, about, self.fits.metrics
            )
        except UserFacingError as error:  # the policy is trained, and must not be lost
            self.session.reporter.say(f"the learned reward is not measured: {error}")
            return
        if found is not None:
            picture = reward_picture(found, summary_of(found))
            replace_file(folder, REWARD_PICTURE, picture.encode())
            write_label_pictures(folder, found, self.store, self.drawer)
