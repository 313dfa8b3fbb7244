"""`look`: measure an environment before training in it."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from backflip.core.spaces import Discrete
from backflip.core.spec import EnvSpec, conversions
from backflip.envs.spec import HostEnv
from backflip.envs.views.choose import view_of
from backflip.inspect.clip_files import checked_file, drawable, first_seconds, frames_of, write_clip
from backflip.inspect.env_checks import (
    AUDIT_STEPS,
    REPEATABILITY_STEPS,
    OnEnvStep,
    audit_actions,
    repeatability,
)
from backflip.inspect.env_facts import (
    action_meanings,
    drawing_facts,
    frame_skip,
    special_facts,
    step_seconds,
)
from backflip.inspect.key_bindings import actions
from backflip.inspect.open_env import drawing_problem, open_env
from backflip.inspect.random_episodes import OnProgress, Warn, play_randomly
from backflip.inspect.report import Report
from runshelf.store.files import disk_errors
from runshelf.store.home import LOOKS, make_shared

FEWEST_ROWS, MOST_ROWS = 4, 20  # limits of the number of environments stepped in parallel
CLIP_SECONDS = 10.0  # length of the clip in the environment's own time


class LookResult(NamedTuple):
    """The report, the clip's file, and why bars were drawn instead of the view, or nothing."""

    report: Report
    clip: Path
    note: str


def look(
    env_id: str,
    *,
    env_args: Mapping[str, Any],
    episodes: int,
    seed: int,
    discount: float,
    clip: Path,
    home: Path | None = None,
    on_progress: OnProgress,
    warn: Warn,
) -> LookResult:
    """Measure an environment with a random policy, and write a clip of it.

    Args:
        env_id: an id that `backflip.envs.registry` accepts.
        env_args: constructor arguments.
        episodes: number of episodes of the random policy.
        seed: the seed of all randomness.
        discount: γ of the reported horizon.
        clip: the file of the clip, ending in .webp, or .png for a strip of frames.
        home: the home that has the clip; None if it is elsewhere.
        on_progress: called with the current activity and its finished share.
        warn: called before the first episode if the environment cannot be drawn here.

    Raises:
        UsageError: the environment does not exist, or the clip's suffix is not supported.
        EnvironmentFailed: the environment returned invalid data.
    """
    checked_file(clip)
    file = clip.absolute()  # an environment may change the current folder
    facts = special_facts(env_id, env_args)

    def make(rows: int) -> HostEnv:
        return open_env(env_id, env_args, rows)

    env = make(min(max(episodes, FEWEST_ROWS), MOST_ROWS))
    try:
        spec = env.spec
        known = view_of(env_id, spec, env_args)
        view, note = drawable(known, env)
        if note:
            warn(note)
        play = play_randomly(env, episodes, seed, on_progress)
        on_env_step = _counted(on_progress, "repeating", REPEATABILITY_STEPS)
        repeated = repeatability(env, seed, on_env_step)
        facts = [*facts, *drawing_facts(env, play.env_steps_per_second)]
        note = note or drawing_problem(env)
    finally:
        env.close()
    names = _action_labels(env_id, spec, env_args)
    on_env_step = _counted(on_progress, "trying actions", AUDIT_STEPS)
    audit = audit_actions(make, spec.action, seed, names, on_env_step)
    on_progress("drawing", 0.0)
    shown = frames_of(
        view, spec, first_seconds(view, play.recording, CLIP_SECONDS), with_agents=True
    )
    if home is not None:
        with disk_errors(home):
            make_shared(home, LOOKS)
    write_clip(file, shown.frames, shown.fps)
    report = Report(
        env=env_id,
        env_args=env_args,
        seed=seed,
        spec=spec,
        discount=discount,
        step_seconds=step_seconds(env_id, known),
        frame_skip=frame_skip(env_id, env_args),
        episodes=play,
        repeatability=repeated,
        actions=audit,
        facts=[*facts, *_conversions(spec)],
    )
    return LookResult(report, clip, note)


def _conversions(spec: EnvSpec) -> list[tuple[str, str]]:
    """Return how learning sees the environment's own spaces, as (name, text) pairs."""
    parts = [line.partition(" are ") for line in conversions(spec)]
    return [(f"own {what}", text) for what, _, text in parts]


def _counted(on_progress: OnProgress, what: str, env_steps: int) -> OnEnvStep:
    """Return a function that reports, at each call, the finished share of `env_steps`."""
    done = itertools.count(1)
    return lambda: on_progress(what, next(done) / env_steps)


def _action_labels(env_id: str, spec: EnvSpec, env_args: Mapping[str, Any]) -> list[str]:
    """Return the numbers of discrete actions with their names, where known."""
    if not isinstance(spec.action, Discrete):
        return []
    known = actions(spec, action_meanings(env_id, env_args))
    return [
        one.name if one.name.startswith("action") else f"action {number}, {one.name}"
        for number, one in enumerate(known)
    ]
