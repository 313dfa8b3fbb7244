"""A film of a run's newest policy, which the labelling page shows at the end."""

from pathlib import Path

import jax
import numpy as np

from backflip.envs.views.choose import view_of
from backflip.inspect.clip_files import drawable, frames_of
from backflip.inspect.open_env import open_env
from backflip.inspect.policy_episodes import PolicyPlayer
from backflip.preferences.films import FILMS, Film, write_film
from backflip.training.build import env_args_of
from backflip.training.policy import POLICY, load_saved_policy
from runshelf.store.run import open_run

MOST_PIXELS = 16_000_000  # of all frames together; a phone must hold them decoded


def film_of_policy(run_folder: Path) -> Film:
    """Play one episode with the newest policy of a run's first seed, and write its film.

    The film shows the beginning of the episode, as much as `MOST_PIXELS` allows.

    Raises:
        UserFacingError: there is no policy, the environment failed, or the disk is full.
    """
    run = open_run(run_folder)
    acting = load_saved_policy(run.folder / POLICY)
    env_id, args = run.manifest["env"], env_args_of(run)
    env = open_env(env_id, args, 1)
    try:
        view, _ = drawable(view_of(env_id, env.spec, args), env)
        player = PolicyPlayer(acting.algorithm)
        played = player.play(env, jax.device_put(acting.state), seed=run.seeds[0])
    finally:
        env.close()
    clip = frames_of(view, env.spec, played.recording, with_agents=False)
    height, width, _ = clip.frames[0].shape
    frames = np.stack(clip.frames[: max(1, MOST_PIXELS // (height * width))])
    return write_film(run.folder / FILMS, frames, fps=clip.fps, pixelated=view.pixelated)
