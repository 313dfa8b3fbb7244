"""`look`: what an environment is like, before anything learns in it."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from backflip.core.spec import Discrete, EnvSpec
from backflip.envs.spec import HostEnv
from backflip.envs.views.choose import view_of
from backflip.inspect.env_checks import REPEATING, TRYING, audit_actions, repeatability
from backflip.inspect.clip_files import checked_file, drawable, first_seconds, frames_of, write_clip
from backflip.inspect.key_bindings import actions
from backflip.inspect.env_facts import action_meanings, frame_skip, special_facts, step_seconds
from backflip.inspect.random_episodes import OnProgress, Warn, play_randomly
from backflip.inspect.report import Report
from backflip.inspect.open_env import ProgressEnv, open_env

FEWEST_ROWS, MOST_ROWS = 4, 20  # environments stepped side by side
CLIP_SECONDS = 10.0  # of the environment's own time


class LookResult(NamedTuple):
    """What was found out, the clip's file, and what could not be drawn and why, or nothing."""

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
    on_progress: OnProgress,
    warn: Warn,
) -> LookResult:
    """Return what an environment is like, and draw a clip of a random policy in it.

    Args:
        env_id: an id, as `backflip.envs.registry` takes it.
        env_args: for its constructor.
        episodes: of a random policy.
        seed: from which all randomness comes.
        discount: γ of the horizon that is reported.
        clip: where to write the clip, ending in .webp, or .png for a strip of frames.
        on_progress: is told how far it is.
        warn: is told before anything is played if nothing can be drawn, and why.

    Raises:
        UsageError: there is no such environment, or the clip cannot be of that kind.
        EnvironmentFailed: the environment did not keep its word.
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
        view, note = drawable(known, spec)
        if note:
            warn(note)
        play = play_randomly(env, episodes, seed, on_progress)
        repeated = repeatability(ProgressEnv(env, REPEATING, partial(on_progress, "repeating")), seed)
    finally:
        env.close()

    def make_with_progress(rows: int) -> HostEnv:
        return ProgressEnv(make(rows), TRYING, partial(on_progress, "trying actions"))

    audit = audit_actions(make_with_progress, spec.action, seed, _action_labels(env_id, spec, env_args))
    on_progress("drawing", 0.0)
    shown = frames_of(view, spec, first_seconds(view, play.recording, CLIP_SECONDS), with_agents=True)
    write_clip(file, shown.frames, shown.fps)
    report = Report(
        env_id,
        env_args,
        seed,
        spec,
        discount,
        step_seconds(env_id, known),
        frame_skip(env_id, env_args),
        play,
        repeated,
        audit,
        facts,
    )
    return LookResult(report, clip, note)


def _action_labels(env_id: str, spec: EnvSpec, env_args: Mapping[str, Any]) -> list[str]:
    """Return the actions of a discrete space by number and, where there is one, by name."""
    if not isinstance(spec.action, Discrete):
        return []
    known = actions(spec, action_meanings(env_id, env_args))
    return [
        one.name if one.name.startswith("action") else f"action {number}, {one.name}"
        for number, one in enumerate(known)
    ]
