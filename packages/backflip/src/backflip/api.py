"""`teach`, as Python programs and the command line call it.

This is the one place that knows every kind of teacher: it makes the source of answers and hands it
to the training loop, which knows only the Protocol.
"""

import dataclasses
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from backflip.labelling.people_source import WHERE, LabellingSettings, PeopleSource
from backflip.preferences.answer_source import AnswerSource
from backflip.preferences.label_file import LABELS
from backflip.preferences.labels import LabelStore
from backflip.preferences.program_source import ProgramSource
from backflip.preferences.teachers import parse_teacher
from backflip.training import runtime
from backflip.training.build import rebuild
from backflip.training.memory import check_memory
from backflip.training.planning import evaluation_episodes
from backflip.training.progress import Progress, Report
from backflip.training.result import Result
from backflip.training.session import begin_session, resume_session, seeds_from
from backflip.training.initial_labels import check_labels, find_start, with_reward_model
from backflip.training.teach_config import TeachConfig
from backflip.training.teach_setup import budget_of, resolve_teaching, reward_model_of
from backflip.training.teaching import TeachRun
from runshelf.store.run import NO_INFO, Run, RunInfo


def teach(
    env: str = "dot",
    *,
    algorithm: str = "ppo",
    teacher: str | AnswerSource = "oracle",
    labels: int | None = None,
    labels_from: str | None = None,
    reward_from: str | None = None,
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
    """Teach a policy what a teacher prefers; the true reward is for teacher and evaluation only.

    Args:
        env: an id of ours, a Gymnasium id, or `module:Class`.
        algorithm: what learns from the learned reward: any algorithm that can act in `env`.
        teacher: `human` (a page), `terminal`, `oracle`, `noisy:mistake=0.1,...`, a function of
            yours as `module:function` (see docs/teachers.md), or an `AnswerSource`.
        labels: the budget of each seed, what it starts with included; if None, as many as it
            starts with, else 100, or 150 of people.
        labels_from: a run, or a file that `backflip labels export` wrote: every seed starts with
            all labels of it.
        reward_from: a run of `teach`: learn from its reward model, without any query.
        seeds: how many, taught side by side, each with labels of its own.
        first_seed: the first of them.
        env_steps: of each seed; the environment's default if None.
        env_args: for the environment's constructor.
        settings: of the algorithm or of `TeachConfig`, by name, over the defaults.
        home: the folder whose `runs/` keeps the run; BACKFLIP_HOME or the current one if None.
        labelling: how people get to label, where the teacher is `human` or `terminal`.
        argv: the command line to record; this process's by default.
        info: what you say of the run: its name, group, question and tags.
        report: called with the progress after each phase, and outside JAX every few seconds.

    Raises:
        UsageError: an argument names something that does not exist or does not fit; no run began.
        TeacherFailed: the function raised, or returned no answer; all labels so far are saved.
        EnvironmentFailed: the environment returned invalid data; all until then is saved.
        Interrupted: Ctrl-C; the message says how to resume.
    """
    began = time.perf_counter()
    numbers = seeds_from(first_seed, seeds)
    source = _source(teacher, labelling)
    report = report or (_print_notes if source.teacher == "human" else None)
    place = runtime.place_of(home)
    start = find_start(place.home, labels_from, reward_from)
    budget = budget_of(labels, start, source.usual_labels)
    runtime.prepare()
    settings = with_reward_model(start, settings or {})
    config, built = resolve_teaching(algorithm, env, env_args or {}, settings, env_steps, budget)
    model = reward_model_of(config, built)
    check_labels(start, built.driver.spec, config.clip_length)
    check_memory(built.driver, built.config, seeds)
    session = begin_session(
        place,
        command="teach",
        env=env,
        algorithm=algorithm,
        config={
            "env_args": dict(env_args or {}),
            "settings": dataclasses.asdict(built.config),
            "teaching": dataclasses.asdict(config),
            "teacher": source.teacher,
            "overlap": 0.0,
            **source.config,
            "start": start._asdict(),
            "evaluation_episodes": evaluation_episodes(built.driver),
        },
        seeds=numbers,
        argv=sys.argv if argv is None else argv,
        info=info,
        report=report,
        began=began,
    )
    with session, LabelStore.open(session.folder / LABELS) as store:
        return TeachRun(session, built, config, store, model, source).carry_out()


def resume_teach(
    run: Run,
    report: Report | None = None,
    labelling: LabellingSettings | None = None,
    teacher: AnswerSource | None = None,
) -> Result:
    """Carry on with a run of `teach`.

    Args:
        run: the run.
        report: called with the progress.
        labelling: how people get to label.
        teacher: who answers, where the run began with an `AnswerSource` of the caller's own.
    """
    began = time.perf_counter()
    saved = run.config
    settings = (labelling or LabellingSettings())._replace(overlap=saved.get("overlap", 0.0))
    source = teacher or _source(saved["teacher"], settings)
    runtime.prepare()
    with resume_session(run, report, began) as session:
        built, config = rebuild(run), TeachConfig(**saved["teaching"])
        model = reward_model_of(config, built)
        with LabelStore.open(session.folder / LABELS) as store:
            return TeachRun(session, built, config, store, model, source).carry_out()


def _source(teacher: str | AnswerSource, labelling: LabellingSettings | None) -> AnswerSource:
    """Return who answers the queries."""
    if not isinstance(teacher, str):
        return teacher
    for where in WHERE:
        if teacher == where:
            return PeopleSource(where, labelling or LabellingSettings())
    return ProgramSource(parse_teacher(teacher))


def _print_notes(progress: Progress) -> None:
    """OnEnvSteps the caller from Python where the page is."""
    if progress.note:
        sys.stderr.write(f"backflip: {progress.note}\n")
