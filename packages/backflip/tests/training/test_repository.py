"""Training in a git repository records it as it is, and leaves it as it was."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from packages.runshelf.tests.snapshot.repositories import git, made

from runshelf.comparison.code import diff_code
from runshelf.store.finding import find_run, list_runs


@pytest.mark.slow
def test_train_leaves_a_clean_repository_clean(tmp_path: Path) -> None:
    root = made(tmp_path / "repository")
    home = tmp_path / "repository" / "experiments"
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("BACKFLIP_", "RUNSHELF_"))}
    for words in (["train", "ppo", "CartPole-v1"], ["rerun", "latest"], ["runs"]):
        more = ["--env-steps", "2048", "--seeds", "1"] if words[0] == "train" else []
        subprocess.run(
            [sys.executable, "-m", "backflip", *words, *more, "--json"],
            cwd=root,
            env=kept | {"RUNSHELF_HOME": str(home)},
            check=True,
            capture_output=True,
            timeout=300,
        )
        assert git(root, "status", "--porcelain", "-uall") == ""
    one, other = [find_run(home, ulid) for ulid in list_runs(home)]
    for run in (one, other):
        assert json.loads((run.folder / "run.json").read_text())["git"]["dirty"] is False
    assert diff_code(home, one.folder, other.folder).files == []
