"""Bars are proportional to the numbers, relative to the bound or the clip's maximum."""

from typing import Any

import numpy as np
import pytest
from packages.backflip.tests.envs.views.pixels_of import at
from PIL import ImageDraw

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.envs.registry import make_host
from backflip.envs.views.canvas import BACKGROUND, BODY, FAINT, LIMB
from backflip.envs.views.numbers import NumbersView

NOTHING = np.zeros(0, np.float32)


def view(high: list[float]) -> NumbersView:
    bound = np.array(high, np.float32)
    return NumbersView(EnvSpec("x", Box(-bound, bound, bound.dtype), Discrete(2), None))


def test_bars_are_shares_of_the_bound_or_the_same_for_all_clips() -> None:
    largest = float(np.finfo(np.float32).max)  # a common way to say "no bound"
    obs = np.array([[1, 1, 2, 0], [2, -3, -1, 0]], np.float32)
    after = np.array([[0, 0, 0, 0], [-4, 1, 0, 0]], np.float32)
    both = view([4, np.inf, largest, np.inf]).poses(obs, after, NOTHING)
    poses, values = both[:, 0], both[:, 1]
    expected = [[0.25, 1 / 2, 2 / 3, 0], [0.5, -3 / 4, -1 / 2, 0], [-1, 1 / 2, 0, 0]]
    np.testing.assert_allclose(poses, expected)
    np.testing.assert_array_equal(values, [*obs, after[1]])


def bar_of(frame: np.ndarray, y: int = 120) -> list[tuple[int, int]]:
    """Return the first and the last column of each colour of bars, in the order of `COLOURS`."""
    row = [at(frame, (x, y)) for x in range(frame.shape[1])]
    places = [[x for x, colour in enumerate(row) if colour == one] for one in COLOURS]
    return [(found[0], found[-1]) if found else (0, 0) for found in places]


COLOURS = (FAINT, BODY, LIMB)


def test_bars_by_hand() -> None:
    """Half of the range to the right, then half to the left, then zero."""
    (plus, minus, zero) = view([1]).draw(np.array([[[0.5], [5]], [[-0.5], [-5]], [[0.0], [0]]]))
    (left, right), body, _ = bar_of(plus)
    middle, half = (left + right) / 2, (right - left) / 2
    assert left > 40  # a name is before the bar
    assert right < 270  # a value is behind it
    np.testing.assert_allclose(body, (middle + 1, middle + half / 2), atol=1.5)
    np.testing.assert_allclose(bar_of(minus)[2], (middle - half / 2, middle - 1), atol=1.5)
    assert bar_of(zero)[2] == (0, 0)
    assert at(plus, (160, 10)) == BACKGROUND


def texts(monkeypatch: pytest.MonkeyPatch, shown: NumbersView, obs: np.ndarray) -> list[str]:
    """Return the texts that are written on a frame."""
    written: list[str] = []
    draw = ImageDraw.ImageDraw.text

    def text(self: ImageDraw.ImageDraw, xy: Any, words: str, *args: Any) -> None:
        written.append(words)
        draw(self, xy, words, *args)

    monkeypatch.setattr(ImageDraw.ImageDraw, "text", text)
    shown.draw(shown.poses(obs[None], obs[None], NOTHING)[:1])
    return written


def test_each_bar_has_index_and_value(monkeypatch: pytest.MonkeyPatch) -> None:
    written = texts(monkeypatch, view([10, 10]), np.array([0.25, -3], np.float32))
    assert written == ["obs[0]", "0.25", "obs[1]", "-3"]


def test_each_bar_has_the_name_that_the_environment_states(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = make_host("gymnasium:CartPole-v1", {}).spec
    written = texts(monkeypatch, NumbersView(spec), np.arange(4, dtype=np.float32))
    assert written[::2] == [
        "Cart Position",
        "Cart Velocity",
        "Pole Angle",
        "Pole Angular Velocity",
    ]


@pytest.mark.parametrize("count", [15, 40, 60])
def test_many_bars_have_indices_and_values(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    written = texts(monkeypatch, view([100] * count), np.ones(count, np.float32))
    index = "obs[{}]".format if count < 29 else str
    assert written == [text for i in range(count) for text in (index(i), "1")]


def test_a_discrete_observation_is_one_state(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = make_host("Taxi-v4", {}).spec
    obs = np.eye(500, dtype=np.float32)[37]
    assert texts(monkeypatch, NumbersView(spec), obs) == ["state 37", "of 0 to 499"]


@pytest.mark.medium
@pytest.mark.parametrize("count", [1, 3, 14, 15, 60, 150])
def test_every_number_has_its_own_bar(count: int) -> None:
    """A full bar differs from an empty one, at a different place for each number."""
    many = view([1] * count)
    poses = np.concatenate([np.zeros((1, count)), np.eye(count)])
    empty, *full = many.draw(np.stack([poses, poses], 1))
    assert empty.shape == (240, 320, 3)
    changed = np.stack([(frame != empty).any(2) for frame in full])
    assert changed.any((1, 2)).all()
    assert changed.sum(0).max() == 1
