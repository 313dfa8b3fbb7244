"""The reward that a run of `teach` has learned, for other programs: NumPy in, NumPy out."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import jax
import numpy as np
from jaxtyping import Float32

from backflip.core.checkpoint import CHECKPOINT, has_checkpoint, load_arrays
from backflip.core.learned_actions import learned_actions
from backflip.core.spaces import Box, Discrete, Group, InvalidValue, Space, learned
from backflip.core.spec import EnvSpec, OwnSpaces, changes, described, newest_frame
from backflip.core.trees import row_of, unflatten
from backflip.core.types import Transition
from backflip.envs.spaces import learned_action, learned_observation, own_spaces
from backflip.rewards.inputs import observation_size
from backflip.rewards.interface import ObservedClip, RewardModel
from backflip.rewards.registry import REWARD_MODELS, make_reward_model
from backflip.training.build import env_args_of, spec_of
from backflip.training.named_code import refuse_code_of
from backflip.training.policy import DAMAGED, POLICY
from backflip.training.queries.initial_labels import REWARD
from backflip.training.spec_json import spec_from_json
from backflip.training.teaching.config import saved_teaching
from runshelf.errors import DamagedFile, UsageError, UserFacingError, one_line
from runshelf.received_json import parse_record
from runshelf.store.records import from_json
from runshelf.store.run import Run

if TYPE_CHECKING:
    import gymnasium

ROWS_AT_ONCE = 1_024


@final
class LearnedReward:
    """The reward model of one seed, in the environment's own spaces.

    A call returns the reward of one step, the same number as `reward`. No true reward is read.

    Args:
        name: the run and its environment, for messages.
        spec: the environment's spec.
        model: the reward model.
        parameters: its parameters of one seed.
        clip_length: steps in a clip.

    Attributes:
        name: the run and its environment.
        spec: the environment's spec.
    """

    def __init__(
        self, name: str, spec: EnvSpec, model: RewardModel, parameters: Any, clip_length: int
    ) -> None:
        self.name, self.spec, self._length = name, spec, clip_length
        self._model, self._parameters = model, parameters
        self._predict: Any = jax.jit(model.predict)

    def reward(self, obs: Any, action: Any, next_obs: Any, *, terminated: bool = False) -> float:
        """Return the reward of one step.

        Args:
            obs: the observation before the step; stacked frames where training stacked them.
            action: the action, in the environment's own action space.
            next_obs: the true next observation; at an episode's end its last, not the first of
                the next.
            terminated: the step ended the episode by the task's own rule. `linear` and `network`
                ignore it: the last step has a reward like any other, and later steps have none.

        Raises:
            UsageError: an argument is not in its space.
        """
        before, act, after, single = self._checked(obs, action, next_obs)
        if not single:
            raise UsageError("`reward` takes one step; for a batch of steps call `rewards`")
        return float(self._of(before, act, after, np.array([terminated], bool))[0])

    __call__ = reward

    def rewards(
        self, obs: Any, action: Any, next_obs: Any, *, terminated: Any = None
    ) -> Float32[np.ndarray, " B"]:
        """Return the rewards of a batch of steps: every array has a leading axis of steps.

        Args:
            obs: the observations before the steps.
            action: the actions.
            next_obs: the true next observations.
            terminated: which steps ended an episode by the task's own rule; none if None.

        Raises:
            UsageError: an argument is not in its space, or batch sizes differ.
        """
        before, act, after, _ = self._checked(obs, action, next_obs)
        ended = np.zeros(len(act), bool) if terminated is None else np.asarray(terminated)
        if ended.shape != (len(act),) or ended.dtype != bool:
            got = f"{ended.shape} of {ended.dtype}"
            raise UsageError(f"`terminated` must have shape ({len(act)},) of bool, got {got}")
        return self._of(before, act, after, ended)

    def spread(self, obs: Any, action: Any, next_obs: Any) -> Float32[np.ndarray, " B"]:
        """Return how much the model's members disagree: the standard deviation of each reward.

        Members of `linear` are scaled to the reward over the whole batch, so pass an episode or
        more, not single steps. All zero before the first label.

        Raises:
            UsageError: an argument is not in its space, or batch sizes differ.
        """
        before, act, after, _ = self._checked(obs, action, next_obs)
        clips = self._as_clips(newest_frame(self.spec, before), act, newest_frame(self.spec, after))
        opinions = self._model.opinions(self._parameters, clips) if clips else None
        if opinions is None:
            return np.zeros(len(act), np.float32)
        return np.asarray(opinions.spread, np.float32).reshape(-1)[: len(act)]

    def wrap(self, env: "gymnasium.Env[Any, Any]") -> "gymnasium.Env[Any, Any]":
        """Return the environment with this reward in place of its own; see `RewardEnv`.

        Raises:
            UsageError: it is not a `gymnasium.Env`, its spaces differ from those of the run, or it
                has a learned reward already.
        """
        from backflip.export.reward_env import RewardEnv  # noqa: PLC0415

        return RewardEnv(env, self)

    def wrap_vec_env(self, vec_env: Any) -> Any:
        """Return a `VecEnv` of Stable-Baselines3 with this reward in place of its own.

        Wrap the environments themselves, before anything that changes observations (`VecNormalize`,
        `VecTransposeImage`). The true reward is in each `info["true_reward"]`.

        Raises:
            UsageError: Stable-Baselines3 is not installed, `vec_env` is not a `VecEnv`, or its
                spaces differ from those of the run.
        """
        from backflip.export.reward_vec_env import reward_vec_env  # noqa: PLC0415

        return reward_vec_env(vec_env, self)

    def __repr__(self) -> str:
        """Return the run and the environment."""
        return f"LearnedReward({self.name})"

    def _of(
        self, obs: np.ndarray, action: np.ndarray, next_obs: np.ndarray, terminated: np.ndarray
    ) -> Float32[np.ndarray, " B"]:
        rewards = np.zeros(len(action), np.float32)
        for start in range(0, len(action), ROWS_AT_ONCE):
            some = slice(start, start + ROWS_AT_ONCE)
            rewards[some] = self._of_some(obs[some], action[some], next_obs[some], terminated[some])
        if not np.isfinite(rewards).all():
            step = int(np.flatnonzero(~np.isfinite(rewards))[0])
            raise UserFacingError(
                f"{self.name} is {rewards[step]} in step {step}, expected a finite number: are "
                "observations of the same kind as those that it was learned from?"
            )
        return rewards

    def _of_some(
        self, obs: np.ndarray, action: np.ndarray, next_obs: np.ndarray, terminated: np.ndarray
    ) -> Float32[np.ndarray, " B"]:
        """Return the rewards of a few steps, padded to a power of two: few programs are compiled.

        The true reward is NaN, so a model that reads it is noticed.
        """
        count = len(action)
        room = 1 << (count - 1).bit_length()

        def padded(rows: np.ndarray) -> np.ndarray:
            return np.concatenate([rows, np.repeat(rows[-1:], room - count, 0)])[None]

        batch = Transition(
            obs=padded(obs),
            action=padded(action),
            reward=np.full((1, room), np.nan, np.float32),
            terminated=padded(terminated),
            truncated=np.zeros((1, room), bool),
            next_obs=padded(next_obs),
            valid=np.ones((1, room), bool),
            extra=(),
        )
        return np.asarray(self._predict(self._parameters, batch), np.float32)[0, :count]

    def _checked(
        self, obs: Any, action: Any, next_obs: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
        """Return a batch of steps as the model gets it, and whether there was only one step."""
        own = self.spec.own_spaces
        try:
            before, one = self._observed(obs, "obs")
            after, one_after = self._observed(next_obs, "next_obs")
            act, one_action = learned_actions(own.action, action, self.spec.action)
        except InvalidValue as error:
            raise UsageError(f"{self.name}: {error}") from error
        except (ValueError, TypeError) as error:
            problem = "`obs`, `action` and `next_obs` must be arrays of numbers"
            raise UsageError(f"{self.name}: {problem}: {one_line(error)}") from error
        if not np.isfinite(act).all():
            raise UsageError(f"{self.name}: `action` has numbers that are not finite")
        if len({len(before), len(act), len(after)}) > 1 or len({one, one_after, one_action}) > 1:
            got = ", ".join(str(len(rows)) for rows in (before, act, after))
            raise UsageError(
                f"{self.name}: `obs`, `action` and `next_obs` must be one step each, or batches "
                f"of one size, got {got} rows"
            )
        return before, act, after, one

    def _observed(self, obs: Any, name: str) -> tuple[np.ndarray, bool]:
        """Return observations as the model gets them, and whether there was only one.

        Raises:
            InvalidValue: they are not in their space.
        """
        space, own = self.spec.observation, self.spec.own_spaces.observation
        if not isinstance(own, Group):
            kinds, what = ("iu", "whole numbers") if self.spec.is_image else ("biuf", "numbers")
            found = np.asarray(obs).dtype
            if found.kind not in kinds:
                raise InvalidValue(f"`{name}` must be an array of {what}, got {found}")
        try:
            with np.errstate(over="ignore"):  # what overflows is not finite, and refused
                rows, single = learned(own, obs, space)
        except InvalidValue as error:
            raise InvalidValue(str(error).replace("`obs`", f"`{name}`")) from error
        if not np.isfinite(rows).all():
            raise InvalidValue(f"`{name}` has numbers that are not finite")
        return rows, single

    def _as_clips(
        self, obs: np.ndarray, action: np.ndarray, next_obs: np.ndarray
    ) -> list[ObservedClip]:
        """Return steps as clips of the run's length; the last is filled with steps not alive."""
        length, count = self._length, len(action)

        def clip(start: int) -> ObservedClip:
            steps = np.arange(start, start + length)
            index = np.minimum(steps, count - 1)
            return ObservedClip(obs[index], action[index], next_obs[index], steps < count)

        return [clip(start) for start in range(0, count, length)]


