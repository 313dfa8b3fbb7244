"""Running statistics equal those of all rows at once, and masks leave rows out."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from backflip.core import statistics
from backflip.core.statistics import (
    explained_variance,
    masked_mean,
    masked_std,
    merge,
    of_rows,
    standardize,
)

ROWS = hnp.arrays(
    np.float32,
    st.tuples(st.sampled_from([1, 2, 5]), st.just(3)),  # few shapes: each is compiled
    elements=st.floats(-100, 100, width=32),
)


def of_all(rows: np.ndarray) -> statistics.RunningStatistics:
    return of_rows(jnp.asarray(rows), jnp.ones(len(rows), bool))


def empty(shape: tuple[int, ...]) -> statistics.RunningStatistics:
    return jax.tree.map(jnp.asarray, statistics.empty(shape))


def close(one: statistics.RunningStatistics, other: statistics.RunningStatistics) -> None:
    for field in ("rows", "mean", "deviation"):
        expected = getattr(other, field)
        scale = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(getattr(one, field), expected, rtol=1e-4, atol=1e-4 * scale)


def running(parts: list[np.ndarray]) -> statistics.RunningStatistics:
    total = empty(parts[0].shape[1:])
    for part in parts:
        total = merge(total, of_all(part))
    return total


@pytest.mark.medium
@given(rows=ROWS)
def test_rows_equal_numpy(rows: np.ndarray) -> None:
    found = of_all(rows)
    exact = rows.astype(np.float64)
    assert float(found.rows) == len(rows)
    np.testing.assert_allclose(found.mean, exact.mean(0), atol=1e-4)
    np.testing.assert_allclose(found.deviation, len(rows) * exact.var(0), rtol=1e-4, atol=1e-2)
    if len(rows) > 1:
        np.testing.assert_allclose(found.std, exact.std(0), rtol=1e-4, atol=1e-3)


@given(parts=st.lists(ROWS, min_size=1, max_size=3))
@pytest.mark.slow
def test_merging_parts_gives_what_all_rows_together_give(parts: list[np.ndarray]) -> None:
    together = np.concatenate(parts)
    close(running(parts), of_all(together))


@pytest.mark.medium
@given(one=ROWS, two=ROWS, three=ROWS)
def test_the_order_and_the_grouping_of_merges_do_not_matter(
    one: np.ndarray, two: np.ndarray, three: np.ndarray
) -> None:
    a, b, c = (of_all(rows) for rows in (one, two, three))
    close(merge(a, b), merge(b, a))
    close(merge(merge(a, b), c), merge(a, merge(b, c)))


@pytest.mark.medium
@given(rows=ROWS)
def test_merging_with_empty_statistics_changes_no_bit(rows: np.ndarray) -> None:
    found, nothing = of_all(rows), empty((3,))
    for merged in (merge(nothing, found), merge(found, nothing)):
        for field in ("rows", "mean", "deviation"):
            np.testing.assert_array_equal(getattr(merged, field), getattr(found, field))


@pytest.mark.medium
def test_by_hand() -> None:
    """1 and 3, then 5: mean 3, squared deviations 4 + 0 + 4."""
    found = merge(
        of_all(np.array([[1.0], [3.0]], np.float32)), of_all(np.array([[5.0]], np.float32))
    )
    assert (float(found.rows), float(found.mean[0]), float(found.deviation[0])) == (3, 3, 8)
    np.testing.assert_allclose(found.variance, [8 / 3], rtol=1e-6)


@pytest.mark.medium
def test_the_standard_deviation_is_1_for_fewer_than_two_rows() -> None:
    one = of_rows(jnp.array([[7.0, 8.0]]), jnp.ones(1, bool))
    np.testing.assert_array_equal(empty((2,)).std, [1, 1])
    np.testing.assert_array_equal(one.std, [1, 1])


@pytest.mark.medium
def test_a_large_mean_keeps_a_small_deviation_accurate() -> None:
    """The textbook E[x²] - E[x]² is 0 or negative here in single precision."""
    rng = np.random.default_rng(0)
    parts = [(1e4 + rng.normal(size=(256, 1))).astype(np.float32) for _ in range(50)]
    exact = np.concatenate(parts).astype(np.float64)
    np.testing.assert_allclose(running(parts).std, exact.std(0), rtol=1e-3)


@pytest.mark.slow
def test_ten_thousand_merges_lose_nothing() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(3.0, 2.0, size=(10_000, 64, 1)).astype(np.float32)
    parts = jax.vmap(of_rows)(jnp.asarray(rows), jnp.ones((10_000, 64), bool))

    def step(total: Any, part: Any) -> Any:
        return merge(total, part), None

    start = empty((1,))
    total = jax.jit(lambda parts: jax.lax.scan(step, start, parts)[0])(parts)
    assert float(total.rows) == 640_000
    np.testing.assert_allclose(total.mean, rows.mean(dtype=np.float64), rtol=1e-4)
    np.testing.assert_allclose(total.std, rows.std(dtype=np.float64), rtol=1e-4)


@pytest.mark.medium
@given(rows=ROWS, data=st.data())
def test_invalid_rows_change_nothing(rows: np.ndarray, data: st.DataObject) -> None:
    valid = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    spoilt = np.where(valid[:, None], rows, np.float32(np.nan))
    found = of_rows(jnp.asarray(spoilt), jnp.asarray(valid))
    assert float(found.rows) == valid.sum()
    assert np.isfinite(found.mean).all()
    assert np.isfinite(found.deviation).all()
    if valid.any():
        close(found, of_all(rows[valid]))
    else:
        close(found, empty((3,)))


@pytest.mark.medium
@given(rows=ROWS, shift=st.floats(-100, 100))
def test_scale_does_not_depend_on_where_zero_is(rows: np.ndarray, shift: float) -> None:
    moved = (rows + shift).astype(np.float32)
    one, other = of_all(rows), of_all(moved)
    np.testing.assert_allclose(one.std, other.std, rtol=1e-3, atol=1e-3)


@pytest.mark.medium
def test_scalars_have_statistics_too() -> None:
    found = of_rows(jnp.array([2.0, 4.0]), jnp.ones(2, bool))
    assert (float(found.mean), float(found.std)) == (3, 1)


@pytest.mark.medium
@given(
    x=hnp.arrays(np.float32, (3, 4), elements=st.floats(-100, 100, width=32)),
    valid=hnp.arrays(bool, (3, 4)),
)
def test_masked_mean_and_std_equal_numpy(x: np.ndarray, valid: np.ndarray) -> None:
    spoilt, mask = jnp.asarray(np.where(valid, x, np.float32(np.nan))), jnp.asarray(valid)
    kept = x[valid].astype(np.float64)
    mean, std = (kept.mean(), kept.std()) if valid.any() else (0.0, 0.0)
    np.testing.assert_allclose(masked_mean(spoilt, mask), mean, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(masked_std(spoilt, mask), std, rtol=1e-3, atol=1e-3)


@pytest.mark.medium
def test_gradient_of_a_masked_mean_is_0_for_masked_entries() -> None:
    valid = jnp.array([True, False, True, True])
    gradient = jax.grad(lambda x: masked_mean(x, valid))(jnp.arange(4.0))
    np.testing.assert_allclose(gradient, [1 / 3, 0, 1 / 3, 1 / 3])


@pytest.mark.medium
def test_explained_variance_by_hand() -> None:
    """Targets 0, 2, 4 have variance 8/3; off by 0, 1, 0 leaves 2/9 of it: 1 - 1/12."""
    target, valid = jnp.array([0.0, 2.0, 4.0, 99.0]), jnp.array([True, True, True, False])
    found = explained_variance(jnp.array([0.0, 1.0, 4.0, -99.0]), target, valid)
    np.testing.assert_allclose(found, 1 - (2 / 9) / (8 / 3), rtol=1e-6)


@pytest.mark.medium
def test_explained_variance_is_1_for_a_shifted_and_0_for_a_constant_prediction() -> None:
    target, valid = jnp.arange(5.0), jnp.ones(5, bool)
    assert float(explained_variance(target + 3, target, valid)) == 1
    assert float(explained_variance(jnp.full(5, 9.0), target, valid)) == 0
    assert float(explained_variance(-target, target, valid)) == -3


@pytest.mark.medium
@pytest.mark.parametrize("valid", [[True, True, True], [True, False, False], [False] * 3])
def test_explained_variance_of_constant_targets_is_not_a_number(valid: list[bool]) -> None:
    found = explained_variance(jnp.arange(3.0), jnp.full(3, 2.0), jnp.array(valid))
    assert np.isnan(found)


@pytest.mark.slow
def test_jit_changes_nothing_and_vmap_is_a_loop() -> None:
    rng = np.random.default_rng(0)
    rows = jnp.asarray(rng.normal(size=(4, 6, 3)), jnp.float32)
    valid = jnp.asarray(rng.random((4, 6)) < 0.7)
    together = jax.vmap(of_rows)(rows, valid)
    for i in range(4):
        one = jax.tree.map(lambda x, i=i: x[i], together)
        close(one, of_rows(rows[i], valid[i]))
        close(one, jax.jit(of_rows)(rows[i], valid[i]))


@pytest.mark.medium
def test_rejects_a_mask_of_another_length() -> None:
    with pytest.raises(TypeError, match="valid"):
        of_rows(jnp.zeros((3, 2)), jnp.ones(2, bool))


@pytest.mark.slow
def test_standardized_rows_have_mean_0_and_deviation_1_where_they_are_valid() -> None:
    """Of 1, 3 and a invalid row: mean 2, deviation 1."""
    x, valid = jnp.array([1.0, 3.0, 1e6]), jnp.array([True, True, False])
    np.testing.assert_allclose(standardize(x, valid)[:2], [-1.0, 1.0], rtol=1e-6)
    assert np.isfinite(standardize(jnp.ones(3), valid)).all()
