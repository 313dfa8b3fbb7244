"""Advantages and returns equal their definitions, computed the slow way."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backflip.core.returns import gae, reward_to_go

NO, YES = False, True
Stream = dict[str, Any]


def both_ends(stream: Stream) -> Any:
    return stream["terminated"] | stream["truncated"]


def gae_by_definition(stream: Stream, discount: float, gae_lambda: float) -> list[float]:
    """Eq. 16 as written: a double loop, no recursion, no scan."""
    stream = jax.tree.map(np.asarray, stream)
    rewards, ended = stream["rewards"], both_ends(stream)
    advantages = []
    for t in range(len(rewards)):
        total, weight = 0.0, 1.0
        for k in range(t, len(rewards)):
            bootstrap = 0.0 if stream["terminated"][k] else stream["next_values"][k]
            total += weight * (rewards[k] + discount * bootstrap - stream["values"][k])
            if ended[k]:
                break
            weight *= discount * gae_lambda
        advantages.append(total)
    return advantages


def n_step_by_definition(stream: Stream, discount: float, n: int) -> list[float]:
    """Σ γ^k r and then γ^m V, the sum cut short where the episode or the stream ends."""
    stream = jax.tree.map(np.asarray, stream)
    length, ended = len(stream["rewards"]), both_ends(stream)
    returns = []
    for t in range(length):
        total = 0.0
        for k in range(t, min(t + n, length)):
            total += discount ** (k - t) * stream["rewards"][k]
            if ended[k] or k == min(t + n, length) - 1:
                bootstrap = 0.0 if stream["terminated"][k] else stream["next_values"][k]
                total += discount ** (k - t + 1) * bootstrap
                break
        returns.append(total)
    return returns


def to_go_by_definition(stream: Stream, discount: float) -> list[float]:
    """Σ γ^k r to the end of the episode or the stream."""
    rewards, ended = np.asarray(stream["rewards"]), np.asarray(both_ends(stream))
    returns = []
    for t in range(len(rewards)):
        total = 0.0
        for k in range(t, len(rewards)):
            total += discount ** (k - t) * rewards[k]
            if ended[k]:
                break
        returns.append(total)
    return returns


def make_stream(seed: int, length: int, ends: float = 0.2) -> Stream:
    rng = np.random.default_rng(seed)
    terminated = rng.random(length) < ends
    floats = {
        name: rng.normal(size=length).astype(np.float32)
        for name in ("rewards", "values", "next_values")
    }
    truncated = (rng.random(length) < ends) & ~terminated
    return jax.tree.map(jnp.asarray, floats | {"terminated": terminated, "truncated": truncated})


@pytest.fixture
def stream() -> Stream:
    """One termination, one truncation, and an end that is neither."""
    return make_stream(0, 7, ends=0.0) | {
        "terminated": jnp.array([NO, NO, YES, NO, NO, NO, NO]),
        "truncated": jnp.array([NO, NO, NO, NO, YES, NO, NO]),
    }


def close(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.medium
@pytest.mark.parametrize("gae_lambda", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("discount", [0.0, 0.9, 1.0])
def test_gae_equals_the_definition(stream: Stream, discount: float, gae_lambda: float) -> None:
    expected = gae_by_definition(stream, discount, gae_lambda)
    close(gae(**stream, discount=discount, gae_lambda=gae_lambda), expected)


@pytest.mark.parametrize("discount", [0.0, 0.9, 1.0])
def test_reward_to_go_equals_the_definition(stream: Stream, discount: float) -> None:
    expected = to_go_by_definition(stream, discount)
    close(reward_to_go(stream["rewards"], both_ends(stream), discount=discount), expected)


@pytest.mark.medium
@given(seed=st.integers(0, 10_000), discount=st.floats(0, 1), gae_lambda=st.floats(0, 1))
def test_all_definitions_on_any_stream(seed: int, discount: float, gae_lambda: float) -> None:
    stream = make_stream(seed, 9)
    close(
        gae(**stream, discount=discount, gae_lambda=gae_lambda),
        gae_by_definition(stream, discount, gae_lambda),
    )
    close(
        reward_to_go(stream["rewards"], both_ends(stream), discount=discount),
        to_go_by_definition(stream, discount),
    )


@pytest.mark.medium
def test_gae_by_hand_truncation_bootstraps_and_termination_does_not() -> None:
    one = jnp.array([1.0]), jnp.array([3.0]), jnp.array([10.0])
    cut = gae(*one, jnp.array([NO]), jnp.array([YES]), discount=0.5, gae_lambda=1.0)
    end = gae(*one, jnp.array([YES]), jnp.array([NO]), discount=0.5, gae_lambda=1.0)
    assert float(cut[0]) == 1 + 0.5 * 10 - 3
    assert float(end[0]) == 1 - 3


@pytest.mark.medium
def test_gae_by_hand_of_three_steps() -> None:
    """Rewards 1, 2, 3; V = 0 everywhere but V(s_3) = 8; γ = ½, λ = ½, so γ λ = ¼."""
    zero, none = jnp.zeros(3), jnp.zeros(3, bool)
    following = jnp.array([0.0, 0.0, 8.0])
    found = gae(
        jnp.array([1.0, 2.0, 3.0]), zero, following, none, none, discount=0.5, gae_lambda=0.5
    )
    np.testing.assert_array_equal(found, [1 + 2 / 4 + 7 / 16, 2 + 7 / 4, 3 + 4])


def test_reward_to_go_by_hand() -> None:
    found = reward_to_go(jnp.array([1.0, 2.0, 4.0]), jnp.array([NO, YES, NO]), discount=0.5)
    np.testing.assert_array_equal(found, [1 + 1, 2, 4])


def test_gae_of_lambda_0_is_the_one_step_error(stream: Stream) -> None:
    one_step = n_step_by_definition(stream, 0.9, 1)
    close(gae(**stream, discount=0.9, gae_lambda=0.0), one_step - np.asarray(stream["values"]))


def test_gae_of_lambda_1_is_the_n_step_return_minus_the_value(stream: Stream) -> None:
    """The two agree where V of the successor is V of the next row, as in a rollout."""
    stream = stream | {"next_values": jnp.append(stream["values"][1:], 0.3)}
    longest = n_step_by_definition(stream, 0.9, 7)
    close(gae(**stream, discount=0.9, gae_lambda=1.0), longest - np.asarray(stream["values"]))


def test_reward_to_go_is_the_n_step_return_with_zero_values(stream: Stream) -> None:
    stream = stream | {"next_values": jnp.zeros(7)}
    longest = n_step_by_definition(stream, 0.9, 7)
    close(reward_to_go(stream["rewards"], both_ends(stream), discount=0.9), longest)


@pytest.mark.medium
def test_a_constant_shift_of_exact_values_changes_no_advantage() -> None:
    """Endless rewards of 1 under γ = ½ are worth 2: every advantage is 0 for any λ."""
    two, none = jnp.full(5, 2.0), jnp.zeros(5, bool)
    for gae_lambda in (0.0, 0.7, 1.0):
        found = gae(jnp.ones(5), two, two, none, none, discount=0.5, gae_lambda=gae_lambda)
        np.testing.assert_array_equal(found, np.zeros(5))


def test_rewards_after_an_end_change_nothing_before(stream: Stream) -> None:
    floats = ("rewards", "values", "next_values")
    changed = stream | {name: stream[name].at[5:].set(1e6) for name in floats}
    before, after = (gae(**s, discount=0.9, gae_lambda=0.9)[:5] for s in (stream, changed))
    np.testing.assert_array_equal(before, after)


@pytest.mark.medium
def test_gradient_reaches_values_so_callers_must_stop_it(stream: Stream) -> None:
    def total(values: Any) -> Any:
        return gae(**(stream | {"values": values}), discount=0.9, gae_lambda=0.0).sum()

    np.testing.assert_allclose(jax.grad(total)(stream["values"]), -np.ones(7))


@pytest.mark.medium
def test_gradient_reaches_next_values_but_not_past_a_termination(stream: Stream) -> None:
    def total(next_values: Any, function: Any) -> Any:
        return function(**(stream | {"next_values": next_values})).sum()

    one_step = partial(gae, discount=0.9, gae_lambda=0.0)
    gradient = jax.grad(total)(stream["next_values"], one_step)
    np.testing.assert_allclose(gradient, np.where(stream["terminated"], 0.0, 0.9), rtol=1e-6)


def test_gradient_of_reward_to_go_counts_the_discounted_past(stream: Stream) -> None:
    def first(rewards: Any) -> Any:
        return reward_to_go(rewards, stream["terminated"], discount=0.5)[0]

    gradient = jax.grad(first)(stream["rewards"])
    np.testing.assert_array_equal(gradient, [1, 0.5, 0.25, 0, 0, 0, 0])


@pytest.mark.medium
def test_jit_changes_nothing_and_vmap_is_a_loop(stream: Stream) -> None:
    function = partial(gae, discount=0.9, gae_lambda=0.8)
    close(jax.jit(function)(**stream), function(**stream))
    streams = [make_stream(seed, 7) for seed in range(4)]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *streams)
    together = jax.vmap(lambda s: function(**s))(stacked)
    close(together, np.stack([function(**s) for s in streams]))


def test_rejects_a_batch(stream: Stream) -> None:
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), stream)
    with pytest.raises(TypeError, match="rewards"):
        gae(**batch, discount=0.9, gae_lambda=0.5)
