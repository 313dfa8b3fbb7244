"""The teacher in docs/examples that wants backflips."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.modules import module_at

from backflip.envs.mujoco.simulators import Simulators

TEACHER = "docs/examples/backflip_teacher.py"


def clip_of(angles: list[float]) -> Any:
    """Return a clip in which the torso has these angles, one more than it has env steps."""
    seen = np.zeros((len(angles), 11))
    seen[:, 1] = angles
    return SimpleNamespace(observations=seen[:-1], next_observations=seen[1:])


def test_the_clip_with_more_backward_rotation_is_better() -> None:
    teacher = module_at(TEACHER)
    forward, still = clip_of([0, 1, 2]), clip_of([0, 0.5, 0.01])
    turn = clip_of([0, -3, -2 * np.pi])
    assert teacher.rotation(turn) == pytest.approx(2 * np.pi)
    assert teacher.backward(turn, forward) == "left"
    assert teacher.backward(forward, still) == "right"
    assert teacher.backward(still, clip_of([5, 4, 5])) == "tie"


@pytest.mark.medium
def test_the_angle_of_hopper_grows_when_it_leans_forward() -> None:
    """The upper end of the torso is then in front of its lower end."""
    simulators = Simulators("hopper.xml", 1, 4, contacts=False)
    start = simulators.model.qpos0.copy()
    start[2] = 0.3  # observation 1: positions without x
    simulators.place(0, start, np.zeros(simulators.model.nv))
    upwards = simulators.read("xmat")[0, 1].reshape(3, 3)[:, 2]
    assert upwards[0] == pytest.approx(np.sin(0.3))
