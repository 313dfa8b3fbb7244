"""`watch`: play and draw the policies of a run, from its first checkpoint to its last."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

from backflip.core.paths import from_here
from backflip.core.spec import EnvSpec
from backflip.envs.spec import HostEnv
from backflip.envs.views.choose import view_of
from backflip.envs.views.view import View
from backflip.export.learned_reward import LearnedReward
from backflip.inspect.clip_files import drawable, frames_of, write_clip
from backflip.inspect.learned_episode import LearnedEpisode, learned_episode, reward_taught
from backflip.inspect.open_env import open_env
from backflip.inspect.pictures import PAPER, enlarged, png
from backflip.inspect.policy_episodes import PolicyEpisodes, PolicyPlayer
from backflip.inspect.policy_map import PolicyMap, map_policy, picture, state_space_of
from backflip.inspect.random_episodes import OnProgress, Warn
from backflip.inspect.track_plots import Curve, Panel, with_panels
from backflip.training.build import env_args_of
from backflip.training.policy import (
    POLICY,
    SavedPolicy,
    load_saved_policy,
    policy_files,
    refuse_changed,
    refuse_without_policy,
    seed_of,
)
from backflip.training.queries.label_pictures import listed_labels
from runshelf.errors import UserFacingError
from runshelf.store.records import to_json
from runshelf.store.run import Run
from runshelf.store.writing import make_folder, write_whole

NUMBERS = "watch.json"
PANELS, SMALL, CAPTION = 6, 150, 22  # overview: pictures per row, heights of picture and caption


class CheckpointResult(NamedTuple):
    """Episodes and files of one checkpoint.

    Attributes:
        env_steps: env steps of training before the checkpoint; None if not recorded.
        episodes: the episodes played.
        learned: the learned reward along the first episode; None if the run was not taught.
        clip: the clip's file.
        map: the policy over the state space, if that has two dimensions.
        map_file: the picture of the map.
    """

    env_steps: int | None
    episodes: PolicyEpisodes
    learned: LearnedEpisode | None
    clip: Path
    map: PolicyMap | None
    map_file: Path | None

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as JSON values."""
        played = self.episodes
        tracks = {n: [float(f"{x:.5g}") for x in v.tolist()] for n, v in played.tracks.items()}
        learned = {} if self.learned is None else self.learned.to_json()
        return {
            "env_steps": self.env_steps,
            "returns": played.returns.tolist(),
            "lengths": played.lengths.tolist(),
            "first_episode": tracks | learned,
            "learned_spearman": self.learned and self.learned.spearman,
            "clip": str(from_here(self.clip)),
            "state_space": None if self.map is None else self.map.to_json(),
            "state_space_picture": self.map_file and str(from_here(self.map_file)),
        }


class WatchResult(NamedTuple):
    """The results of all checkpoints, further files, and notes on what could not be drawn.

    `labels` has a line for each label that the learned reward is most wrong and most unsure about.
    """

    checkpoints: list[CheckpointResult]
    overview: Path
    numbers: Path
    notes: list[str]
    labels: list[str]


def watch(
    run: Run,
    *,
    seed: int | None,
    episodes: int,
    out: Path | None,
    on_progress: OnProgress,
    warn: Warn,
) -> WatchResult:
    """Play episodes with the policy of each checkpoint of a run, and draw them.

    Every checkpoint plays from the same initial states. The beginning of the first episode becomes
    a clip.

    Args:
        run: a run of `train` or `teach`.
        seed: the seed whose policy is played; None for the first.
        episodes: number of episodes per checkpoint.
        out: output folder; None for `watch/seed-N` in the run's folder.
        on_progress: called with the current activity and its finished share.
        warn: called before the first episode if the environment cannot be drawn here.

    Raises:
        UsageError: the run has no policies, or does not have the seed.
        EnvironmentFailed: the environment returned invalid data.
    """
    found = checkpoints(run, seed)
    folder = out or make_folder(run.folder, f"watch/seed-{seed_of(run, seed)}")
    folder = folder.absolute()  # an environment may change the current folder
    env_id, args = run.manifest["env"], env_args_of(run)
    env = open_env(env_id, args, episodes)
    try:
        refuse_changed(run, env.spec)
        view, note = drawable(view_of(env_id, env.spec, args), env)
        if note:
            warn(note)
        player = PolicyPlayer(found[0].algorithm)
        reward, why_not = _reward_of(run, seed)
        watched: list[CheckpointResult] = []
        rows: list[UInt8[np.ndarray, "H W 3"]] = []
        for number, acting in enumerate(found):
            on_progress("watching", number / len(found))
            one, frames = _watch_one(env, view, player, acting, reward, folder, number, on_progress)
            watched.append(one)
            rows.append(_row(one, frames))
    finally:
        env.close()
    notes = [one for one in (note, why_not) if one]
    if found[0].algorithm.assess is None:
        name = found[0].algorithm.name
        notes.append(f"`{name}` has no value or entropy, so only the reward is plotted")
    overview, numbers = folder / "overview.png", folder / NUMBERS
    write_whole(overview, png(np.concatenate(rows)))
    fields = {"run": run.ulid, "env": env_id, "checkpoints": [one.to_json() for one in watched]}
    write_whole(numbers, json.dumps(to_json(fields)).encode())
    return WatchResult(watched, overview, numbers, notes, listed_labels(run.folder))


