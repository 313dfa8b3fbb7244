"""A run that is killed with SIGKILL and resumed computes the same bits."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from backflip.core.checkpoint import load_arrays
from runshelf.store.finding import find_run, list_runs
from runshelf.store.metrics import read_metrics

PROGRAM = """
import os, signal, sys, threading, time
from pathlib import Path
from runshelf.store.finding import find_run, list_runs
from backflip.training.train import resume_train, train

home, env, delay = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])


def killed_later(_):
    if delay > 0 and "death" not in {thread.name for thread in threading.enumerate()}:
        timer = threading.Timer(delay, lambda: os.kill(os.getpid(), signal.SIGKILL))
        timer.daemon, timer.name = True, "death"
        timer.start()


settings = {"num_envs": 4, "rollout_length": 32, "epochs": 4, "hidden": (16,)}
options = {"env_args": {"max_episode_steps": 30}, "settings": settings, "env_steps": 4 * 32 * 60}
if list_runs(home):
    resume_train(find_run(home, "latest"), killed_later)
else:
    train("ppo", env, seeds=2, home=home, report=killed_later, **options)
"""


def run(home: Path, env: str, delay: float) -> int:
    """Start or resume the run in a new process; kill it `delay` seconds after its first phase."""
    command = [sys.executable, "-c", PROGRAM, str(home), env, str(delay)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode in (0, -signal.SIGKILL), result.stderr
    return result.returncode


@pytest.mark.slow
@pytest.mark.parametrize(("env", "most_kills"), [("CartPole-v1", 3), ("gymnasium:CartPole-v1", 2)])
def test_a_killed_and_resumed_run_has_the_same_bits(
    tmp_path: Path, env: str, most_kills: int
) -> None:
    seed = int(os.environ.get("BACKFLIP_TEST_SEED", random.SystemRandom().randrange(10**6)))
    sys.stdout.write(f"replay with BACKFLIP_TEST_SEED={seed}\n")
    rng = random.Random(seed)
    assert run(tmp_path / "never", env, 0) == 0
    kills = 0
    while run(tmp_path / "killed", env, rng.uniform(0.0, 0.3) if kills < most_kills else 0) != 0:
        kills += 1
    assert kills >= 1
    assert len(list_runs(tmp_path / "killed")) == 1
    ends = [find_run(tmp_path / name, "latest") for name in ("never", "killed")]
    one, other = (load_arrays(end.folder / "checkpoint.safetensors").arrays for end in ends)
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)
    rows = [read_metrics(end.folder, "train").records for end in ends]
    assert [(r["seed"], r["updates"]) for r in rows[0]] == [
        (r["seed"], r["updates"]) for r in rows[1]
    ]
    results = [end.events()[-1]["result"]["returns"] for end in ends]
    assert results[0] == results[1]