def load_learned_reward(run: Run, seed: int | None = None) -> LearnedReward:
    """Return the newest reward model of one seed of a run of `teach`, by default the first seed.

    Raises:
        UsageError: the run has no reward model, or not this seed.
        DamagedFile: the reward model cannot be read.
    """
    _refuse_without_reward(run)
    refuse_code_of(run)
    if seed is not None and seed not in run.seeds:
        listed = ", ".join(map(str, run.seeds))
        raise UsageError(f"run `{run.short}` has no seed {seed}; it has {listed}")
    path = run.folder / CHECKPOINT
    arrays = _arrays_of_reward(path)
    try:
        spec, config = _spec_of_run(run), saved_teaching(run.config["teaching"])
    except DAMAGED as error:
        raise DamagedFile(
            f"run `{run.short}` was not written by this version of backflip; open it with "
            "the one that did"
        ) from error
    if any(array.shape[:1] != (len(run.seeds),) for array in arrays.values()):
        raise DamagedFile(
            f"`{path}` is damaged: its reward model does not have one row for each seed"
        )
    if config.reward_model in REWARD_MODELS:
        _refuse_other_size(path, arrays, spec)
    model = make_reward_model(config.reward_model, spec, config.labels, config.clip_length)
    parameters = unflatten(model.initial(len(run.seeds)), arrays)
    row = 0 if seed is None else run.seeds.index(seed)
    name = f"the reward of run `{run.short}` in `{spec.id}`"
    return LearnedReward(name, spec, model, row_of(parameters, row), config.clip_length)


