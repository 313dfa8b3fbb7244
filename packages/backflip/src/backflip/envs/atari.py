"""Atari 2600 games, batched in ALE's C++ threads, with the papers' preprocessing.

An action is repeated for `frameskip` frames. The observation is the pixelwise maximum of the last
two frames, grey, resized to 84 x 84 or another size, stacked with the three previous pictures (Mnih
et al. 2015, DOI 10.1038/nature14236, "Preprocessing"). At an episode's start ALE leaves the three
older pictures black. Episodes begin with up to `noop_max` frames of no-ops. The reward is the
game's score; algorithms clip it themselves, so that returns stay true.

Sticky actions: in every frame the emulator repeats the previous action with a probability, which
is .25 for the -v5 ids (Machado et al. 2018, arXiv:1709.06009, 5).
"""

from dataclasses import dataclass
from typing import Any, final

import ale_py
import numpy as np
from ale_py import roms
from ale_py.vector_env import AtariVectorEnv
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from backflip.core.settings import LARGEST_COUNT
from runshelf.cores import usable_cores
from runshelf.errors import UsageError

STACK = 4
LEAST_SIZE = 20  # smaller pictures show nothing recognisable
FRAMES = 108_000  # ALE's limit of an episode: half an hour at 60 frames per second
# Snow begins in frame 3,072 of a race in Enduro; no-ops take up to 30 frames.
FRAMES_BEFORE_WEATHER = 3_000
# Rows (of 210) of the screen that show the score, and in BeamRider and Enduro the number of
# enemies. Christiano et al. 2017, arXiv:1706.03741, appendix A.2, blank them.
SCORE_ROWS = {
    "beam_rider": (5, 42),
    "breakout": (0, 17),
    "enduro": (160, 210),
    "pong": (0, 24),
    "qbert": (5, 16),
    "seaquest": (7, 19),
    "space_invaders": (9, 21),
}
MOST_HELD = 1_000  # largest `frameskip` and `noop_max`: 17 seconds of play
SCREEN_ROWS = 210  # rows of the screen, and the largest `size`
# Differences of the older ids of a game, which observe raw frames.
OLDER_IDS = [
    ("as -v4", "frame skip 2, 3 or 4 at random, sticky actions 0"),
    ("as -v0", "frame skip 2, 3 or 4 at random, sticky actions 0.25"),
    ("as Deterministic-v4", "frame skip 4, sticky actions 0"),
    ("as NoFrameskip-v4", "frame skip 1, sticky actions 0; papers wrapped it to skip 4 frames"),
]

_ale: Any = ale_py
_ale.ALEInterface.setLoggerMode(_ale.LoggerMode.Error)  # suppresses a banner per game


@dataclass(frozen=True)
class AtariSettings:
    """The arguments that `--env-arg` can set.

    Attributes:
        size: side of an observation in pixels; 42 needs a quarter of the memory of 84.
        frameskip: frames per env step, 1 to 1,000.
        repeat_action_probability: probability, in every frame, of repeating the previous action.
        full_action_space: use all 18 joystick actions instead of the game's own.
        episodic_life: losing a life ends the episode; ALE then begins a new game.
        noop_max: largest number of no-op frames at an episode's start, up to 1,000.
        fire_reset: press FIRE at an episode's start, if the game has it.
        blank_score: blacken the score.
        preference: Enduro for preferences: hides the rows with speed and rank, and ends before
            the weather changes.
        max_episode_steps: the time limit in env steps; 0 for ALE's limit of 108,000 frames.
    """

    size: int = 84
    frameskip: int = 4
    repeat_action_probability: float = 0.25
    full_action_space: bool = False
    episodic_life: bool = False
    noop_max: int = 30
    fire_reset: bool = True
    blank_score: bool = False
    preference: bool = False
    max_episode_steps: int = 0

    def limit(self) -> int:
        """Return the time limit in env steps."""
        frames = FRAMES_BEFORE_WEATHER if self.preference else FRAMES
        return self.max_episode_steps or frames // self.frameskip


@final
class AtariBatch(VectorEnv[Any, Any, Any]):
    """A batch of N copies of one game, with the stacked frames as channels.

    Args:
        game: ALE's name of the game, such as `space_invaders`.
        num_envs: N.
        autoreset_mode: when episodes begin.
        settings: the user's settings.

    Raises:
        UsageError: a setting is invalid, or not supported for this game.
    """

    def __init__(
        self, game: str, num_envs: int, autoreset_mode: AutoresetMode, settings: AtariSettings
    ) -> None:
        _check(game, settings)
        self._blank = _blank_rows(game, settings)
        self._games = AtariVectorEnv(
            game,
            num_envs,
            num_threads=min(num_envs, usable_cores()),
            max_num_frames_per_episode=settings.limit() * settings.frameskip,
            repeat_action_probability=settings.repeat_action_probability,
            full_action_space=settings.full_action_space,
            autoreset_mode=autoreset_mode,
            img_height=settings.size,
            img_width=settings.size,
            stack_num=STACK,
            frameskip=settings.frameskip,
            maxpool=settings.frameskip > 1,
            noop_max=settings.noop_max,
            episodic_life=settings.episodic_life,
            reward_clipping=False,
            use_fire_reset=settings.fire_reset,
        )
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": autoreset_mode}
        shape = (settings.size, settings.size, STACK)
        self.single_observation_space = Box(0, 255, shape, np.uint8)
        self.single_action_space: Any = self._games.single_action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode in every row, with one seed per row if given."""
        del options
        seeds = None if seed is None else np.array([_ale_seed(one) for one in seed])
        return self._see(self._games.reset(seed=seeds)[0]), {}

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step every row, or begin its next episode, depending on the autoreset mode."""
        if actions.min() < 0 or actions.max() >= self.single_action_space.n:
            # With an invalid action ALE's threads would hang.
            raise ValueError(f"`actions` must be in {self.single_action_space}, got {actions}")
        obs, reward, terminated, truncated, infos = self._games.step(actions)
        finals = {key: self._see(infos[key]) for key in ("final_obs",) if key in infos}
        return self._see(obs), reward, terminated, truncated, finals

    def _see(self, frames: np.ndarray) -> np.ndarray:
        """Return a copy with axes (N, row, column, frame), with the blanked rows black."""
        pictures = np.ascontiguousarray(np.moveaxis(frames, 1, -1))
        pictures[:, self._blank] = 0
        return pictures


