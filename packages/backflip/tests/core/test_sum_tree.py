"""The sum tree against plain sums and draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.core.replay import sum_tree

put = jax.jit(sum_tree.put)
find = jax.jit(sum_tree.find)


@pytest.mark.parametrize(
    ("count", "leaves"), [(1, 2), (2, 2), (3, 4), (4, 4), (5, 8), (1000, 1024)]
)
def test_leaves_are_the_next_power_of_two(count: int, leaves: int) -> None:
    assert sum_tree.leaves_for(count) == leaves
    assert sum_tree.empty(count).shape == (2 * leaves,)


@pytest.mark.medium
@pytest.mark.parametrize("count", [1, 2, 5, 100])
def test_every_node_is_the_sum_of_the_leaves_below(count: int) -> None:
    rng = np.random.default_rng(count)
    tree, leaves = jnp.asarray(sum_tree.empty(count)), sum_tree.leaves_for(count)
    wanted = np.zeros(leaves)
    for _ in range(20):
        index = rng.choice(count, min(count, 7), replace=False).astype(np.int32)
        priority = rng.integers(0, 100, len(index)).astype(np.float32)
        tree, wanted[index] = put(tree, index, priority), priority
    level, at = wanted, leaves
    while at:
        np.testing.assert_array_equal(tree[at : 2 * at], level)
        level, at = level.reshape(-1, 2).sum(1) if at > 1 else level, at // 2


def test_node_0_is_the_largest_priority_so_far() -> None:
    tree = jnp.asarray(sum_tree.empty(4))
    index = jnp.asarray([1, 2])
    found = []
    for priority in ([0.5, 0.2], [3.0, 7.0], [1.0, 2.0]):
        tree = put(tree, index, jnp.asarray(priority))
        found.append(float(tree[0]))
    assert found == [1, 7, 7]


def test_a_duplicate_leaf_keeps_one_priority_and_right_sums() -> None:
    tree = put(jnp.asarray(sum_tree.empty(8)), jnp.asarray([3, 3, 5]), jnp.asarray([1.0, 2, 4]))
    assert float(tree[8 + 3]) in (1, 2)
    assert float(tree[1]) == float(tree[8 + 3]) + 4


@pytest.mark.medium
def test_draws_are_proportional_and_probabilities_are_returned() -> None:
    """Within one per mille: each of 10,000 equal parts of the whole has one draw in it."""
    rng = np.random.default_rng(0)
    priority = rng.uniform(0, 1, 37).astype(np.float32) ** 3
    priority[[0, 5, 36]] = 0
    tree = put(jnp.asarray(sum_tree.empty(37)), jnp.arange(37), jnp.asarray(priority))
    uniform = jnp.asarray(rng.uniform(0, 1, (2, 10_000)), jnp.float32)
    index, chance = find(tree, uniform)
    share = priority / priority.sum()
    counts = np.bincount(np.asarray(index).reshape(-1), minlength=37) / index.size
    np.testing.assert_allclose(counts, share, atol=1e-3)
    assert (counts[[0, 5, 36]] == 0).all()
    np.testing.assert_allclose(chance, share[index], rtol=1e-4)


@pytest.mark.medium
@pytest.mark.parametrize("count", [1, 3, 64, 1000])
def test_a_leaf_without_priority_is_never_drawn(count: int) -> None:
    rng = np.random.default_rng(count)
    for _ in range(20):
        priority = (rng.uniform(1e-6, 1, count) * (rng.uniform(size=count) < 0.3)).astype("f4")
        priority[rng.integers(count)] = 0.1
        tree = put(jnp.asarray(sum_tree.empty(count)), jnp.arange(count), priority)
        uniform = np.concatenate([np.zeros(50), np.full(50, 1 - 2**-24), rng.uniform(size=100)])
        index, _ = find(tree, jnp.asarray(uniform, jnp.float32)[None])
        assert (priority[np.asarray(index)] > 0).all()
