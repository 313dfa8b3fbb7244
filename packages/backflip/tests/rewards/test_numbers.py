"""The reward model `numbers`: each number of a long vector by itself."""

import jax
import numpy as np
import pytest

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.core.trees import row_of
from backflip.core.types import Transition
from backflip.rewards.interface import LabelledComparison, ObservedClip
from backflip.rewards.linear.model import LinearRewardModel, NumbersRewardModel
from backflip.rewards.registry import make_reward_model
from backflip.rewards.representations.additive import FEW_KNOTS
from backflip.rewards.representations.numbers import LEAST_DEVIATION, NumberFeatures
from backflip.training.teaching.defaults import teach_settings
from runshelf.errors import UsageError

SIZE, LENGTH = 60, 5


def vector(size: int, action: Box | Discrete) -> EnvSpec:
    """Return the spec of an environment that is observed as a vector."""
    bound = np.full(size, np.inf, np.float32)
    return EnvSpec("vector", Box(-bound, bound, np.dtype("f4")), action, 100)


ARM = Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 1.0], np.float32), np.dtype("f4"))
ROBOT = vector(SIZE, ARM)


def steps(size: int, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return observations and the next ones; number 0 is constant."""
    rng = np.random.default_rng(seed)
    before = rng.normal(3, 2, (count, size)).astype(np.float32)
    after = before + rng.normal(scale=0.3, size=(count, size)).astype(np.float32)
    before[:, 0] = after[:, 0] = 7
    return before, after


@pytest.mark.medium
def test_features_equal_the_definition() -> None:
    size = 4
    features = NumberFeatures(vector(size, ARM))
    before, after = steps(size, 50)
    inputs = features.fit(before, after)
    knots, widths = (np.asarray(x) for x in inputs.thresholds)
    action = np.array([[1.0, 0.25], [9.0, -9.0]], np.float32)
    found = np.asarray(features.features(inputs, before[:2], action, after[:2]))
    deviation = np.maximum(before.std(0), LEAST_DEVIATION)
    moved = np.maximum((after - before).std(0), LEAST_DEVIATION)
    scaled = [(0.5, -0.5), (1.0, -1.0)]  # actions are clipped to their space
    for row in range(2):
        z, z2 = ((x[row] - before.mean(0)) / deviation for x in (before, after))
        passed = 1 / (1 + np.exp(-2 * (z2[:, None] - knots) / widths))
        later = np.concatenate([passed[:, 1:], np.zeros((size, 1))], 1)
        a, b = scaled[row]
        expected = [1.0, *np.clip(z, -5, 5), *((after - before)[row] / moved).clip(-5, 5)]
        expected += [a, b, a * a, a * b, b * b, *passed.ravel(), *(passed - later).ravel()]
        np.testing.assert_allclose(found[row], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.medium
@pytest.mark.parametrize(("action", "numbers"), [(ARM, 5), (Discrete(3), 3)])
def test_sizes_are_those_of_the_groups(action: Box | Discrete, numbers: int) -> None:
    features = NumberFeatures(vector(SIZE, action))
    before, after = steps(SIZE, 9)
    taken = np.zeros((9, 2), np.float32) if action is ARM else np.zeros(9, np.int32)
    found = features.features(features.fit(before, after), before, taken, after)
    of_numbers = SIZE * FEW_KNOTS
    assert features.sizes == (1, SIZE, SIZE, numbers, of_numbers, of_numbers)
    assert found.shape == (9, sum(features.sizes))
    assert np.isfinite(found).all()


def test_images_are_refused() -> None:
    frame = Box(np.zeros((8, 8, 1), np.uint8), np.full((8, 8, 1), 255, np.uint8), np.dtype("u1"))
    with pytest.raises(UsageError, match="reward_model=auto"):
        make_reward_model("numbers", EnvSpec("game", frame, Discrete(2), 100), 4, 5)


@pytest.mark.parametrize(("size", "expected"), [(32, None), (33, "numbers"), (129, None)])
def test_it_is_the_default_of_long_vectors(size: int, expected: str | None) -> None:
    for algorithm in ("ppo", "sac"):
        _, teaching = teach_settings(algorithm, vector(size, ARM))
        assert teaching.get("reward_model") == expected


def clip_of(rng: np.random.Generator) -> ObservedClip:
    """Return a clip: number 7 is a height, and the 40 last ones are bursts of contact."""
    seen = rng.normal(size=(LENGTH + 1, SIZE))
    seen[:, 7] = rng.uniform(-1, 1) + 0.1 * rng.normal(size=LENGTH + 1)
    seen[:, 20:] *= 30 * (rng.random((LENGTH + 1, 40)) < 0.1)
    seen = seen.astype(np.float32)
    action = rng.uniform([-2, 0], [2, 1], (LENGTH, 2)).astype(np.float32)
    return ObservedClip(seen[:-1], action, seen[1:], np.ones(LENGTH, bool))


def reward_of(clip: ObservedClip) -> float:
    """Return the true reward: the height is in a range, and actions cost."""
    in_range = np.abs(clip.next_obs[:, 7]) < 0.5
    return float((in_range - 0.2 * np.square(clip.action[:, 0])).sum())


def labels(rng: np.random.Generator, count: int) -> list[LabelledComparison]:
    pairs = [(clip_of(rng), clip_of(rng)) for _ in range(count)]
    return [
        LabelledComparison(i, lambda p=pair: p, float(reward_of(pair[0]) > reward_of(pair[1])), 0)
        for i, pair in enumerate(pairs)
    ]


def accuracy(kind: type[LinearRewardModel]) -> float:
    """Return the share of new pairs that a model orders rightly after 150 labels."""
    rng = np.random.default_rng(0)
    model = kind(ROBOT, 150, LENGTH)
    random = [clip_of(rng) for _ in range(100)]
    obs, action, after = (
        np.stack([getattr(clip, name) for clip in random], 1)
        for name in ("obs", "action", "next_obs")
    )
    flags = np.zeros((LENGTH, 100), bool)
    model.observe(Transition(obs, action, 0.0 * flags, flags, flags, after, ~flags, ()))
    keys = np.zeros((1, 2), np.uint32)
    fitted = model.fit(model.initial(1), [labels(rng, 150)], keys)
    new = labels(rng, 200)
    found = model.opinions(
        row_of(jax.tree.map(np.asarray, fitted.parameters), 0),
        [clip for label in new for clip in label.clips()],
    )
    assert found is not None
    left, right = found.reward.sum(1).reshape(-1, 2).T
    return float(np.mean((left > right) == [label.left_preferred > 0.5 for label in new]))


@pytest.mark.slow
def test_one_number_of_many_is_found() -> None:
    """Slow directions mix it with contacts."""
    assert accuracy(NumbersRewardModel) >= 0.8
    assert accuracy(LinearRewardModel) <= 0.65
