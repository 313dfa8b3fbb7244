"""The driver for environments in JAX: many updates of many seeds in one compiled program.

One seed's life is a `Learner`. A phase carries it through a number of updates: a rollout of T
env steps in N environments, the reward looked up, one `update`. An off-policy algorithm learns from
rows drawn from its replay, which is part of the learner. The seeds are shared out over the
devices, ten seeds in one program: on a CPU one after the other, which is as fast as `vmap` there
and makes a seed's bits independent of the seeds beside it; elsewhere `vmap`ped. Rewards may come
from a reward model, whose parameters are data: a new reward model never recompiles anything.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, PRNGKeyArray

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
    layout_of,
    learn_from_replay,
    learn_once,
    refuse_summed_rewards,
    rollouts_of_warm_up,
)
from backflip.algorithms.drivers.seeds import over_seeds, seed_keys
from backflip.algorithms.drivers.thinning import thin, updates_per_record
from backflip.algorithms.drivers.waiting import wait_for
from backflip.algorithms.interface import Algorithm, Metrics
from backflip.core.replay.layout import empty
from backflip.core.replay.rows import add
from backflip.core.spec import EnvSpec, newest_frame
from backflip.core.trees import stack_rows, where_rows
from backflip.core.types import Transition
from backflip.envs.random_actions import random_actions
from backflip.envs.spec import HasScene, KnowsOptimum, NativeEnv, step_within_bounds

MOST_TOLD = 0.95  # the share of a phase that is done at most, before it is known to be


def start(env: NativeEnv, algorithm: Algorithm, seeds: list[int]) -> Learner:
    """Return the learners of the given seeds before their first update, stacked."""

    def begin(seed: Array) -> tuple[Any, Array]:
        reset, rest = jax.random.split(jax.random.key(seed))
        keys = jax.random.split(reset, algorithm.num_envs)
        return jax.vmap(env.reset)(keys), jax.random.key_data(rest)

    states, keys = jax.tree.map(np.asarray, jax.jit(jax.vmap(begin))(np.array(seeds)))
    learned = [algorithm.init(seed) for seed in seeds]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *learned)
    zeros: Any = np.zeros((len(seeds), algorithm.num_envs), np.float32)
    return Learner(
        stacked, states, zeros, zeros.copy(), keys, _empty_replays(env, algorithm, seeds)
    )


def _empty_replays(env: NativeEnv, algorithm: Algorithm, seeds: list[int]) -> Any:
    if algorithm.replay is None:
        return ()
    return stack_rows([empty(layout_of(env.spec, algorithm))] * len(seeds))


def phase(
    env: NativeEnv,
    algorithm: Algorithm,
    *,
    updates: int,
    reward: RewardFunction = own_reward,
    record_rollouts: int = 0,
    record_envs: int = 0,
) -> RunPhase:
    """Compile `updates` updates into one function of (learners, reward parameters), per seed.

    The last `record_rollouts` rollouts of the first `record_envs` environments are returned whole.
    """

    def cycle(
        parameters: Any, recorded: bool, learner: Learner, _: None
    ) -> tuple[Learner, tuple[Metrics, Transition | None]]:
        key, act_key, update_key = jax.random.split(jax.random.wrap_key_data(learner.key), 3)
        learner, batch = _collect(env, algorithm, learner, act_key, recorded=recorded)
        learner, episodes = _finish_episodes(learner, batch)
        kept = _clip_material(env.spec, batch, record_envs) if recorded else None
        learner, metrics = learn(learner, batch._replace(scene=()), update_key, parameters)
        return learner._replace(key=jax.random.key_data(key)), (metrics | episodes, kept)

    refuse_summed_rewards(algorithm, reward)
    learn = partial(learn_once, algorithm, reward)
    if algorithm.replay is not None:
        learn = partial(learn_from_replay, layout_of(env.spec, algorithm), algorithm, reward)

    def run(learner: Learner, parameters: Any) -> tuple[Learner, tuple[Any, Any]]:
        plain, last = updates - record_rollouts, record_rollouts
        learner, (metrics, _) = jax.lax.scan(
            partial(cycle, parameters, False), learner, None, length=plain
        )
        if not last:
            return learner, (metrics, None)
        learner, (more, record) = jax.lax.scan(
            partial(cycle, parameters, True), learner, None, length=last
        )
        metrics = jax.tree.map(_append, metrics, more)
        return learner, (metrics, jax.tree.map(_join_rollouts, record))

    return thinned(over_seeds(run, donate=(0,)), updates, algorithm.rollout_length)


def thinned(run: Callable[..., Any], updates: int, rollout_length: int) -> RunPhase:
    """Return a phase whose metrics have a bounded number of records.

    It is one compiled program, of which nobody knows how far it is: `tell` is told an estimate.
    """
    every, lasted, in_all = updates_per_record(updates), 0.0, updates * rollout_length

    def run_thinned(
        learners: Learner, parameters: Any, tell: Tell = tell_nobody
    ) -> tuple[Learner, Phase]:
        nonlocal lasted
        before = lasted

        def meanwhile(seconds: float) -> None:
            """Tell what must be done by now, going by the phase before."""
            tell(int(in_all * min(seconds / before, MOST_TOLD)) if before else 0)

        begun = run(learners, parameters)  # at once, but for compiling the first time
        began = time.perf_counter()
        learners, (metrics, record) = wait_for(begun, meanwhile)
        lasted = time.perf_counter() - began
        return learners, Phase(thin(metrics, every), record, every)

    return run_thinned


def warm_up(env: NativeEnv, algorithm: Algorithm) -> Callable[[Learner], Any]:
    """Compile the random env steps before learning into a function of learners."""
    layout = layout_of(env.spec, algorithm)
    rollouts = rollouts_of_warm_up(algorithm)

    def act(state: Any, obs: Any, key: PRNGKeyArray) -> tuple[Any, tuple[()]]:
        del state, obs
        return random_actions(env.spec.action, key, algorithm.num_envs), ()

    random_policy = algorithm._replace(act=act)

    def rollout(learner: Learner, key: PRNGKeyArray) -> tuple[Learner, None]:
        learner, batch = _collect(env, random_policy, learner, key, recorded=False)
        learner, _ = _finish_episodes(learner, batch)
        return learner._replace(replay=add(layout, learner.replay, batch)), None

    def run(learner: Learner) -> tuple[Learner]:
        key, rest = jax.random.split(jax.random.wrap_key_data(learner.key))
        learner, _ = jax.lax.scan(rollout, learner, jax.random.split(rest, rollouts))
        return (learner._replace(key=jax.random.key_data(key)),)

    return over_seeds(run, donate=(0,))


def _collect(
    env: NativeEnv, algorithm: Algorithm, learner: Learner, key: PRNGKeyArray, *, recorded: bool
) -> tuple[Learner, Transition]:
    """Return the learner after T env steps in N environments, and the transitions (T, N).

    They have scenes only if they are to be `recorded`.
    """
    count = algorithm.num_envs
    observe = jax.vmap(env.observe)
    step_rows = jax.vmap(partial(step_within_bounds, env))

    def step(carry: tuple[Any, Any], key: PRNGKeyArray) -> tuple[tuple[Any, Any], Transition]:
        state, obs = carry
        scene = scenes_of(env, state) if recorded else ()
        act_key, step_key, reset_key = jax.random.split(key, 3)
        action, extra = algorithm.act(learner.algorithm, obs, act_key)
        moved = step_rows(state, action, jax.random.split(step_key, count))
        ended = moved.terminated | moved.truncated

        def begin_anew() -> Any:
            fresh = jax.vmap(env.reset)(jax.random.split(reset_key, count))
            return where_rows(ended, fresh, moved.state)

        # Left to a plain `where`, XLA computes resets for every element of what is observed.
        state = jax.lax.cond(ended.any(), begin_anew, lambda: moved.state)
        following = observe(state)
        # Drawing pixels is dear: the true successors are drawn only where they differ.
        next_obs = jax.lax.cond(ended.any(), lambda: observe(moved.state), lambda: following)
        valid = jnp.ones(count, bool)
        row = Transition(
            obs,
            action,
            moved.reward,
            moved.terminated,
            moved.truncated,
            next_obs,
            valid,
            extra,
            scene,
        )
        return (state, following), row

    if algorithm.restarts:
        key, start_key = jax.random.split(key)
        starts = jax.vmap(env.reset)(jax.random.split(start_key, count))
        zeros = jnp.zeros(count)
        learner = learner._replace(env=starts, episode_return=zeros, episode_length=zeros)
    first = (learner.env, observe(learner.env))
    keys = jax.random.split(key, algorithm.rollout_length)
    (state, _), batch = jax.lax.scan(step, first, keys)
    return learner._replace(env=state), batch


def scenes_of(env: NativeEnv, states: Any) -> Any:
    """Return what pictures of N states can be drawn from, (N, S); `()` where obs suffice."""
    return jax.vmap(env.scene)(states) if isinstance(env, HasScene) else ()


def _finish_episodes(learner: Learner, batch: Transition) -> tuple[Learner, Metrics]:
    """Carry the true return and length of each episode on, and measure those that ended."""
    total, length, returns, lengths = episode_totals(
        learner.episode_return, learner.episode_length, batch
    )
    ended = (batch.terminated | batch.truncated) & batch.valid
    learner = learner._replace(episode_return=total, episode_length=length)
    return learner, episode_metrics(returns, lengths, ended)


def _clip_material(spec: EnvSpec, batch: Transition, envs: int) -> Transition:
    """Return what clips are cut from: the first environments, only the newest frames."""

    def first(x: Array) -> Array:
        return x[:, :envs]

    few = jax.tree.map(first, batch._replace(extra=()))
    return few._replace(obs=newest_frame(spec, few.obs), next_obs=newest_frame(spec, few.next_obs))


def _append(before: Array, after: Array) -> Array:
    return jnp.concatenate([before, after])


def _join_rollouts(x: Array) -> Array:
    """Return (R, T, ...) as one stretch of time, (R T, ...)."""
    return x.reshape(-1, *x.shape[2:])


def _evaluation(
    env: NativeEnv, algorithm: Algorithm, episodes: int
) -> Callable[[Any, Array], tuple[Array, Array, Array]]:
    """Compile `evaluate` into a function of (algorithm states, keys), per seed."""
    limit = env.spec.max_episode_steps or LONGEST_EPISODE
    step_rows = jax.vmap(partial(step_within_bounds, env))

    def play(state: Any, key_data: Array) -> tuple[Array, Array, Array]:
        key, reset = jax.random.split(jax.random.wrap_key_data(key_data))
        env_state = jax.vmap(env.reset)(jax.random.split(reset, episodes))
        best = jnp.full(episodes, jnp.nan)
        if isinstance(env, KnowsOptimum):
            best = jax.vmap(env.optimum)(env_state)

        keys = jax.random.split(key, limit)

        def goes_on(carry: Any) -> Bool[Array, ""]:
            time, _, alive, _, _ = carry
            return alive.any() & (time < limit)

        def step(carry: Any) -> Any:
            time, env_state, alive, total, length = carry
            act_key, step_key = jax.random.split(keys[time])
            action = algorithm.exploit(state, jax.vmap(env.observe)(env_state), act_key)
            moved = step_rows(env_state, action, jax.random.split(step_key, episodes))
            total = total + jnp.where(alive, moved.reward, 0.0)
            length = length + alive.astype(jnp.float32)
            alive = alive & ~(moved.terminated | moved.truncated)
            return time + 1, moved.state, alive, total, length

        time, zeros = jnp.zeros((), jnp.int32), jnp.zeros(episodes)
        carry = (time, env_state, jnp.ones(episodes, bool), zeros, zeros)
        _, _, _, total, length = jax.lax.while_loop(goes_on, step, carry)
        return total, length, best

    return over_seeds(play)


def _random_policy(
    env: NativeEnv, envs: int, env_steps: int
) -> Callable[[Any, Any], tuple[Transition]]:
    """Compile `NativeDriver.random_record` into a function of (keys, repeat), per seed."""
    observe = jax.vmap(env.observe)

    def play(key_data: Array, repeat: Array) -> tuple[Transition]:
        first, reset, rest = jax.random.split(jax.random.wrap_key_data(key_data), 3)
        states = jax.vmap(env.reset)(jax.random.split(reset, envs))
        carry = (states, random_actions(env.spec.action, first, envs))

        def step(carry: tuple[Any, Array], key: PRNGKeyArray) -> tuple[Any, Transition]:
            state, action = carry
            keys = jax.random.split(key, 4)
            moved = jax.vmap(env.step)(state, action, jax.random.split(keys[0], envs))
            ended = moved.terminated | moved.truncated
            row = Transition(
                newest_frame(env.spec, observe(state)),
                action,
                moved.reward,
                moved.terminated,
                moved.truncated,
                newest_frame(env.spec, observe(moved.state)),
                jnp.ones(envs, bool),
                extra=(),
                scene=scenes_of(env, state),
            )
            fresh = jax.vmap(env.reset)(jax.random.split(keys[1], envs))
            again = jax.random.uniform(keys[2], (envs,)) < repeat
            action = where_rows(again, action, random_actions(env.spec.action, keys[3], envs))
            return (where_rows(ended, fresh, moved.state), action), row

        return (jax.lax.scan(step, carry, jax.random.split(rest, env_steps))[1],)

    return over_seeds(play)


@final
class NativeDriver:
    """The driver of an environment in JAX; the interface is `Driver`'s."""

    def __init__(self, env: NativeEnv, algorithm: Algorithm) -> None:
        self._env = env
        self._algorithm = algorithm
        self._evaluations: dict[int, Callable[..., Any]] = {}
        self._random: dict[tuple[int, int], Callable[..., Any]] = {}

    @property
    def spec(self) -> EnvSpec:
        """The environment's public facts."""
        return self._env.spec

    @property
    def algorithm(self) -> Algorithm:
        """What acts and learns."""
        return self._algorithm

    def start(self, seeds: Sequence[int]) -> Learner:
        """Return the learners of the given seeds before their first update, stacked."""
        return start(self._env, self._algorithm, list(seeds))

    def warm_up(self, learners: Learner, tell: Tell = tell_nobody) -> Learner:
        """Return the learners with a replay of random env steps to start learning from."""
        if not rollouts_of_warm_up(self._algorithm):
            return learners
        began = warm_up(self._env, self._algorithm)(learners)
        (warm,) = wait_for(began, lambda _: tell(0))
        return warm

    def phase(
        self,
        updates: int,
        *,
        reward: RewardFunction = own_reward,
        record_rollouts: int = 0,
        record_envs: int = 0,
    ) -> RunPhase:
        """Compile `updates` updates into one function of (learners, reward parameters)."""
        return phase(
            self._env,
            self._algorithm,
            updates=updates,
            reward=reward,
            record_rollouts=record_rollouts,
            record_envs=record_envs,
        )

    def random_record(
        self,
        seeds: Sequence[int],
        *,
        envs: int,
        env_steps: int,
        repeat: float,
        tell: Tell = tell_nobody,
    ) -> Transition:
        """Return what a random policy lives through, (seeds, env_steps, envs, ...) in NumPy."""
        shape = (envs, env_steps)
        if shape not in self._random:
            self._random[shape] = _random_policy(self._env, *shape)
        chances = np.full(len(seeds), repeat, np.float32)
        began = self._random[shape](seed_keys(seeds, RANDOM_POLICY), chances)
        (record,) = wait_for(began, lambda _: tell(0))
        return jax.tree.map(np.asarray, record)

    def evaluate(
        self,
        learners: Learner,
        seeds: Sequence[int],
        *,
        episodes: int,
        tell: TellPlayed = tell_nobody,
    ) -> Evaluation:
        """Play fresh episodes with each learner's policy; the same seed, the same starts."""
        if episodes not in self._evaluations:
            self._evaluations[episodes] = _evaluation(self._env, self._algorithm, episodes)
        keys = seed_keys(seeds, EVALUATION)
        began = self._evaluations[episodes](learners.algorithm, keys)
        played = wait_for(began, lambda _: tell(0, 0))
        return Evaluation(*map(np.asarray, played))

    def close(self) -> None:
        """Nothing to free."""