def checkpoints(run: Run, seed: int | None) -> list[SavedPolicy]:
    """Return the policies saved in a run, oldest first.

    Raises:
        UsageError: the run has no policies, or does not have the seed.
        DamagedFile: a policy cannot be read.
    """
    refuse_without_policy(run)
    kept = [load_saved_policy(path, seed) for path in policy_files(run.folder)]
    last = load_saved_policy(run.folder / POLICY, seed)
    return [one for one in kept if one.env_steps != last.env_steps] + [last]


def _watch_one(
    env: HostEnv,
    view: View,
    player: PolicyPlayer,
    acting: SavedPolicy,
    reward: LearnedReward | None,
    folder: Path,
    number: int,
    on_progress: OnProgress,
) -> tuple[CheckpointResult, list[UInt8[np.ndarray, "H W 3"]]]:
    """Play one checkpoint and write its files; return the result and the frames of its clip."""

    def on_step(env_steps: int) -> None:
        on_progress(f"watching checkpoint {number + 1} at env step {env_steps:,}", 0.0)

    state = jax.device_put(acting.state)
    played = player.play(env, state, seed=0, on_progress=on_step)
    clip = frames_of(view, env.spec, played.recording, with_agents=False)
    learned = None if reward is None else learned_episode(reward, played.steps)
    frames = with_panels(clip.frames, clip.per_step, _panels(played, learned))
    name = f"{number + 1:02}-{acting.env_steps or 0}-env-steps"
    file = folder / f"{name}.webp"
    write_clip(file, frames, clip.fps)
    found, map_file = _map(env.spec, player, state), None
    if found is not None:
        map_file = folder / f"{name}-state-space.png"
        write_whole(map_file, png(picture(found, env.spec)))
    return CheckpointResult(acting.env_steps, played, learned, file, found, map_file), frames


def _panels(played: PolicyEpisodes, learned: LearnedEpisode | None) -> list[Panel]:
    """Return a panel for each track; with a learned reward, it and the true one share panels."""
    panels: list[Panel] = [[Curve(name, values)] for name, values in played.tracks.items()]
    if learned is None:
        return panels
    now = [Curve("learned reward", learned.learned, learned.spread), Curve("true", learned.true)]
    sums = [
        Curve("learned, so far", learned.learned.cumsum()),
        Curve("true, so far", learned.true.cumsum()),
    ]
    return [*panels[:-1], now, sums]  # the last track is the true reward


def _reward_of(run: Run, seed: int | None) -> tuple[LearnedReward | None, str]:
    """Return the learned reward of a run that was taught, and a note if it cannot be read."""
    try:
        return reward_taught(run, seed), ""
    except UserFacingError as error:  # the policies can be watched all the same
        return None, f"the learned reward is not shown: {error}"


def _map(spec: EnvSpec, player: PolicyPlayer, state: Any) -> PolicyMap | None:
    space = state_space_of(spec.id, spec)
    if space is None:
        return None

    def act(obs: np.ndarray) -> np.ndarray:
        return player.evaluation_action(state, obs, jax.random.key(0))

    return map_policy(space, act, lambda obs: player.assess(state, obs).get("value"))


def _row(
    one: CheckpointResult, frames: list[UInt8[np.ndarray, "H W 3"]]
) -> UInt8[np.ndarray, "H2 W2 3"]:
    """Return a few small frames of a clip in a row, below a caption."""
    chosen = np.linspace(0, len(frames) - 1, PANELS).round().astype(int)
    small = np.concatenate([enlarged(frames[index], SMALL) for index in chosen], 1)
    caption = Image.new("RGB", (small.shape[1], CAPTION), PAPER)
    text = f"after {one.env_steps or 0:,} env steps: return {one.episodes.returns.mean():.4g}"
    ImageDraw.Draw(caption).text((4, 4), text, (228, 231, 237), ImageFont.load_default(13))
    return np.concatenate([np.asarray(caption), small])
