"""Incremental statistics equal those computed from all observations at once."""

import numpy as np

from backflip.inspect.observation_stats import ObservationStats, RunningStats
from backflip.inspect.report import per_channel


def test_equal_the_definition_far_from_zero() -> None:
    rng = np.random.default_rng(0)
    obs = 1000.0 + 1e-3 * rng.normal(size=(50, 7, 3))
    scales = RunningStats()
    for rows in obs:
        scales.add(rows)
    flat, found = obs.reshape(-1, 3), scales.result()
    np.testing.assert_allclose(found.mean, flat.mean(0), rtol=1e-12)
    np.testing.assert_allclose(found.std, flat.std(0), rtol=1e-6)
    np.testing.assert_array_equal(found.low, flat.min(0))
    np.testing.assert_array_equal(found.high, flat.max(0))
    z = np.abs((flat - flat.mean(0)) / flat.std(0)).max(0)
    np.testing.assert_allclose(found.largest_z, z, rtol=1e-5)


def test_constants_are_not_outliers() -> None:
    scales = RunningStats()
    scales.add(np.array([[1.0, 5.0], [2.0, 5.0]]))
    scales.add(np.zeros((0, 2)))
    found = scales.result()
    assert found.constant.tolist() == [False, True]
    assert found.largest_z.tolist() == [1.0, 0.0]


def test_channel_statistics_cover_all_its_pixels() -> None:
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (20, 4, 5, 2))
    scales = RunningStats()
    scales.add(images)
    found = per_channel(scales.result(), 2)
    flat = images.reshape(-1, 2)
    expected = ObservationStats(*(x(flat, axis=0) for x in (np.min, np.mean, np.std, np.max)))
    for part, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(part, wanted)
