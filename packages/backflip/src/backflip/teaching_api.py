"""`teach`, for Python programs and the command line.

This module makes the answer source for every kind of teacher. The training loop knows only its
Protocol.
"""

import dataclasses
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from backflip.core.settings import refuse_names
from backflip.inspect.policy_film import film_of_policy
from backflip.labelling.inherited_labels import inherit_labels, inherited_counts
from backflip.labelling.people_source import WHERE, LabellingSettings, PeopleSource
from backflip.preferences.answer_source import AnswerSource
from backflip.preferences.kept_labels import refuse_lost_labels
from backflip.preferences.label_file import LABELS
from backflip.preferences.labels import LabelStore
from backflip.preferences.program_source import NoTeacher, ProgramSource
from backflip.preferences.teachers import parse_teacher
from backflip.rewards.interface import RewardModel
from backflip.training import runtime
from backflip.training.arguments import refuse_other_kinds
from backflip.training.build import Built, rebuild
from backflip.training.continuation import (
    build_child,
    check_fits,
    found_run,
    inherit_checkpoint,
    open_parent,
    place_of_child,
)
from backflip.training.finished import result_of
from backflip.training.invocation import invoked
from backflip.training.memory import check_memory
from backflip.training.named_code import refuse_code_of
from backflip.training.parents import CONTINUES
from backflip.training.planning import evaluation_episodes
from backflip.training.progress import Progress, Report
from backflip.training.queries.given_clips import (
    GivenClips,
    clip_sources,
    has_demonstrations,
    inherit_given_clips,
)
from backflip.training.queries.initial_labels import check_labels, find_start, with_reward_model
from backflip.training.queries.unlabelled import no_pairs
from backflip.training.result import Result
from backflip.training.session import (
    Session,
    begin_session,
    closed_on_error,
    resume_session,
    seeds_from,
)
from backflip.training.teaching.assembly import carry_out_teaching
from backflip.training.teaching.checkpoint import Taught
from backflip.training.teaching.config import TeachConfig, saved_teaching
from backflip.training.teaching.inputs import TeachInputs
from backflip.training.teaching.more import asks, child_config, more_budget
from backflip.training.teaching.setup import (
    budget_of,
    env_steps_of_one_rollout,
    resolve_teaching,
    reward_model_of,
)
from runshelf.errors import UsageError, shown
from runshelf.store.run import NO_INFO, Run, RunInfo
from runshelf.terminal_text import put


