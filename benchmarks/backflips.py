"""Count the complete backward turns of a run's policies in `fixed:Hopper-v5`.

    python benchmarks/backflips.py RUN_FOLDER

It prints one number for each seed: the mean over `EPISODES` episodes of the evaluation policy, per
1,000 env steps.
"""

import sys
from pathlib import Path

import numpy as np
from jaxtyping import Float

from backflip.envs.registry import make_host
from backflip.loading import load_policy, load_run

ANGLE = 1  # of the observation: the torso's angle in radians, which grows when it leans forward
EPISODES, ENV_STEPS = 5, 1_000
TURN = 2 * np.pi


def complete_turns(angles: Float[np.ndarray, " L"]) -> int:
    """Return how many times an angle falls by 2π from where it was, or came back to.

    A turn is counted once the angle is 2π below its highest value since the last complete turn. So
    a robot that rocks to and fro completes none.
    """
    turns, highest = 0, angles[0]
    for angle in angles:
        highest = max(highest, angle)
        while highest - angle >= TURN:
            turns, highest = turns + 1, highest - TURN
    return turns


def turns_of_run(folder: Path) -> list[float]:
    """Return the mean number of complete backward turns in 1,000 env steps, for each seed."""
    return [turns_of_seed(folder, seed) for seed in load_run(folder).seeds]


def turns_of_seed(folder: Path, seed: int) -> float:
    """Return the mean number of complete backward turns of one seed's policy."""
    policy, args = load_policy(folder, seed), load_run(folder).env_args
    env = make_host(load_run(folder).env or "", args, EPISODES)
    try:
        obs, angles = env.reset(list(range(EPISODES))), list[np.ndarray]()
        for _ in range(ENV_STEPS):
            step = env.step(np.asarray(policy.act(obs)))
            angles.append(obs[:, ANGLE])
            if (step.terminated | step.truncated).any():
                break
            obs = step.obs
    finally:
        env.close()
    rows = np.stack(angles, 1)
    return float(np.mean([complete_turns(row) for row in rows]) * ENV_STEPS / len(angles))


if __name__ == "__main__":
    print([round(turns, 2) for turns in turns_of_run(Path(sys.argv[1]))])
