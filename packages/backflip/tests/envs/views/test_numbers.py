"""Bars are proportional to the numbers, relative to the bound or the clip's maximum."""

import numpy as np
import pytest
from packages.backflip.tests.envs.views.pixels_of import at

from backflip.core.spec import Box, Discrete, EnvSpec
from backflip.envs.views.canvas import BACKGROUND, BODY, FAINT, LIMB
from backflip.envs.views.numbers import NumbersView

NOTHING = np.zeros(0, np.float32)


def view(high: list[float]) -> NumbersView:
    bound = np.array(high, np.float32)
    return NumbersView(EnvSpec("x", Box(-bound, bound, bound.dtype), Discrete(2), None))


def test_numbers_are_divided_by_the_bound_or_the_maximum() -> None:
    largest = float(np.finfo(np.float32).max)  # a common way to say "no bound"
    obs = np.array([[1, 1, 2, 0], [2, -3, -1, 0]], np.float32)
    after = np.array([[0, 0, 0, 0], [-4, 1, 0, 0]], np.float32)
    poses = view([4, np.inf, largest, np.inf]).poses(obs, after, NOTHING)
    expected = [[0.25, 1 / 3, 1, 0], [0.5, -1, -0.5, 0], [-1, 1 / 3, 0, 0]]
    np.testing.assert_allclose(poses, expected)


def test_bars_by_hand() -> None:
    """One number: bars from x = 30 to 312, so zero is at 171, and a half is 70.5 long."""
    (plus, minus, zero) = view([1]).draw(np.array([[0.5], [-0.5], [0.0]]))
    y = 120
    assert [at(plus, (x, y)) for x in (35, 165, 180, 238, 250)] == [FAINT, FAINT, BODY, BODY, FAINT]
    assert [at(minus, (x, y)) for x in (90, 104, 165, 180)] == [FAINT, LIMB, LIMB, FAINT]
    assert [at(zero, (x, y)) for x in (35, 165, 180, 300)] == [FAINT] * 4
    assert at(plus, (160, 10)) == BACKGROUND


@pytest.mark.medium
@pytest.mark.parametrize("count", [1, 3, 14, 15, 60, 150])
def test_every_number_has_its_own_bar(count: int) -> None:
    """A full bar differs from an empty one, at a different place for each number."""
    many = view([1] * count)
    poses = np.concatenate([np.zeros((1, count)), np.eye(count)])
    empty, *full = many.draw(poses)
    assert empty.shape == (240, 320, 3)
    changed = np.stack([(frame != empty).any(2) for frame in full])
    assert changed.any((1, 2)).all()
    assert changed.sum(0).max() == 1