def teach(
    env: str = "dot",
    *,
    algorithm: str = "ppo",
    teacher: str | AnswerSource | None = None,
    goal: str | None = None,
    labels: int | None = None,
    labels_from: str | None = None,
    reward_from: str | None = None,
    clips: Path | str | None = None,
    demonstrations: Path | str | Sequence[Path | str] | None = None,
    seeds: int = 1,
    first_seed: int = 0,
    env_steps: int | None = None,
    env_args: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    home: Path | str | None = None,
    labelling: LabellingSettings | None = None,
    argv: Sequence[str] | None = None,
    info: RunInfo = NO_INFO,
    report: Report | None = None,
) -> Result:
    """Train a policy on a reward model that is fitted to a teacher's answers.

    The true reward is used only by simulated teachers and for evaluation.

    Args:
        env: an id of backflip, a Gymnasium id, `module:Class`, or `module:function`.
        algorithm: any algorithm that can choose the actions of `env`.
        teacher: `human` (a page), `terminal`, `oracle`, `noisy:mistake=0.1,...`, your function as
            `module:function` (see docs/teachers.md), or an `AnswerSource`; if None, `human` with
            `goal` or `labelling`, else `oracle`.
        goal: the goal in your words, shown to the people who answer.
        labels: the label budget of each seed, including imported labels; if None, the number of
            imported labels, else 100, or 150 for people.
        labels_from: a run, or a file of `backflip labels export`, whose labels every seed gets.
        reward_from: a run of `teach` whose reward model is used, without queries.
        clips: a `.npz` file of trajectories, or `minari:` and the id of a data set: the first
            queries show its clips, in place of random actions (see docs/teach.md).
        demonstrations: the same, or a list of them: episodes whose clips count as preferred to the
            agent's clips (see docs/teach.md).
        seeds: the number of seeds, trained in one program, each with its own labels.
        first_seed: the first seed.
        env_steps: env steps of each seed; the environment's default if None. 0 with `clips`: all
            queries show its clips, and the agent makes one rollout.
        env_args: arguments of the environment's constructor.
        settings: settings of the algorithm and of `TeachConfig`.
        home: the folder for `runs/`; BACKFLIP_HOME or the current folder if None.
        labelling: settings of the page or terminal, for the teachers `human` and `terminal`.
        argv: the command line to record; this process's by default.
        info: name, group, question and tags of the run.
        report: progress callback, called after each phase, and every few seconds outside JAX.

    Returns:
        The result: the run's folder and id, and the mean true return of each seed's final policy.

    Raises:
        UsageError: an argument is invalid; no run was created.
        TeacherFailed: your function raised an exception or returned an invalid answer; all labels
            so far are saved.
        RewardModelFailed: your reward model did; all labels so far are saved.
        EnvironmentFailed: the environment returned invalid data; all finished phases are saved.
        Interrupted: Ctrl-C; the message says how to resume.
    """
    refuse_other_kinds(env=env, algorithm=algorithm, teacher=teacher, labels_from=labels_from)
    refuse_other_kinds(reward_from=reward_from, home=home, argv=argv, info=info, report=report)
    invocation = invoked(argv, info, report)
    refuse_names("settings", settings or {})
    refuse_names("env_args", env_args or {})
    seed_list = seeds_from(first_seed, seeds)
    answer_source = _source_of(teacher, labelling, goal)
    if answer_source.teacher == "human":
        invocation = invocation.reporting_to(_print_notes)
    place = runtime.place_of(home)
    start = find_start(place.home, labels_from, reward_from)
    budget = budget_of(labels, start, answer_source.usual_labels)
    queries = budget - start.labels
    answer_source = answer_source if queries > 0 else NoTeacher()
    makes_queries = not isinstance(answer_source, NoTeacher)
    sources_of_clips = clip_sources(clips, demonstrations, asks=makes_queries)
    runtime.prepare()
    settings = with_reward_model(start, settings or {})
    if clips is not None and env_steps == 0:
        env_steps = env_steps_of_one_rollout(algorithm, env, env_args or {}, settings)
        settings = {**settings, "phases": 1}
    config, built = resolve_teaching(
        algorithm, env, env_args or {}, settings, env_steps, budget, asks=makes_queries
    )
    with closed_on_error(built.driver):
        _refuse_overlap(answer_source, config.ask)
        spec = built.driver.spec
        model = reward_model_of(config, built, bool(sources_of_clips.demonstrations))
        check_labels(start, spec, config.clip_length)
        check_memory(built.driver, built.config, seeds)
        given = sources_of_clips.draw(
            spec, config, labels=queries, teacher=answer_source.teacher, seed=first_seed
        )
        session = begin_session(
            place,
            invocation,
            command="teach",
            env=env,
            algorithm=algorithm,
            config={
                "env_args": dict(env_args or {}),
                "settings": dataclasses.asdict(built.config),
                "teaching": dataclasses.asdict(config),
                "teacher": answer_source.teacher,
                "overlap": 0.0,
                **answer_source.config,
                "start": start._asdict(),
                **given.about,
                "evaluation_episodes": evaluation_episodes(built.driver),
            },
            seeds=seed_list,
            inherit=partial(_prepare, given),
        )
    return _carry_out(session, built, config, model, answer_source)


