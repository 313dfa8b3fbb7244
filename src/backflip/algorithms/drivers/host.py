"""The driver for environments outside JAX: a host loop around the same `act` and `update`.

The environments of all S seeds are the rows of one batch of S N, seed by seed; `act` and `update`
are compiled once, `vmap`ped over the seeds. What the algorithm, the metrics and the clips get is
what `backflip.algorithms.drivers.native` gives them.

The state inside a host environment cannot be saved. So every phase begins with a reset of all
environments, from seeds that follow from the learner's key, which follows from the seed and the
updates done. The episodes a phase leaves unfinished are cut there, as by a time limit: learnt from
as far as they went, counted nowhere. A run killed and resumed after any phase is then equal to one
never killed. Phases should last several episodes.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from backflip.algorithms.drivers.acting import HostPolicy
from backflip.algorithms.drivers.driver import (
    EVALUATION,
    LONGEST_EPISODE,
    RANDOM_POLICY,
    Evaluation,
    Learner,
    Phase,
    RewardFunction,
    RunPhase,
    Tell,
    TellPlayed,
    own_reward,
    tell_nobody,
)
from backflip.algorithms.drivers.episodes import episode_metrics, episode_totals
from backflip.algorithms.drivers.learning import (
    correction,
    layout_of,
    plan_of,
    refuse_summed_rewards,
    rollouts_of_warm_up,
)
from backflip.algorithms.drivers.seeds import over_seeds
from backflip.algorithms.drivers.thinning import thin, updates_per_record
from backflip.algorithms.interface import Algorithm, Metrics
from backflip.core.replay.draws import sample_on_host
from backflip.core.replay.layout import Layout, empty
from backflip.core.replay.preference import reprioritize
from backflip.core.replay.rows import add
from backflip.core.spec import EnvSpec, newest_frame
from backflip.core.types import Transition
from backflip.envs.random_actions import random_actions_on_host
from backflip.envs.spec import HasScenes, HostEnv

PHASE_START = 0x09A5E000
WARM_UP = 0x3A8A0000
REPLAY = 0x8E91A000
ENVS_OF_EVALUATION = 10  # of each seed, at least


@final
class HostDriver:
    """The driver of an environment outside JAX; the interface is `Driver`'s.

    Args:
        make_env: returns a batch of so many environments. Called with 1 for the spec, and again
            when a number of rows is needed that is not open.
        algorithm: the configured algorithm.
    """

    def __init__(self, make_env: Callable[[int], HostEnv], algorithm: Algorithm) -> None:
        self._make_env = make_env
        self._algorithm = algorithm
        self._env: HostEnv | None = None
        self._explorer = HostPolicy(algorithm.act)
        self._evaluator = HostPolicy(algorithm.exploit)
        self._spec: EnvSpec | None = None

    @property
    def spec(self) -> EnvSpec:
        """The environment's public facts."""
        if self._spec is None:
            self._spec = (self._env or self._batch(1)).spec
        return self._spec

    @property
    def algorithm(self) -> Algorithm:
        """What acts and learns."""
        return self._algorithm

    def start(self, seeds: Sequence[int]) -> Learner:
        """Return the learners of the given seeds before their first update, stacked."""

        def begin(seed: Array) -> Array:
            return jax.random.key_data(jax.random.split(jax.random.key(seed))[1])

        keys: Any = np.asarray(jax.jit(jax.vmap(begin))(np.asarray(seeds)))
        learned = [self._algorithm.init(seed) for seed in seeds]
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *learned)
        zeros: Any = np.zeros((len(seeds), self._algorithm.num_envs), np.float32)
        memory = empty(self._layout(len(seeds))) if self._algorithm.replay else ()
        return Learner(stacked, (), zeros, zeros.copy(), keys, memory)

    def warm_up(self, learners: Learner, tell: Tell = tell_nobody) -> Learner:
        """Return the learners with a replay of random env steps to start learning from."""
        rollouts = rollouts_of_warm_up(self._algorithm)
        if not rollouts:
            return learners
        keys = np.asarray(learners.key)
        count, layout = self._algorithm.num_envs, self._layout(len(keys))
        env = self._batch(layout.columns)
        obs = env.reset(_env_seeds(np.array([[WARM_UP, *key.tolist()] for key in keys]), count))
        draws = [np.random.default_rng([WARM_UP, *key.tolist()]) for key in keys]
        for rollout in range(rollouts):
            rows: list[Transition] = []
            for step in range(self._algorithm.rollout_length):
                action = np.stack(
                    [random_actions_on_host(self.spec.action, rng, count) for rng in draws]
                )
                row, obs = _row(env, obs, action, len(keys), recorded=False)
                rows.append(row)
                tell(rollout * self._algorithm.rollout_length + step + 1)
            last = rollout == rollouts - 1
            add(layout, learners.replay, _columns(_cut(_stack_steps(rows), last)))
        return learners

    def _layout(self, seeds: int) -> Layout:
        return layout_of(self.spec, self._algorithm, seeds)

    def phase(
        self,
        updates: int,
        *,
        reward: RewardFunction = own_reward,
        record_rollouts: int = 0,
        record_envs: int = 0,
    ) -> RunPhase:
        """Return a function of (learners, reward parameters) that does `updates` updates."""
        refuse_summed_rewards(self._algorithm, reward)
        learn = self._learner(reward)
        every = updates_per_record(updates)
        draw = jax.jit(jax.vmap(partial(_draw, self._algorithm.rollout_length), out_axes=(0, 1, 0)))

        def run(
            learners: Learner, parameters: Any, tell: Tell = tell_nobody
        ) -> tuple[Learner, Phase]:
            seeds = jax.tree.leaves(learners.algorithm)[0].shape[0]
            env = self._batch(seeds * self._algorithm.num_envs)
            obs = env.reset(_env_seeds(np.asarray(learners.key), self._algorithm.num_envs))
            zeros: Any = np.zeros((seeds, self._algorithm.num_envs), np.float32)
            learners = learners._replace(episode_return=zeros, episode_length=zeros)
            metrics: list[Metrics] = []
            records: list[Metrics] = []
            kept: list[Transition] = []
            for update in range(updates):
                key, act_keys, update_key = map(np.asarray, draw(learners.key))
                if self._algorithm.restarts and update:
                    obs = env.reset(_env_seeds(np.asarray(learners.key), self._algorithm.num_envs))
                    learners = learners._replace(episode_return=zeros, episode_length=zeros)
                recorded = update >= updates - record_rollouts
                done = update * self._algorithm.rollout_length
                obs, batch = self._collect(
                    env,
                    learners.algorithm,
                    obs,
                    act_keys,
                    recorded=recorded,
                    tell=partial(_tell_of_more, tell, done),
                )
                if recorded:
                    kept.append(clip_material(self.spec, batch, record_envs))
                batch = batch._replace(scene=())
                last = update == updates - 1
                cut = last and not self._algorithm.restarts  # whose rollouts all end so
                learners, measured = learn(learners, batch, update_key, cut, parameters)
                learners = learners._replace(key=key)
                metrics.append(measured)  # read later: reading waits for the update
                if len(metrics) == every or last:
                    stacked: Any = jax.tree.map(lambda *rows: np.stack(rows, 1), *metrics)
                    records.append(thin(stacked, every))
                    metrics.clear()
                tell(done + self._algorithm.rollout_length)
            joined: Any = jax.tree.map(lambda *parts: np.concatenate(parts, 1), *records)
            record = jax.tree.map(lambda *rows: np.concatenate(rows, 1), *kept) if kept else None
            return learners, Phase(joined, record, every)

        return run

    def _learner(self, reward: RewardFunction) -> Callable[..., tuple[Learner, Metrics]]:
        """Return a function of (learners, rollout, key, whether it is the last, parameters)."""
        algorithm = self._algorithm
        learn = over_seeds(partial(_learn, algorithm, reward), donate=(0,))

        def at_once(
            learners: Learner, batch: Transition, key: np.ndarray, cut: bool, parameters: Any
        ) -> tuple[Learner, Any]:
            cuts = np.full(key.shape[0], cut)
            return learn(learners, batch, batch, key, cuts, parameters)

        def from_replay(
            learners: Learner, batch: Transition, key: np.ndarray, cut: bool, parameters: Any
        ) -> tuple[Learner, Any]:
            seeds, memory = key.shape[0], learners.replay
            layout = self._layout(seeds)
            add(layout, memory, _columns(_cut(batch, cut)))
            plan = plan_of(algorithm)
            rngs = [np.random.default_rng([REPLAY, *one.tolist()]) for one in key]
            shape, weighted = (plan.gradient_steps, plan.batch_size), correction(plan, memory.draws)
            drawn = sample_on_host(layout, memory, rngs, shape, float(weighted))
            lived = batch._replace(obs=(), next_obs=(), action=(), extra=())
            cuts = np.zeros(seeds, bool)
            learners = learners._replace(replay=())
            learned, measured = learn(learners, lived, drawn, key, cuts, parameters)
            if plan.priority is not None:
                errors = np.asarray(plan.priority.errors(learned.algorithm))
                memory = reprioritize(layout, memory, drawn, errors, plan.priority.exponent)
            return learned._replace(replay=memory), measured

        return from_replay if algorithm.replay is not None else at_once

    def random_record(
        self,
        seeds: Sequence[int],
        *,
        envs: int,
        env_steps: int,
        repeat: float,
        tell: Tell = tell_nobody,
    ) -> Transition:
        """Return what a random policy lives through, (seeds, env_steps, envs, ...) in NumPy.

        Invalid rows, where an environment only reset, are part of the record and marked.
        """
        env = self._batch(len(seeds) * envs)
        obs = env.reset(_env_seeds(np.array([[RANDOM_POLICY, seed] for seed in seeds]), envs))
        draws = [np.random.default_rng([RANDOM_POLICY, seed]) for seed in seeds]
        action = np.stack([random_actions_on_host(self.spec.action, rng, envs) for rng in draws])
        rows: list[Transition] = []
        for number in range(env_steps):
            row, obs = _row(env, obs, action, len(seeds), recorded=True)
            tell(number + 1)
            few = newest_frame(self.spec, row.obs), newest_frame(self.spec, row.next_obs)
            rows.append(row._replace(obs=few[0].copy(), next_obs=few[1].copy()))
            fresh = np.stack([random_actions_on_host(self.spec.action, rng, envs) for rng in draws])
            again = np.stack([rng.random(envs) < repeat for rng in draws])
            action = np.where(again.reshape(*again.shape, *(1,) * (action.ndim - 2)), action, fresh)
        return jax.tree.map(lambda *steps: np.stack(steps, 1), *rows)

    def evaluate(
        self,
        learners: Learner,
        seeds: Sequence[int],
        *,
        episodes: int,
        tell: TellPlayed = tell_nobody,
    ) -> Evaluation:
        """Play fresh episodes with each learner's policy; the same seed, the same starts.

        Episodes are played in rounds, one in each environment, every one from a seed of its own.
        There are N environments, or ten: a learner with one would take ten times as long. Where
        there is no time limit an episode is stopped after 10,000 env steps.
        """
        count = min(max(self._algorithm.num_envs, ENVS_OF_EVALUATION), episodes)
        env = self._batch(len(seeds) * count)
        rounds: list[tuple[np.ndarray, np.ndarray]] = []
        for number in range(-(-episodes // count)):
            entropy = [[EVALUATION, seed, number] for seed in seeds]
            so_far = partial(_tell_of_round, tell, tuple(rounds))
            rounds.append(self._play(env, learners.algorithm, entropy, so_far))
        returns, lengths = (
            np.concatenate(parts, 1)[:, :episodes] for parts in zip(*rounds, strict=True)
        )
        return Evaluation(returns, lengths, np.full_like(returns, np.nan))

    def close(self) -> None:
        """Free what the environments hold."""
        if self._env is not None:
            self._env.close()
            self._env = None

    def _batch(self, rows: int) -> HostEnv:
        """Return a batch of so many environments, the open one where it fits."""
        if self._env is None or self._env.num_envs != rows:
            self.close()
            self._env = self._make_env(rows)
        return self._env

    def _collect(
        self,
        env: HostEnv,
        states: Any,
        obs: np.ndarray,
        act_keys: np.ndarray,
        *,
        recorded: bool,
        tell: Tell,
    ) -> tuple[np.ndarray, Transition]:
        """Return the observations after T env steps, and the transitions (S, T, N).

        `tell` is told of each env step but the last.
        """
        seeds = act_keys.shape[1]
        act = self._explorer.of(states, _by_seed(obs, seeds), act_keys[0])
        rows: list[Transition] = []
        for number, keys in enumerate(act_keys):
            if number:
                tell(number)
            action, extra = act(_by_seed(obs, seeds), keys)
            row, obs = _row(env, obs, np.asarray(action), seeds, recorded=recorded)
            rows.append(row._replace(extra=jax.tree.map(np.asarray, extra)))
        return obs, _stack_steps(rows)

    def _play(
        self, env: HostEnv, states: Any, entropy: list[list[int]], tell: TellPlayed
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return true returns and lengths (S, N) of one episode in every environment."""
        obs = env.reset(_env_seeds(np.array(entropy), env.num_envs // len(entropy)))
        draws = [np.random.default_rng(numbers) for numbers in entropy]
        alive = np.ones(env.num_envs, bool)
        total, length = np.zeros(env.num_envs), np.zeros(env.num_envs)
        limit = self.spec.max_episode_steps or LONGEST_EPISODE
        no_keys = np.zeros((len(draws), 2), np.uint32)
        act = self._evaluator.of(states, _by_seed(obs, len(draws)), no_keys)
        while alive.any() and length.max() < limit:
            keys = np.stack([rng.integers(2**32, size=2, dtype=np.uint32) for rng in draws])
            action = np.asarray(act(_by_seed(obs, len(draws)), keys))
            step = env.step(action.reshape(-1, *action.shape[2:]))
            total += np.where(alive, step.reward, 0.0)
            length += alive
            alive &= ~(step.terminated | step.truncated)
            obs = step.obs
            tell(int((~alive).sum()), int(length.sum()))
        return _by_seed(total, len(entropy)), _by_seed(length, len(entropy))


def _tell_of_more(tell: Tell, before: int, env_steps: int) -> None:
    """Tell of env steps, and of those before them."""
    tell(before + env_steps)


def _tell_of_round(
    tell: TellPlayed, before: Sequence[tuple[np.ndarray, np.ndarray]], ended: int, env_steps: int
) -> None:
    """Tell of a round of episodes, and of those before it: their returns and lengths."""
    tell(
        sum(lengths.size for _, lengths in before) + ended,
        sum(int(lengths.sum()) for _, lengths in before) + env_steps,
    )


def _draw(env_steps: int, key_data: Array) -> tuple[Array, Array, Array]:
    """Return raw key data: the learner's next, one per env step, one for the update."""
    key, act, update = jax.random.split(jax.random.wrap_key_data(key_data), 3)
    data = jax.random.key_data
    return data(key), data(jax.random.split(act, env_steps)), data(update)


def _learn(
    algorithm: Algorithm,
    reward: RewardFunction,
    learner: Learner,
    lived: Transition,
    batch: Transition,
    key_data: Array,
    cut: Bool[Array, ""],
    parameters: Any,
) -> tuple[Learner, Metrics]:
    """Return one seed's learner after an update, and what was measured.

    Episodes are counted in what was `lived`; the batch is that again, or rows from a replay.
    Where `cut` holds, the environments are reset after this batch: whatever episode goes on then
    is truncated for the algorithm, but is no episode in the statistics.
    """
    total, length, returns, lengths = episode_totals(
        learner.episode_return, learner.episode_length, lived
    )
    ended = (lived.terminated | lived.truncated) & lived.valid
    episodes = episode_metrics(returns, lengths, ended)
    last = jnp.arange(batch.reward.shape[0])[:, None] == batch.reward.shape[0] - 1
    truncated = batch.truncated | (last & cut & ~batch.terminated)
    batch = batch._replace(reward=reward(parameters, batch), truncated=truncated)
    state, metrics = algorithm.update(learner.algorithm, batch, jax.random.wrap_key_data(key_data))
    learner = learner._replace(algorithm=state, episode_return=total, episode_length=length)
    return learner, metrics | episodes


def _cut(batch: Transition, cut: bool) -> Transition:
    """Return transitions (S, T, N), truncated at the end if the environments are reset then."""
    truncated = batch.truncated.copy()
    truncated[:, -1] |= cut & ~batch.terminated[:, -1]
    return batch._replace(truncated=truncated)


def _stack_steps(rows: Sequence[Transition]) -> Transition:
    """Return T transitions (S, N, ...) as one with axes (S, T, N, ...)."""
    return jax.tree.map(lambda *steps: np.stack(steps, 1), *rows)


def _columns(batch: Transition) -> Transition:
    """Return transitions (S, T, N, ...) with all seeds' environments side by side, (T, S N)."""

    def join(x: np.ndarray) -> np.ndarray:
        return np.moveaxis(x, 0, 1).reshape(x.shape[1], -1, *x.shape[3:])

    return jax.tree.map(join, batch._replace(extra=(), scene=()))


def _row(
    env: HostEnv, obs: np.ndarray, action: np.ndarray, seeds: int, *, recorded: bool
) -> tuple[Transition, np.ndarray]:
    """Step every environment; return the transitions (S, N, ...) and what to act on next.

    Where the row is to be `recorded`, it has the scene of `obs`, read before the step is taken:
    afterwards the environment may have been reset.
    """
    scene = env.scenes() if recorded and isinstance(env, HasScenes) else None
    step = env.step(action.reshape(-1, *action.shape[2:]))
    fold = partial(_by_seed, seeds=seeds)
    row = Transition(
        fold(obs),
        action,
        fold(step.reward),
        fold(step.terminated),
        fold(step.truncated),
        fold(step.next_obs),
        fold(step.valid),
        extra=(),
        scene=() if scene is None else fold(scene),
    )
    return row, step.obs


def clip_material(spec: EnvSpec, batch: Transition, envs: int) -> Transition:
    """Return what clips are cut from: the first environments, only the newest frames."""

    def first(x: np.ndarray) -> np.ndarray:
        return x[:, :, :envs]

    few = jax.tree.map(first, batch._replace(extra=()))
    return few._replace(obs=newest_frame(spec, few.obs), next_obs=newest_frame(spec, few.next_obs))


def _by_seed(rows: np.ndarray, seeds: int) -> np.ndarray:
    """Return (S N, ...) as (S, N, ...)."""
    return rows.reshape(seeds, -1, *rows.shape[1:])


def _env_seeds(entropy: np.ndarray, count: int) -> list[int]:
    """Return `count` environment seeds for each row of numbers, row after row, below 2^31."""
    drawn = [
        np.random.SeedSequence([PHASE_START, *row.tolist()]).generate_state(count)
        for row in entropy
    ]
    return (np.concatenate(drawn) >> 1).tolist()
