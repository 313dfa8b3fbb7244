"""`watch --stages`: one moving picture of a run, from before training to its end, side by side."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from backflip.core.spec import newest_frame
from backflip.envs.spec import HostEnv
from backflip.envs.views.choose import view_of
from backflip.envs.views.film import Movie, ended, film
from backflip.envs.views.view import View
from backflip.inspect.clip_files import drawable
from backflip.inspect.open_env import open_env
from backflip.inspect.policy_episodes import PolicyEpisodes, PolicyPlayer
from backflip.inspect.random_episodes import OnProgress, Warn
from backflip.inspect.watch import checkpoints
from backflip.preferences.label_file import LABELS
from backflip.preferences.labels import LabelStore
from backflip.training.build import env_args_of
from backflip.training.parents import before_of
from backflip.training.policy import SavedPolicy, refuse_changed, seed_of
from backflip.training.teaching.picture import FORMATS, animation
from runshelf.errors import UsageError
from runshelf.formatting import plural
from runshelf.store.files import disk_errors
from runshelf.store.run import Run
from runshelf.store.writing import write_whole

STAGES = 3  # where the user gives no number
BETWEEN = {0.0: "before", 0.25: "a quarter", 0.5: "half way", 0.75: "three quarters", 1.0: "after"}


class Stage(NamedTuple):
    """One policy of the picture.

    Attributes:
        name: how far training had come, in words.
        env_steps: env steps of training.
        labels: labels that the policy had learned from; None if the run was not taught.
        true_return: true return of the episode that is shown.
    """

    name: str
    env_steps: int
    labels: int | None
    true_return: float

    @property
    def caption(self) -> str:
        """The text below the stage."""
        labels = "" if self.labels is None else f", {plural(self.labels, 'label')}"
        return f"{self.name}\n{self.env_steps:,} env steps{labels}"


def checked_picture(path: Path) -> Path:
    """Return the path of a moving picture.

    Raises:
        UsageError: its suffix is not supported.
    """
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"`{path}` must end in {' or '.join(FORMATS)} (moving pictures)")
    return path


def draw_stages(
    run: Run,
    file: Path,
    *,
    seed: int | None,
    count: int | None,
    seconds: float,
    on_progress: OnProgress,
    warn: Warn,
) -> list[Stage]:
    """Write one moving picture of a run's policies, evenly spaced, and return what it shows.

    Every policy plays from the same initial state. The first is the one that training began with.

    Args:
        run: a run of `train` or `teach`.
        file: the picture, ending in one of `FORMATS`.
        seed: the seed whose policies play; None for the first.
        count: number of policies, at least 2; None for three, or fewer if the run keeps fewer.
        seconds: how much of an episode is shown at most, in the environment's own time.
        on_progress: called with the current activity and its finished share.
        warn: called before the first episode if the environment cannot be drawn here.

    Raises:
        UsageError: the suffix is not supported, or the run keeps too few policies.
        EnvironmentFailed: the environment returned invalid data.
    """
    target = checked_picture(file).absolute()  # an environment may change the current folder
    chosen = chosen_stages(run, checkpoints(run, seed), seed_of(run, seed), count)
    env_id, args = run.manifest["env"], env_args_of(run)
    env = open_env(env_id, args, 1)
    try:
        refuse_changed(run, env.spec)
        view, note = drawable(view_of(env_id, env.spec, args), env)
        if note:
            warn(note)
        env_steps = max(round(seconds / view.step_seconds()), 1)
        player, movies, shown = PolicyPlayer(chosen[0][1].algorithm), list[Movie](), list[Stage]()
        for number, (name, acting) in enumerate(chosen):
            on_progress(f"watching stage {number + 1} of {len(chosen)}", number / len(chosen))
            played = player.play(env, jax.device_put(acting.state), 0, recorded=env_steps)
            movies.append(_movie(view, env, played))
            labels = _labels(run, seed_of(run, seed), acting.env_steps or 0)
            first = float(played.returns[0])
            shown.append(Stage(name, acting.env_steps or 0, labels, first))
    finally:
        env.close()
    captioned = {stage.caption: movie for stage, movie in zip(shown, movies, strict=True)}
    with disk_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, animation(captioned, FORMATS[target.suffix.lower()]))
    return shown


def chosen_stages(
    run: Run, kept: Sequence[SavedPolicy], seed: int, count: int | None
) -> list[tuple[str, SavedPolicy]]:
    """Return `count` policies, evenly spaced in env steps, each with its name.

    The first is the policy before training, which follows from the seed. A run that carries another
    one on has no such policy; there, the first is the oldest that it kept.

    Raises:
        UsageError: the run keeps too few policies.
    """
    last = kept[-1]
    every = list(kept)
    if not before_of(run).updates:
        untrained = last.algorithm.init(seed)
        every = [last._replace(state=untrained, env_steps=0), *every]
    count = max(2, min(STAGES, len(every))) if count is None else count
    if count > len(every):
        raise UsageError(
            f"run `{run.short}` can show {plural(len(every), 'stage')}, not {count}: try --stages "
            f"{len(every)}; short runs keep few policies, and runs of old versions, or of policies "
            "above 10 MB, only the last"
        )
    at = np.array([one.env_steps or 0 for one in every], float)
    shares = np.linspace(0.0, 1.0, count)
    wanted = at[0] + shares * (at[-1] - at[0])
    places = _distinct(np.abs(at - wanted[:, None]))
    return [
        (BETWEEN.get(float(share), f"{share:.0%}"), every[place])
        for share, place in zip(shares, places, strict=True)
    ]


def _distinct(distance: np.ndarray) -> list[int]:
    """Return for each row the nearest column after that of the row before, leaving enough."""
    rows, columns = distance.shape
    found: list[int] = []
    for row in range(rows):
        first = found[-1] + 1 if found else 0
        room = columns - (rows - 1 - row)
        found.append(first + int(distance[row, first:room].argmin()))
    return found


def _movie(view: View, env: HostEnv, played: PolicyEpisodes) -> Movie:
    """Return the movie of the recorded steps; if the episode ended with them, it says so."""
    spec, seen = env.spec, played.recording
    alive = np.ones(len(seen.reward), bool)
    obs, next_obs = newest_frame(spec, seen.obs), newest_frame(spec, seen.next_obs)
    movie = film(view, obs, next_obs, seen.scene, alive)
    if played.lengths[0] > len(seen.reward):
        return movie
    return movie._replace(frames=np.concatenate([movie.frames, ended(movie.frames[-1])[None]]))


def _labels(run: Run, seed: int, env_steps: int) -> int | None:
    """Return the labels that a policy had learned from: of clips that are older than it."""
    if run.manifest["command"] != "teach":
        return None
    with LabelStore.open_existing(run.folder / LABELS) as store:
        return len(store.in_force(seed, env_steps - 1))
