"""`watch`: what the policies of a run do, from its first checkpoint to its last."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

from backflip.core.checkpoint import has_checkpoint
from backflip.core.paths import from_here
from backflip.core.spec import EnvSpec
from backflip.envs.spec import HostEnv
from backflip.envs.views.choose import view_of
from backflip.envs.views.view import View
from backflip.inspect.clips import drawable, frames_of, write_clip
from backflip.inspect.performance import Performance, Performer
from backflip.inspect.pictures import PAPER, enlarged, png
from backflip.inspect.random_play import OnEnvSteps, Warn
from backflip.inspect.state_space import Map, map_policy, picture, state_space_of
from backflip.inspect.stepping import open_env
from backflip.inspect.timeline import with_tracks
from backflip.training.build import env_args_of
from backflip.training.policy import (
    POLICY,
    SavedPolicy,
    load_saved_policy,
    policy_files,
    refuse_changed,
)
from runshelf.errors import UsageError
from runshelf.store.files import disk_errors, write_whole
from runshelf.store.records import to_json
from runshelf.store.run import Run

NUMBERS = "watch.json"
MOMENTS, SMALL, CAPTION = 6, 150, 22  # of the overview: pictures in a row, their height, its words


class Watched(NamedTuple):
    """What was seen of one checkpoint.

    Attributes:
        env_steps: how long it had learnt; None where that was not written down.
        performance: its episodes.
        clip: the clip's file.
        map: the policy over the state space, where that has two dimensions.
        map_file: its picture.
    """

    env_steps: int | None
    performance: Performance
    clip: Path
    map: Map | None
    map_file: Path | None

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as JSON values."""
        shown = self.performance
        tracks = {name: [float(f"{x:.5g}") for x in v.tolist()] for name, v in shown.tracks.items()}
        return {
            "env_steps": self.env_steps,
            "returns": shown.returns.tolist(),
            "lengths": shown.lengths.tolist(),
            "first_episode": tracks,
            "clip": str(from_here(self.clip)),
            "state_space": None if self.map is None else self.map.to_json(),
            "state_space_picture": self.map_file and str(from_here(self.map_file)),
        }


class Shown(NamedTuple):
    """All that was seen of a run: each checkpoint, other files, what could not be shown and why."""

    checkpoints: list[Watched]
    overview: Path
    numbers: Path
    notes: list[str]


def watch(
    run: Run, *, seed: int | None, episodes: int, out: Path | None, tell: OnEnvSteps, warn: Warn
) -> Shown:
    """Play episodes with the policy of each checkpoint of a run, and draw them.

    Every checkpoint starts from the same states. The first episode, or its beginning, becomes a
    clip; the others count for the returns.

    Args:
        run: of `train` or `teach`.
        seed: whose policy, by default of the first.
        episodes: of each checkpoint.
        out: where to write, by default `watch/` in the run's folder.
        tell: is told how far it is.
        warn: is told before anything is played if nothing can be drawn, and why.

    Raises:
        UsageError: the run has no policies, or no such seed.
        EnvironmentFailed: the environment did not keep its word.
    """
    found = checkpoints(run, seed)
    folder = out or run.folder / "watch" / f"seed-{run.seeds[0] if seed is None else seed}"
    folder = folder.absolute()  # an environment may change the current one
    env_id, args = run.manifest["env"], env_args_of(run)
    env = open_env(env_id, args, episodes)
    try:
        refuse_changed(run, env.spec)
        view, note = drawable(view_of(env_id, env.spec, args), env.spec)
        if note:
            warn(note)
        performer = Performer(found[0].algorithm)
        watched: list[Watched] = []
        rows: list[UInt8[np.ndarray, "H W 3"]] = []
        for number, acting in enumerate(found):
            tell("watching", number / len(found))
            one, frames = _watch_one(env, view, performer, acting, folder, number, tell)
            watched.append(one)
            rows.append(_row(one, frames))
    finally:
        env.close()
    notes = [note] if note else []
    if found[0].algorithm.assess is None:
        notes.append(
            f"`{found[0].algorithm.name}` says no value or entropy of a state: the reward is drawn"
        )
    overview, numbers = folder / "overview.png", folder / NUMBERS
    write_whole(overview, png(np.concatenate(rows)))
    told = {"run": run.ulid, "env": env_id, "checkpoints": [one.to_json() for one in watched]}
    write_whole(numbers, json.dumps(to_json(told)).encode())
    return Shown(watched, overview, numbers, notes)


def checkpoints(run: Run, seed: int | None) -> list[SavedPolicy]:
    """Return the policies that a run has kept, oldest first, the last one saved among them.

    Raises:
        UsageError: there are none, or not of that seed.
        DamagedFile: one cannot be read.
    """
    if not has_checkpoint(run.folder / POLICY):
        kind = run.manifest["command"]
        raise UsageError(
            f"run `{run.ulid}` of kind `{kind}` has no policy to watch: runs of train and teach "
            "have one as soon as their first phase is done"
        )
    kept = [load_saved_policy(path, seed) for path in policy_files(run.folder)]
    last = load_saved_policy(run.folder / POLICY, seed)
    return [one for one in kept if one.env_steps != last.env_steps] + [last]


def _watch_one(
    env: HostEnv,
    view: View,
    performer: Performer,
    acting: SavedPolicy,
    folder: Path,
    number: int,
    tell: OnEnvSteps,
) -> tuple[Watched, list[UInt8[np.ndarray, "H W 3"]]]:
    """Return what one checkpoint does, its files written, and the frames of its clip."""

    def tell_of_step(env_steps: int) -> None:
        tell(f"watching checkpoint {number + 1} at env step {env_steps:,}", 0.0)

    state = jax.device_put(acting.state)
    shown = performer.play(env, state, seed=0, tell=tell_of_step)
    clip = frames_of(view, env.spec, shown.filmed, with_agents=False)
    frames = with_tracks(clip.frames, clip.per_step, shown.tracks)
    name = f"{number + 1:02}-{acting.env_steps or 0}-env-steps"
    file = folder / f"{name}.webp"
    write_clip(file, frames, clip.fps)
    found, map_file = _map(env.spec, performer, state), None
    if found is not None:
        map_file = folder / f"{name}-state-space.png"
        with disk_errors(map_file):
            write_whole(map_file, png(picture(found, env.spec)))
    return Watched(acting.env_steps, shown, file, found, map_file), frames


def _map(spec: EnvSpec, performer: Performer, state: Any) -> Map | None:
    space = state_space_of(spec.id, spec)
    if space is None:
        return None

    def act(obs: np.ndarray) -> np.ndarray:
        return performer.evaluation_action(state, obs, jax.random.key(0))

    return map_policy(space, act, lambda obs: performer.assess(state, obs).get("value"))


def _row(one: Watched, frames: list[UInt8[np.ndarray, "H W 3"]]) -> UInt8[np.ndarray, "H2 W2 3"]:
    """Return a few small frames of a clip in a row, under what they are of."""
    chosen = np.linspace(0, len(frames) - 1, MOMENTS).round().astype(int)
    small = np.concatenate([enlarged(frames[index], SMALL) for index in chosen], 1)
    words = Image.new("RGB", (small.shape[1], CAPTION), PAPER)
    returns = one.performance.returns
    text = f"after {one.env_steps or 0:,} env steps: return {returns.mean():.4g}"
    ImageDraw.Draw(words).text((4, 4), text, (228, 231, 237), ImageFont.load_default(13))
    return np.concatenate([np.asarray(words), small])
