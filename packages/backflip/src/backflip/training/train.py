"""`train`: train an algorithm on an environment's own reward, many seeds at once."""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from backflip.core.settings import refuse_names
from backflip.core.spec import conversions
from backflip.drivers.learning import env_steps_after
from backflip.training import runtime
from backflip.training.arguments import refuse_other_kinds
from backflip.training.build import Built, build, rebuild
from backflip.training.continuation import (
    build_child,
    check_fits,
    found_run,
    inherit_checkpoint,
    open_parent,
    place_of_child,
    planned,
)
from backflip.training.finished import result_of, with_more
from backflip.training.invocation import invoked
from backflip.training.memory import check_memory, report_replay_memory
from backflip.training.named_code import refuse_code_of
from backflip.training.parents import CONTINUES, before_of
from backflip.training.planning import evaluation_episodes, phase_count
from backflip.training.policy import refuse_changed
from backflip.training.progress import Report
from backflip.training.result import Result
from backflip.training.session import (
    Session,
    begin_session,
    closed_on_error,
    resume_session,
    seeds_from,
)
from runshelf.store.run import NO_INFO, Run, RunInfo


def train(
    algorithm: str = "ppo",
    env: str = "CartPole-v1",
    *,
    seeds: int = 1,
    first_seed: int = 0,
    env_steps: int | None = None,
    env_args: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    home: Path | str | None = None,
    argv: Sequence[str] | None = None,
    info: RunInfo = NO_INFO,
    report: Report | None = None,
) -> Result:
    """Train an algorithm on an environment's own reward.

    Args:
        algorithm: the algorithm's name.
        env: an id of backflip, a Gymnasium id, `module:Class`, or `module:function`.
        seeds: the number of seeds, trained in one program.
        first_seed: the first seed.
        env_steps: env steps of each seed; the environment's default if None.
        env_args: arguments of the environment's constructor.
        settings: settings of the algorithm; defaults depend on the environment.
        home: the folder for `runs/`; BACKFLIP_HOME or the current folder if None.
        argv: the command line to record; this process's by default.
        info: name, group, question and tags of the run.
        report: progress callback, called after each of about 20 phases, and every few seconds
            outside JAX.

    Returns:
        The result: the run's folder and id, and the mean true return of each seed's final policy.

    Raises:
        UsageError: an argument is invalid; no run was created.
        EnvironmentFailed: the environment returned invalid data; all finished phases are saved.
        Interrupted: Ctrl-C; the message says how to resume.
    """
    refuse_other_kinds(env=env, algorithm=algorithm)
    refuse_other_kinds(home=home, argv=argv, info=info, report=report)
    invocation = invoked(argv, info, report)
    seed_list, place = seeds_from(first_seed, seeds), runtime.place_of(home)
    runtime.prepare()
    refuse_names("settings", settings or {})
    refuse_names("env_args", env_args or {})
    chosen = {**(settings or {}), **({} if env_steps is None else {"env_steps": env_steps})}
    built = build(algorithm, env, env_args=env_args or {}, settings=chosen)
    with closed_on_error(built.driver):
        check_memory(built.driver, built.config, seeds)
        session = begin_session(
            place,
            invocation,
            command="train",
            env=env,
            algorithm=algorithm,
            config={
                "env_args": dict(env_args or {}),
                "settings": dataclasses.asdict(built.config),
                "evaluation_episodes": evaluation_episodes(built.driver),
                "phases": phase_count(built.config.updates, built.driver),
            },
            seeds=seed_list,
        )
    with session:
        return _perform(session, built)