def facts(env_id: str, game: str, settings: AtariSettings) -> list[tuple[str, str]]:
    """Return the facts of a game with its settings as (name, text) pairs.

    Raises:
        UsageError: a setting is invalid, or not supported for this game.
    """
    _check(game, settings)
    size = settings.size
    skip, limit, sticky = settings.frameskip, settings.limit(), settings.repeat_action_probability
    rows = _blank_rows(game, settings)
    actions = _actions(game, settings.full_action_space)
    kind = "all of the joystick" if settings.full_action_space else "the game's own"
    variant = "for preferences: no speedometer, ends before the weather changes"
    return [
        ("id", env_id),
        ("game", game),
        ("observation", f"{size} x {size} x {STACK} uint8; {STACK} pictures, oldest first"),
        ("at the start", "missing older pictures are black"),
        ("colour", "grey"),
        ("blanked", f"rows {rows.start}-{rows.stop - 1} of {size}" if rows.stop else "nothing"),
        ("frame skip", f"{skip}: an action is repeated for {skip} of 60 frames per second"),
        ("max-pool", "over the last two frames" if skip > 1 else "no, there is only one frame"),
        ("sticky actions", f"{sticky:g}: probability per frame to repeat the previous action"),
        ("no-ops", f"up to {settings.noop_max} frames at an episode's start"),
        ("FIRE at the start", _fire(game, settings)),
        (
            "life loss",
            "ends the episode, and a new game begins"
            if settings.episodic_life
            else "does not end the episode",
        ),
        ("actions", f"{len(actions)}, {kind}: {', '.join(actions)}"),
        ("reward", "the game's score, summed over the frames, not clipped"),
        ("time limit", f"{limit:,} env steps = {limit * skip:,} frames"),
        *([("variant", variant)] if settings.preference else []),
        *OLDER_IDS,
    ]


def _fire(game: str, settings: AtariSettings) -> str:
    known = "FIRE" in _actions(game, full=False)
    return "no" if not settings.fire_reset else "pressed" if known else "the game has none"


def _check(game: str, settings: AtariSettings) -> None:
    """Raise a UsageError that lists all invalid settings."""
    chance = settings.repeat_action_probability
    held = min(max(settings.frameskip, 1), MOST_HELD)
    longest = LARGEST_COUNT // held  # ALE counts frames in 32 bits
    wrong = [
        f"`{name}` must be {wanted}, got {getattr(settings, name)}"
        for name, wanted, fits in (
            (
                "size",
                f"from {LEAST_SIZE} to {SCREEN_ROWS}",
                LEAST_SIZE <= settings.size <= SCREEN_ROWS,
            ),
            ("frameskip", f"from 1 to {MOST_HELD:,}", 1 <= settings.frameskip <= MOST_HELD),
            ("repeat_action_probability", "from 0 to 1", 0 <= chance <= 1),
            ("noop_max", f"from 0 to {MOST_HELD:,}", 0 <= settings.noop_max <= MOST_HELD),
            (
                "max_episode_steps",
                f"at least 1 and at most {longest:,}, or 0 for ALE's",
                0 <= settings.max_episode_steps <= longest,
            ),
        )
        if not fits
    ]
    if settings.blank_score and game not in SCORE_ROWS:
        known = ", ".join(SCORE_ROWS)
        wrong.append(f"`blank_score` supports only {known}, not {game}")
    if settings.preference and game != "enduro":
        wrong.append(f"`preference` supports only ALE/Enduro-v5, not {game}; try blank_score=true")
    if wrong:
        raise UsageError(f"--env-arg {'; '.join(wrong)}")


def _blank_rows(game: str, settings: AtariSettings) -> slice:
    """Return the rows of the resized picture that contain the score, if they are blanked."""
    if not settings.blank_score and not settings.preference:
        return slice(0, 0)
    (first, after), size = SCORE_ROWS[game], settings.size
    return slice(first * size // SCREEN_ROWS, -(-after * size // SCREEN_ROWS))


def _actions(game: str, full: bool) -> list[str]:
    """Return the names of a game's actions."""
    ale = _ale.ALEInterface()
    ale.loadROM(roms.get_rom_path(game))
    actions = ale.getLegalActionSet() if full else ale.getMinimalActionSet()
    return [action.name for action in actions]


def _ale_seed(seed: int) -> int:
    """Return a seed for ALE, which has 31 bits, from a seed of any size."""
    return int(np.random.SeedSequence(seed).generate_state(1)[0] >> 1)
