"""Evaluation outside JAX: rounds of new episodes, at most one in each environment."""

from collections.abc import Sequence

import numpy as np

from backflip.algorithms.interface import State
from backflip.drivers.driver import (
    EVALUATION,
    Evaluation,
    OnEpisodes,
)
from backflip.drivers.host_policy import HostPolicy
from backflip.drivers.host_stepping import by_seed, env_seeds
from backflip.envs.spec import HostEnv

# Without a time limit, an evaluation ends after a round once each seed has so many episodes and env
# steps. A policy that never reaches an end would play a million env steps.
FEWEST_EPISODES, ENOUGH_ENV_STEPS = 20, 100_000

Played = tuple[np.ndarray, np.ndarray, np.ndarray]  # returns, lengths, cut, each (S, N)


def evaluate_on_host(
    env: HostEnv,
    policy: HostPolicy,
    states: State,
    seeds: Sequence[int],
    episodes: int,
    on_progress: OnEpisodes,
) -> Evaluation:
    """Return returns and lengths of episodes, each with its own environment seed.

    Without a time limit there may be fewer than `episodes`.

    Args:
        env: of S N environments: a round is one episode in each, or in some in the last round.
        policy: how to act.
        states: of the algorithm, for each seed.
        seeds: S of them.
        episodes: of each seed.
        on_progress: called with the sums over all seeds.
    """
    count = env.num_envs // len(seeds)
    rounds: list[Played] = []
    for number in range(-(-episodes // count)):
        entropy = [[EVALUATION, seed, number] for seed in seeds]
        wanted = min(count, episodes - number * count)
        played = _play(env, policy, states, entropy, wanted, rounds, on_progress)
        rounds.append(played)
        if env.spec.max_episode_steps is None and _is_enough(rounds):
            break
    returns, lengths, cut = (np.concatenate(parts, 1) for parts in zip(*rounds, strict=True))
    return Evaluation(returns, lengths, np.full_like(returns, np.nan), cut)


def _is_enough(rounds: Sequence[Played]) -> bool:
    """Return whether every seed has enough episodes and env steps."""
    lengths = np.concatenate([lengths for _, lengths, _ in rounds], 1)
    enough = lengths.sum(1) >= ENOUGH_ENV_STEPS
    return lengths.shape[1] >= FEWEST_EPISODES and bool(enough.all())


def _play(
    env: HostEnv,
    policy: HostPolicy,
    states: State,
    entropy: list[list[int]],
    wanted: int,
    earlier: Sequence[Played],
    on_progress: OnEpisodes,
) -> Played:
    """Return true return and length of `wanted` episodes of each seed, and whether each was cut.

    The other environments are stepped, too, and ignored. The progress reported includes the rounds
    played `earlier`.
    """
    episodes = sum(lengths.size for _, lengths, _ in earlier)
    env_steps = sum(int(lengths.sum()) for _, lengths, _ in earlier)
    seeds, count = len(entropy), env.num_envs // len(entropy)
    obs = env.reset(env_seeds(np.array(entropy), count))
    draws = [np.random.default_rng(numbers) for numbers in entropy]
    alive = np.tile(np.arange(count) < wanted, seeds)
    total, length = np.zeros(env.num_envs), np.zeros(env.num_envs)
    limit = env.spec.longest_episode
    act = policy.of(states, by_seed(obs, seeds), np.zeros((seeds, 2), np.uint32))
    while alive.any() and length.max() < limit:
        keys = np.stack([rng.integers(2**32, size=2, dtype=np.uint32) for rng in draws])
        action = np.asarray(act(by_seed(obs, seeds), keys))
        step = env.step(action.reshape(-1, *action.shape[2:]))
        total += np.where(alive, step.reward, 0.0)
        length += alive
        alive &= ~(step.terminated | step.truncated)
        obs = step.obs
        ended = episodes + seeds * wanted - int(alive.sum())
        on_progress(ended, env_steps + int(length.sum()))
    total, length, alive = (by_seed(each, seeds)[:, :wanted] for each in (total, length, alive))
    return total, length, alive
