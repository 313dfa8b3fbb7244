"""Tests of `backflip.core.colored_noise`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.core.colored_noise import (
    colored_normal,
    keys_of_octaves,
    octaves_of,
    weights_of,
)


def stream(env_steps: int, color: float, rows: int, seed: int = 0) -> np.ndarray:
    """Noise (T, rows) of a rollout."""
    keys = keys_of_octaves(jax.random.key(seed), env_steps, octaves_of(env_steps))
    draw = jax.jit(lambda keys: jax.vmap(lambda key: colored_normal(key, (rows,), color))(keys))
    return np.asarray(draw(keys))


def test_octaves_by_hand() -> None:
    assert [octaves_of(length) for length in (1, 2, 3, 4, 64, 127, 128)] == [1, 1, 1, 2, 6, 6, 7]


def test_weights_by_hand() -> None:
    np.testing.assert_allclose(weights_of(4, 1.0), [0.5] * 4)
    np.testing.assert_allclose(weights_of(2, 0.0) ** 2, [2 / 3, 1 / 3], rtol=1e-6)
    np.testing.assert_allclose(weights_of(3, 2.0) ** 2, [1 / 7, 2 / 7, 4 / 7], rtol=1e-6)


@pytest.mark.medium
@pytest.mark.parametrize(
    "color",
    [pytest.param(0.5, marks=pytest.mark.slow), 1.0, pytest.param(2.0, marks=pytest.mark.slow)],
)
def test_each_draw_is_standard_normal(color: float) -> None:
    noise = stream(64, color, rows=20_000)
    np.testing.assert_allclose(noise.mean(1), 0.0, atol=0.04)
    np.testing.assert_allclose(noise.std(1), 1.0, atol=0.03)
    fourth = (noise**4).mean(1)
    np.testing.assert_allclose(fourth, 3.0, atol=0.35)


@pytest.mark.slow
def test_correlation_is_that_of_the_definition() -> None:
    """Mean over offsets of Σ_k w_k² [same draw of noise k at t and t + lag]: 1 - lag / 2^k."""
    env_steps, color, lags = 32, 1.0, [1, 2, 3, 5, 8, 20]
    power = weights_of(octaves_of(env_steps), color) ** 2
    expected = [
        sum(p * max(0.0, 1 - lag / 2**k) for k, p in enumerate(power.tolist())) for lag in lags
    ]
    found = np.zeros(len(lags))
    for seed in range(60):
        noise = stream(env_steps, color, rows=200, seed=seed)
        found += [(noise[:-lag] * noise[lag:]).mean() / 60 for lag in lags]
    np.testing.assert_allclose(found, expected, atol=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("color", [0.5, pytest.param(1.0, marks=pytest.mark.slow)])
def test_power_falls_with_the_frequency(color: float) -> None:
    """At low frequencies, the slope of log power on log frequency is about -β."""
    env_steps = 1_024
    power = np.zeros(env_steps // 2 + 1)
    for seed in range(20):
        noise = stream(env_steps, color, rows=50, seed=seed)
        power += (np.abs(np.fft.rfft(noise, axis=0)) ** 2).mean(1)
    frequency = np.arange(2, env_steps // 16)
    slope = np.polyfit(np.log(frequency), np.log(power[frequency]), 1)[0]
    assert slope == pytest.approx(-color, abs=0.15)


@pytest.mark.medium
def test_keys_change_as_often_as_their_octave_says() -> None:
    keys = jax.random.key_data(keys_of_octaves(jax.random.key(3), 64, 6))
    changed = np.any(np.diff(np.asarray(keys), axis=0) != 0, -1)  # (63, 6)
    for octave in range(6):
        at = np.flatnonzero(changed[:, octave])
        assert set(np.diff(at).tolist()) <= {2**octave}
    assert len({int(np.flatnonzero(changed[:, k])[0]) for k in range(6)}) > 1  # offsets differ


@pytest.mark.medium
def test_rows_and_dimensions_are_independent() -> None:
    keys = keys_of_octaves(jax.random.key(0), 64, 6)
    noise = np.asarray(jax.vmap(lambda key: colored_normal(key, (40, 3), 1.0))(keys))
    flat = noise.reshape(64, -1)
    correlations = np.corrcoef(flat.T)[np.triu_indices(120, 1)]
    assert abs(correlations.mean()) < 0.01


@pytest.mark.medium
def test_same_keys_same_bits() -> None:
    np.testing.assert_array_equal(stream(16, 1.0, 4), stream(16, 1.0, 4))
    assert jnp.any(jnp.asarray(stream(16, 1.0, 4) != stream(16, 1.0, 4, seed=1)))
