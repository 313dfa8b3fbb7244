"""A run of `train`, repeated after the code has changed, uses its own code."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runshelf.snapshot.code_snapshot import read_snapshot
from runshelf.store.finding import find_run, list_runs
from runshelf.store.home import shared
from runshelf.store.metrics import read_metrics

ENVIRONMENT = """
import gymnasium
import numpy as np


class Slope(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = 0.0, 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.x, self.t = self.x + 0.01 * (2 * action - 1), self.t + 1
        return np.array([self.x], np.float32), SIGN * self.x, self.t == 20, False, {}


SIGN = 1.0
"""
CLOCKS = {"seconds", "env_steps_per_second", "memory_mib"}


RUNSHELF = "import sys; from runshelf.cli.main import main; sys.exit(main())"


def backflip(tree: Path, *words: str) -> str:
    return output_of(tree, [sys.executable, "-m", "backflip", *words])


def runshelf(tree: Path, *words: str) -> str:
    return output_of(tree, [sys.executable, "-c", RUNSHELF, *words])


def output_of(tree: Path, command: list[str]) -> str:
    env = {k: v for k, v in os.environ.items() if not k.startswith("BACKFLIP_")}
    done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_train_is_repeated_with_its_own_code(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "slope.py").write_text(ENVIRONMENT)
    subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
    settings = ["--set", "epochs=2", "--env-steps", "512", "--seeds", "2", "--group", "A"]
    backflip(tree, "train", "ppo", "slope:Slope", *settings, "--json")
    (tree / "slope.py").write_text(ENVIRONMENT.replace("SIGN = 1.0", "SIGN = -1.0"))
    said = json.loads(backflip(tree, "rerun", "latest", "--json"))
    again = json.loads(runshelf(tree, "rerun", "latest", "--json"))
    changed = json.loads(backflip(tree, "rerun", "latest", "--set", "discount=0.5", "--json"))
    first, *others = [find_run(tree, ulid) for ulid in list_runs(tree)]
    assert [run.ulid for run in others] == [said["run"], again["run"], changed["run"]]
    parents = [run.manifest.get("parent") for run in (first, *others)]
    assert parents == [None, first.ulid, others[0].ulid, others[1].ulid]
    for run in others:
        assert read_snapshot(run.folder).files == read_snapshot(first.folder).files
    assert metrics(first) == metrics(others[0]) == metrics(others[1])
    assert metrics(first) != metrics(others[2])
    assert others[2].config["settings"]["discount"] == 0.5
    groups = [run.manifest.get("group") for run in (first, *others)]
    assert groups == ["A", "A", "A", None], "other settings are another group"
    assert not list(shared(tree, "reruns").iterdir()), "the clean folders are cleared away"


def metrics(run):
    records = read_metrics(run.folder, "train").records
    assert records
    kept = [{k: v for k, v in record.items() if k not in CLOCKS} for record in records]
    return json.dumps(kept)
