"""Tests of the contacts on grids of cells."""

import jax.numpy as jnp
import numpy as np
import pytest
from packages.backflip.tests.rewards.test_change_map import frames, pixels

from backflip.rewards.registry import make_reward_model
from backflip.rewards.representations.change_map import change_maps
from backflip.rewards.representations.contacts import Contacts, contacts_of, has_contacts
from backflip.training.teaching.defaults import teach_settings
from runshelf.errors import UsageError

GRID = pixels(4, 5, channels=2, stack=2, high=1)


def slow_contacts(x, y):
    """Return counts and contacts of one step, from the module's docstring, cell by cell."""
    rows, columns, channels = x.shape

    def near(grid, r, c):
        return grid[max(r - 1, 0) : r + 2, max(c - 1, 0) : c + 2].max((0, 1))

    counts, contacts = np.zeros(3 * channels), np.zeros((3 * channels, 4 * channels))
    for r in range(rows):
        for c in range(columns):
            on, off = y[r, c] * (1 - x[r, c]), x[r, c] * (1 - y[r, c])
            p = np.concatenate([on, off, y[r, c]])
            q = np.concatenate([x[r, c], y[r, c], near(x, r, c), near(y, r, c)])
            counts += p
            contacts += np.outer(p, q)
    return counts, contacts


@pytest.mark.medium
@pytest.mark.parametrize("shape", [(4, 5, 2), (1, 3, 1), (10, 10, 4)])
def test_contacts_equal_the_definition(shape):
    rng = np.random.default_rng(0)
    x, y = (rng.random((3, *shape)).round(1) for _ in range(2))
    counts, contacts = contacts_of(jnp.asarray(x), jnp.asarray(y))
    for row in range(3):
        slow_counts, slow = slow_contacts(x[row], y[row])
        np.testing.assert_allclose(counts[row], slow_counts, rtol=1e-4)
        np.testing.assert_allclose(contacts[row], slow, rtol=1e-4)


def step(before, after):
    """Return one step of a 4 x 5 grid, of lists of (row, column, channel)."""
    grids = np.zeros((2, 1, 4, 5, 2), np.uint8)
    for grid, cells in zip(grids, (before, after), strict=True):
        for r, c, channel in cells:
            grid[0, r, c, channel] = 1
    return grids


@pytest.mark.medium
def test_eating_by_hand():
    """Gold (1) disappears in the cell that the player (0) enters: off_1 y_0 is 1, off_1 x_0 is 0.

    It had been next to the player: off_1 near(x)_0 is 1.
    """
    x, y = step([(2, 2, 0), (2, 3, 1)], [(2, 3, 0)])
    counts, contacts = contacts_of(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32))
    np.testing.assert_array_equal(counts[0], [1, 0, 1, 1, 1, 0])  # on, off, y
    np.testing.assert_array_equal(contacts[0, 3], [0, 1, 1, 0, 1, 1, 1, 0])


@pytest.mark.medium
def test_a_contact_is_the_same_wherever_it_happens():
    here = step([(1, 1, 0), (1, 2, 1)], [(1, 2, 0)])
    there = step([(2, 3, 0), (2, 2, 1)], [(2, 2, 0)])
    far = step([(1, 1, 0), (3, 4, 1)], [(1, 2, 0)])
    found = [np.asarray(Contacts(GRID).see(*one).after) for one in (here, there, far)]
    contacts = [one[:, -48:] for one in found]
    np.testing.assert_array_equal(contacts[0], contacts[1])
    assert not np.array_equal(contacts[0], contacts[2])
    assert not np.array_equal(found[0], found[1])  # places are in other groups


@pytest.mark.medium
def test_what_is_kept_of_a_step_and_its_groups():
    representation, rng = Contacts(GRID), np.random.default_rng(0)
    x, y = (frames(GRID, 400, seed) for seed in (0, 1))
    kept = np.asarray(representation.see(x, y).after)
    assert representation.sizes == (1, 40, 40, 6, 48, 3)
    assert kept.dtype == np.uint8
    np.testing.assert_array_equal(kept[:, :40], change_maps(GRID, x, y))
    np.testing.assert_array_equal(kept[:, 40:80], 255 * y.reshape(400, -1))
    counts, contacts = slow_contacts(x[7], y[7])
    np.testing.assert_array_equal(kept[7, 80:], [*counts, *contacts.ravel()])
    fitted, action = representation.fit(np.zeros((400, 0)), kept), rng.integers(0, 3, 400)
    found = representation.features(fitted, np.zeros((400, 0)), jnp.asarray(action), kept)
    for start, end in ((0, 40), (40, 80), (80, 86), (86, 134)):
        group = kept[:, start:end].astype(float)
        spread = group.std(0)
        expected = group / (spread + 0.02 * max(spread.max(), 1))
        np.testing.assert_allclose(found[:, 1 + start : 1 + end], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found[:, -3:], np.eye(3)[action])


@pytest.mark.slow
def test_sums_above_a_byte_end_there():
    spec = pixels(16, 16, channels=1, high=1)
    full = np.ones((1, 16, 16, 1), np.uint8)
    kept = np.asarray(Contacts(spec).see(full, full).after)[0]
    assert kept[2 * 256 :].tolist() == [0, 0, 255, *[0] * 8, *[255] * 4]


@pytest.mark.parametrize(
    "spec", [pixels(42, 30), pixels(10, 10, channels=17)], ids=["large", "channels"]
)
def test_other_images_are_refused_in_one_line(spec):
    assert not has_contacts(spec)
    assert teach_settings("ppo", spec)[1]["reward_model"] == "auto"
    with pytest.raises(UsageError, match=r"grids of at most 16 x 16 cells and 16 channels.*=auto"):
        make_reward_model("contacts", spec, 4, 5)


@pytest.mark.medium
def test_grids_are_taught_with_contacts():
    assert teach_settings("ppo", GRID)[1]["reward_model"] == "contacts"