def refuse_other_spaces(reward: LearnedReward, observation: Any, action: Any) -> None:
    """Refuse an environment whose spaces differ from those of the reward.

    Args:
        reward: the reward.
        observation: the environment's Gymnasium observation space.
        action: its Gymnasium action space.

    Raises:
        UsageError: the message has the differences.
    """
    spec = reward.spec
    own = own_spaces(spec.id, observation, action)
    now = EnvSpec(
        id=spec.id,
        observation=learned_observation(own.observation),
        action=learned_action(own.action),
        max_episode_steps=None,
        own=own,
    )
    changed = changes(spec, now) or _other_kinds(spec, own)
    if not changed and not isinstance(spec.action, Discrete) and _other_bounds(spec, now):
        changed = "its actions have other bounds"
    if changed:
        raise UsageError(f"{reward.name} does not fit this environment: {changed}")


def _other_kinds(spec: EnvSpec, now: OwnSpaces) -> str:
    """Return which of an environment's own spaces takes other values than before, in words.

    Spaces of numbers may have another shape, since they are flattened. A built-in environment
    gives choices as numbers, so that Gymnasium's `FrozenLake-v1` fits the built-in one.
    """
    before = spec.own_spaces
    pairs = [("action", before.action, now.action)]
    if spec.own is not None or not isinstance(now.observation, Discrete):
        pairs.append(("observation", before.observation, now.observation))
    said = ((role, _kind(old), _kind(new)) for role, old, new in pairs)
    return next((f"its {role} was {old}, now {new}" for role, old, new in said if old != new), "")


def _kind(space: Space) -> str:
    """Return what values of a space are, in words: numbers, choices and their first, or a dict."""
    if isinstance(space, Box):
        return "numbers"
    if isinstance(space, Group):
        parts = [f"{name}: {_kind(part)}" for name, part in space.parts.items()]
        return f"a {'dict' if space.named else 'tuple'} ({'; '.join(parts)})"
    first = np.unique(space.start)
    return described(space) + (f", from {', '.join(map(str, first))} on" if first.any() else "")


def _other_bounds(spec: EnvSpec, now: EnvSpec) -> bool:
    before, after = spec.action, now.action
    if isinstance(before, Discrete) or isinstance(after, Discrete):
        return False
    return not (np.allclose(before.low, after.low) and np.allclose(before.high, after.high))


def _refuse_without_reward(run: Run) -> None:
    kind = run.manifest["command"]
    if kind != "teach" or not has_checkpoint(run.folder / CHECKPOINT):
        raise UsageError(
            f"run `{run.short}` of kind `{kind}` has no reward model: runs of teach save one after "
            "their first phase"
        )


def _arrays_of_reward(path: Path) -> dict[str, np.ndarray]:
    prefix = f"{REWARD}."
    arrays = load_arrays(path).arrays
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def _spec_of_run(run: Run) -> EnvSpec:
    """Return the spec saved with the policy; that of the environment if none, or an old one, is.

    An old one lacks the largest value of a pixel, by which images are divided.
    """
    if has_checkpoint(run.folder / POLICY):
        about = from_json(parse_record(load_arrays(run.folder / POLICY).metadata["about"]))
        facts: Mapping[str, Any] = about["spec"]
        spec = spec_from_json(facts)
        if not spec.is_image or "high" in facts["observation"]:
            return spec
    return spec_of(run.manifest["env"], env_args_of(run))


def _refuse_other_size(path: Path, arrays: Mapping[str, np.ndarray], spec: EnvSpec) -> None:
    """Refuse a file with fewer numbers than an observation has, before memory is taken for it.

    Raises:
        DamagedFile: the spec is of another environment than the reward model.
    """
    if sum(array.size for array in arrays.values()) < observation_size(spec):
        raise DamagedFile(f"`{path}` is damaged: its reward model is for other observations")
