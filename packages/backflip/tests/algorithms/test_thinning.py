"""Thinned metrics against loops over the updates of each record."""

import numpy as np
import pytest

from backflip.drivers.thinning import MOST_RECORDS, thin, updates_per_record

NAN = np.nan


@pytest.mark.parametrize(
    ("updates", "every"), [(1, 1), (200, 1), (201, 2), (400, 2), (50_000, 250)]
)
def test_records_are_limited(updates: int, every: int) -> None:
    assert updates_per_record(updates) == every
    assert -(-updates // every) <= MOST_RECORDS


def test_one_update_per_record_changes_nothing() -> None:
    metrics = {"loss": np.array([[1.0, 2.0]])}
    assert thin(metrics, 1) is metrics


def test_thinned_by_hand() -> None:
    """Five updates, two a record: the last record is of one update."""
    metrics = {
        "episodes": np.array([[1.0, 3, 0, 0, 2]]),
        "episode_return_mean": np.array([[8.0, 4, NAN, NAN, 7]]),
        "episode_return_min": np.array([[8.0, 1, NAN, NAN, 6]]),
        "episode_return_max": np.array([[8.0, 9, NAN, NAN, 8]]),
        "loss": np.array([[1.0, 3, NAN, 5, 2]]),
    }
    found = thin(metrics, 2)
    wanted = {
        "episodes": [[4.0, 0, 2]],
        "episode_return_mean": [[5.0, NAN, 7]],  # (1 x 8 + 3 x 4) / 4
        "episode_return_min": [[1.0, NAN, 6]],
        "episode_return_max": [[9.0, NAN, 8]],
        "loss": [[2.0, 5, 2]],
    }
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        np.testing.assert_allclose(found[name], values, err_msg=name)


def test_nan_in_an_always_finite_metric_is_kept() -> None:
    metrics = {"value_loss": np.array([[1.0, 3, NAN, 5, 2]]), "loss": np.array([[NAN, 3, 1, 5, 2]])}
    found = thin(metrics, 2)
    np.testing.assert_array_equal(found["value_loss"], [[2.0, NAN, 2]])
    np.testing.assert_array_equal(found["loss"], [[3.0, 3, 2]])


def test_thinned_equals_loops() -> None:
    rng = np.random.default_rng(0)
    episodes = rng.integers(0, 3, (3, 17)).astype(np.float32)
    mean = np.where(episodes > 0, rng.normal(size=(3, 17)), NAN).astype(np.float32)
    plain = np.where(rng.random((3, 17)) < 0.3, NAN, rng.normal(size=(3, 17))).astype(np.float32)
    found = thin({"episodes": episodes, "episode_length_mean": mean, "q_mean": plain}, 5)
    for seed in range(3):
        for record, start in enumerate(range(0, 17, 5)):
            part = slice(start, start + 5)
            ended, lengths, values = (x[seed, part] for x in (episodes, mean, plain))
            assert found["episodes"][seed, record] == ended.sum()
            some = ended > 0
            weighted = (lengths[some] * ended[some]).sum() / ended.sum() if some.any() else NAN
            known = values[~np.isnan(values)]
            averaged = known.mean() if len(known) else NAN
            np.testing.assert_allclose(
                found["episode_length_mean"][seed, record], weighted, rtol=1e-5
            )
            np.testing.assert_allclose(found["q_mean"][seed, record], averaged, rtol=1e-5)
    assert all(x.dtype == np.float32 for x in found.values())


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_an_infinite_value_is_kept(bad: float) -> None:
    assert thin({"loss": np.array([[1.0, bad, 3.0, 4.0]])}, 2)["loss"].tolist() == [[bad, 3.5]]