def teach_more(
    run: Run | Path | str,
    *,
    labels: int | None = None,
    env_steps: int | None = None,
    goal: str | None = None,
    home: Path | str | None = None,
    labelling: LabellingSettings | None = None,
    teacher: AnswerSource | None = None,
    argv: Sequence[str] | None = None,
    info: RunInfo = NO_INFO,
    report: Report | None = None,
) -> Result:
    """Teach the policies of a run of `teach` further, in a new run; return its result.

    The new run has the settings, seeds and teacher of `run`, its parent, and starts from where it
    ended, with all of its labels. Schedules go on as those of one run with both budgets. The first
    queries are made after the first phase; open queries of the parent come before them.

    Args:
        run: the parent, finished or stopped: a run, its folder, or its id in `home`.
        labels: labels of each seed, in addition to those of the parent; None for no new queries.
        env_steps: env steps of each seed, in addition to those of the parent; if None, as many for
            each label as the parent had, and at least as many as the queries need.
        goal: a new goal in your words, shown to the people who answer.
        home: the folder for `runs/`, in which the parent is looked up by its id.
        labelling: settings of the page or terminal, if people answer.
        teacher: the `AnswerSource`, if the parent was started with one.
        argv: the command line to record; this process's by default.
        info: name, group, question and tags of the new run.
        report: the progress callback, as of `teach`.

    Raises:
        UsageError: `run` cannot be carried on; no run was created.
        Interrupted: Ctrl-C; the message says how to resume.
    """
    refuse_other_kinds(run=run, home=home, teacher=teacher, argv=argv, info=info, report=report)
    invocation = invoked(argv, info, report)
    found = found_run(run, home)
    runtime.prepare()
    parent = open_parent(found, "teach")
    saved = found.config
    _refuse_other_settings(labelling)
    counts, seed_count = inherited_counts(found.folder), len(found.seeds)
    before = parent.before(counts.labels // seed_count, counts.pending // seed_count)
    budget = more_budget(found, parent.settings, before, labels, env_steps)
    if goal is not None:
        labelling = (labelling or LabellingSettings())._replace(goal=goal)
    answer_source = teacher or (_saved_source(saved, labelling) if budget.labels else NoTeacher())
    if labelling is not None and answer_source.teacher not in WHERE:
        _refuse_labelling(answer_source.teacher)
    if answer_source.teacher == "human":
        invocation = invocation.reporting_to(_print_notes)
    built = build_child(parent, budget.env_steps)
    with closed_on_error(built.driver):
        config = child_config(found, before, built, budget.labels)
        model = reward_model_of(config, built, has_demonstrations(saved))
        check_memory(built.driver, built.config, seed_count)
        learners = built.driver.start(found.seeds)
        pairs = no_pairs(config, built.driver.spec, seed_count)
        check_fits(parent, Taught(learners, model.initial(seed_count), pairs))

        def inherit(child: Run) -> None:
            inherit_given_clips(found, child)
            inherit_checkpoint(parent, inherit_labels(found.folder, child.folder), child)

        session = begin_session(
            place_of_child(found, home),
            invocation,
            command="teach",
            env=found.manifest["env"],
            algorithm=found.manifest["algorithm"],
            config={
                **saved,
                "settings": dataclasses.asdict(built.config),
                "teaching": dataclasses.asdict(config),
                CONTINUES: before._asdict(),
            },
            seeds=found.seeds,
            parent=found.ulid,
            inherit=inherit,
        )
    return _carry_out(session, built, config, model, answer_source)


def resume_teach(
    run: Run,
    report: Report | None = None,
    labelling: LabellingSettings | None = None,
    teacher: AnswerSource | None = None,
) -> Result:
    """Resume a run of `teach`; return its result. A finished run has nothing left to do.

    Args:
        run: the run.
        report: the progress callback.
        labelling: settings of the page or terminal, if people answer.
        teacher: the `AnswerSource`, if the run was started with one.

    Raises:
        DamagedFile: labels of the run are lost; the run is unchanged.
    """
    began = time.perf_counter()
    if (result := result_of(run)) is not None:
        return result
    refuse_code_of(run)
    refuse_lost_labels(run.folder)
    saved = run.config
    answer_source = teacher or (_saved_source(saved, labelling) if asks(run) else NoTeacher())
    runtime.prepare()
    with resume_session(run, report, began) as session:
        built, config = rebuild(run), saved_teaching(saved["teaching"])
        with closing(built.driver), LabelStore.open_existing(session.folder / LABELS) as store:
            model = reward_model_of(config, built, has_demonstrations(saved))
            inputs = TeachInputs(session, built, config, store, model, answer_source)
            return carry_out_teaching(inputs)


def _prepare(given: GivenClips, run: Run) -> None:
    """Make the label file of a new run, so that a run without one has lost it; keep its clips."""
    LabelStore.open(run.folder / LABELS).close()
    given.keep(run.folder)


def _carry_out(
    session: Session, built: Built, config: TeachConfig, model: RewardModel, source: AnswerSource
) -> Result:
    """Complete the run of a session and return its result."""
    with session, closing(built.driver), LabelStore.open_existing(session.folder / LABELS) as store:
        return carry_out_teaching(TeachInputs(session, built, config, store, model, source))


def _source_of(
    teacher: str | AnswerSource | None, labelling: LabellingSettings | None, goal: str | None
) -> AnswerSource:
    """Return the answer source of a new run.

    Raises:
        UsageError: settings for people are given, and no person answers.
    """
    _refuse_other_settings(labelling)
    if goal is not None:
        labelling = (labelling or LabellingSettings())._replace(goal=goal)
    if teacher is None:
        teacher = "oracle" if labelling is None else "human"
    if labelling is not None and teacher not in WHERE:
        _refuse_labelling(teacher if isinstance(teacher, str) else teacher.teacher)
    return teacher if not isinstance(teacher, str) else _source(teacher, labelling)


def _refuse_other_settings(labelling: object) -> None:
    if not isinstance(labelling, LabellingSettings | None):
        raise UsageError(f"`labelling` must be `LabellingSettings` or None, got {shown(labelling)}")


def _refuse_overlap(source: AnswerSource, ask: str) -> None:
    if ask != "compare" and source.config.get("overlap", 0.0) > 0:
        raise UsageError(
            "`--overlap` is for pairs of clips, and sets that people rank or rate are shown once: "
            "leave it out, or use --ask compare"
        )


def _refuse_labelling(teacher: str) -> NoReturn:
    raise UsageError(
        f"`goal` and `labelling` are for people who answer, not for the teacher `{teacher}`: leave "
        'them out, or start a run with teacher="human"'
    )


def _saved_source(config: Mapping[str, Any], labelling: LabellingSettings | None) -> AnswerSource:
    """Return the answer source of a saved run."""
    labelling = (labelling or LabellingSettings())._replace(overlap=config.get("overlap", 0.0))
    return _source(config["teacher"], labelling)


def _source(teacher: str, labelling: LabellingSettings | None) -> AnswerSource:
    for where in WHERE:
        if teacher == where:
            return PeopleSource(where, labelling or LabellingSettings(), film_of_policy)
    return ProgramSource(parse_teacher(teacher))


def _print_notes(progress: Progress) -> None:
    """Print notes, so that a Python program shows the page's address."""
    if progress.note:
        put(f"backflip: {progress.note}", file=sys.stderr)
