"""An environment that makes another folder the current one, as those that load assets may do."""

import sys
from pathlib import Path

import pytest

RESTLESS = """
import os
import sys
from gymnasium.envs.classic_control import PendulumEnv

class Restless(PendulumEnv):
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


def restless_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go to a folder that has the module `restless`."""
    (folder / "restless.py").write_text(RESTLESS)
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("BACKFLIP_HOME", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "restless", raising=False)