def train_more(
    run: Run | Path | str,
    *,
    env_steps: int,
    home: Path | str | None = None,
    argv: Sequence[str] | None = None,
    info: RunInfo = NO_INFO,
    report: Report | None = None,
) -> Result:
    """Train the policies of a run of `train` further, in a new run; return its result.

    The new run has the settings and seeds of `run`, its parent, and starts from where it ended.
    Schedules go on as those of one run with both budgets.

    Args:
        run: the parent, finished or stopped: a run, its folder, or its id in `home`.
        env_steps: env steps of each seed, in addition to those of the parent.
        home: the folder for `runs/`, in which the parent is looked up by its id.
        argv: the command line to record; this process's by default.
        info: name, group, question and tags of the new run.
        report: the progress callback, as of `train`.

    Raises:
        UsageError: `run` cannot be carried on; no run was created.
        Interrupted: Ctrl-C; the message says how to resume.
    """
    refuse_other_kinds(run=run, home=home, argv=argv, info=info, report=report)
    invocation = invoked(argv, info, report)
    runtime.prepare()
    parent = open_parent(found_run(run, home), "train")
    place = place_of_child(parent.run, home)
    built = build_child(parent, env_steps)
    with closed_on_error(built.driver):
        check_memory(built.driver, built.config, len(parent.run.seeds))
        check_fits(parent, {"learners": built.driver.start(parent.run.seeds)})
        own = built.config.updates - parent.updates
        session = begin_session(
            place,
            invocation,
            command="train",
            env=parent.run.manifest["env"],
            algorithm=parent.run.manifest["algorithm"],
            config={
                **parent.run.config,
                "settings": dataclasses.asdict(built.config),
                "phases": phase_count(own, built.driver),
                CONTINUES: parent.before()._asdict(),
            },
            seeds=parent.run.seeds,
            parent=parent.run.ulid,
            inherit=partial(inherit_checkpoint, parent, None),
        )
    with session:
        return _perform(session, built)


def resume_train(run: Run, report: Report | None = None) -> Result:
    """Resume a run of `train`; return its result. A finished run has nothing left to do."""
    began = time.perf_counter()
    if (result := result_of(run)) is not None:
        return result
    refuse_code_of(run)
    runtime.prepare()
    with resume_session(run, report, began) as session:
        return _perform(session, rebuild(run))


def _perform(session: Session, built: Built) -> Result:
    """Complete a run of `train` and return its result."""
    driver, run = built.driver, session.run
    try:
        report_replay_memory(driver, len(run.seeds), session.reporter.say)
        for line in conversions(driver.spec):
            session.reporter.say(line)
        refuse_changed(run, driver.spec)
        restored = session.restore({"learners": driver.start(run.seeds)})
        learners = restored.state["learners"]
        if not restored.begun:
            env_steps, num_envs = env_steps_after(driver.algorithm, 0), driver.algorithm.num_envs
            warming_up = session.reporter.acting_at_random("warming up", env_steps, num_envs)
            learners = driver.fill_replay(learners, warming_up)
        phases = planned(run, built.config)
        functions = {updates: driver.phase(updates) for updates in set(phases)}
        session.clock.book("setup")
        done = before_of(run).updates + sum(phases[: restored.phases])
        for number, updates in enumerate(phases[restored.phases :], restored.phases + 1):
            learning = session.reporter.learning(
                driver.algorithm, number - 1, len(phases), done=done, updates=updates
            )
            keep = session.policy_keeper(built, done=done)
            learners, measured = functions[updates](learners, None, learning, keep)
            health = session.log_phase(
                built, measured, learners, done=done, updates=updates, learns_own_reward=True
            )
            done += updates
            session.save(built, {"learners": learners}, learners, phases=number)
            env_steps = env_steps_after(driver.algorithm, done)
            session.reporter.phase_done(number, len(phases), env_steps, health)
        episodes = run.config["evaluation_episodes"]
        evaluation = driver.evaluate(
            learners,
            run.seeds,
            episodes=episodes,
            on_progress=session.reporter.evaluating(episodes, driver.spec.longest_episode),
        )
        env_steps = env_steps_after(driver.algorithm, done)
        result = session.finish(evaluation, updates=done, env_steps=env_steps)
        return with_more(result, run)
    finally:
        driver.close()
