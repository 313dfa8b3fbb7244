"""A Gymnasium environment that changes the current folder, as one that loads assets may do."""

import sys
from pathlib import Path

import pytest

SOURCE = """
import os
from gymnasium.envs.classic_control import PendulumEnv

class ChdirEnv(PendulumEnv):
    def __init__(self):
        super().__init__()
        os.chdir("elsewhere" if os.path.exists("elsewhere") else ".")

    def reset(self, **options):
        self.age = 0
        return super().reset(**options)

    def step(self, action):
        os.chdir("/")
        self.age += 1
        obs, reward, *_ = super().step(action)
        return obs, reward, False, self.age == 4, {}
"""


def write_chdir_env(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the module `chdir_env` into `folder` and change into it."""
    (folder / "chdir_env.py").write_text(SOURCE)
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("BACKFLIP_HOME", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "chdir_env", raising=False)
