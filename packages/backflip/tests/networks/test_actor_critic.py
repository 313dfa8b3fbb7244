"""The default networks: weights, inputs and outputs."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.networks import torsos
from backflip.networks.actor_critic import actor_critic
from backflip.networks.layers import orthogonal
from backflip.networks.torsos import averaged, patches_of


def box(shape: tuple[int, ...], dtype: Any = np.float32) -> Box:
    high = 255 if dtype == np.uint8 else 1
    return Box(np.zeros(shape, dtype), np.full(shape, high, dtype), np.dtype(dtype))


VECTOR = EnvSpec("vector", box((5,)), Discrete(3), None)
CONTINUOUS = EnvSpec("continuous", box((5,)), box((2,)), None)
PIXELS = EnvSpec("pixels", box((84, 84, 4), np.uint8), Discrete(6), None, frame_stack=4)
SMALL_PIXELS = EnvSpec("small", box((10, 20, 1), np.uint8), Discrete(3), None)
SPECS = [VECTOR, CONTINUOUS, PIXELS, SMALL_PIXELS]
SMALL_SPECS = [VECTOR, CONTINUOUS, pytest.param(PIXELS, marks=pytest.mark.slow), SMALL_PIXELS]


def observations(spec: EnvSpec, batch: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    if spec.is_image:
        return jnp.asarray(rng.integers(0, 256, (batch, *spec.observation.shape), np.uint8))
    return jnp.asarray(rng.normal(size=(batch, *spec.observation.shape)), jnp.float32)


def answer(spec: EnvSpec, obs: Any, seed: int = 0) -> tuple[Any, Any]:
    return compiled(spec)(actor_critic(spec, (16, 16)).init(np.random.default_rng(seed)), obs)


@functools.cache
def compiled(spec: EnvSpec) -> Any:
    net = actor_critic(spec, (16, 16))
    return jax.jit(lambda params, obs: net.apply(params, net.preprocess(obs)))


# Weights


@pytest.mark.parametrize(("rows", "columns"), [(5, 5), (7, 3), (3, 7), (1, 4)])
@pytest.mark.parametrize("gain", [0.01, 1.0, 1.5])
def test_rows_or_columns_are_orthonormal_times_the_gain(
    rows: int, columns: int, gain: float
) -> None:
    w = orthogonal(np.random.default_rng(0), rows, columns, gain).astype(np.float64)
    assert w.shape == (rows, columns)
    small = w @ w.T if rows <= columns else w.T @ w
    np.testing.assert_allclose(small, gain**2 * np.eye(min(rows, columns)), atol=1e-6)


def test_orthogonal_matrices_favour_no_direction() -> None:
    """Without the sign correction the diagonal would lean to one side."""
    rng = np.random.default_rng(0)
    drawn = np.stack([orthogonal(rng, 3, 3, 1.0) for _ in range(2000)])
    np.testing.assert_allclose(drawn.mean(0), np.zeros((3, 3)), atol=4 / np.sqrt(3 * 2000))
    np.testing.assert_allclose(np.square(drawn).mean(0), np.full((3, 3), 1 / 3), atol=0.03)


@pytest.mark.medium
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_biases_start_at_0_and_arrays_are_of_the_host(spec: EnvSpec) -> None:
    params = actor_critic(spec, (16, 16)).init(np.random.default_rng(0))
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        assert type(leaf) is np.ndarray
        assert leaf.dtype == np.float32
        if path[-1].key == "b":
            assert not leaf.any()


@pytest.mark.medium
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_one_generator_one_network(spec: EnvSpec) -> None:
    net = actor_critic(spec, (16,))
    one, same, other = (net.init(np.random.default_rng(seed)) for seed in (1, 1, 2))
    pairs = zip(*(jax.tree.leaves(tree) for tree in (one, same, other)), strict=True)
    for a, b, c in pairs:
        np.testing.assert_array_equal(a, b)
        assert not a.any() or (a != c).any()


# Answers


@pytest.mark.medium
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_first_policy_is_close_to_uniform(spec: EnvSpec) -> None:
    head, value = answer(spec, observations(spec, 8))
    outputs = spec.action.n if isinstance(spec.action, Discrete) else spec.action.shape[0]
    assert head.shape == (8, outputs)
    assert value.shape == (8,)
    assert float(jnp.abs(head).max()) < 0.1
    assert float(jnp.abs(value).max()) > 0.01


@pytest.mark.medium
@pytest.mark.parametrize("spec", SMALL_SPECS, ids=lambda spec: spec.id)
def test_rows_are_independent(spec: EnvSpec) -> None:
    obs, order = observations(spec, 6), jnp.array([3, 0, 5, 1, 4, 2])
    head, value = answer(spec, obs)
    permuted, permuted_value = answer(spec, obs[order])
    np.testing.assert_allclose(permuted, head[order], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(permuted_value, value[order], rtol=1e-4, atol=1e-6)
    alone, alone_value = answer(spec, obs[2:3])
    np.testing.assert_allclose(alone, head[2:3], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(alone_value, value[2:3], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "spec",
    [SMALL_SPECS[0], *(pytest.param(spec, marks=pytest.mark.slow) for spec in SMALL_SPECS[1:])],
    ids=lambda spec: spec.id,
)
@pytest.mark.medium
def test_jit_changes_nothing_and_vmap_over_seeds_is_a_loop(spec: EnvSpec) -> None:
    net, obs = actor_critic(spec, (16, 16)), observations(spec, 4)
    seeds = [net.init(np.random.default_rng(seed)) for seed in range(3)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(x) for x in leaves]), *seeds)
    together = jax.jit(jax.vmap(compiled(spec), in_axes=(0, None)))(stacked, obs)
    for i in range(3):
        with jax.disable_jit(i == 0):
            alone = answer(spec, obs, seed=i)
        for found, expected in zip(together, alone, strict=True):
            np.testing.assert_allclose(found[i], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_the_two_vector_networks_share_no_parameter() -> None:
    """As if computed one by one with plain matrices; no gradient from one into the other."""
    net, obs = actor_critic(VECTOR, (16, 8)), observations(VECTOR, 4)
    params = net.init(np.random.default_rng(0))
    head, value = net.apply(jax.tree.map(jnp.asarray, params), obs)
    found = []
    for k, last in enumerate(("policy", "value")):
        x = np.asarray(obs)
        for layer in params["body"]:
            x = np.tanh(x @ layer["w"][k] + layer["b"][k])
        found.append(x @ params[last]["w"] + params[last]["b"])
    np.testing.assert_allclose(head, found[0], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(value, found[1][:, 0], rtol=1e-4, atol=1e-5)

    gradient = jax.grad(lambda p: net.apply(p, obs)[0].sum())(jax.tree.map(jnp.asarray, params))
    for layer in gradient["body"]:
        assert float(jnp.abs(layer["w"][0]).sum()) > 0
        assert float(jnp.abs(layer["w"][1]).sum()) == 0


@pytest.mark.medium
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_gradient_reaches_every_weight(spec: EnvSpec) -> None:
    net, obs = actor_critic(spec, (16, 16)), observations(spec, 32)
    params = jax.tree.map(jnp.asarray, net.init(np.random.default_rng(0)))

    @jax.jit
    @jax.grad
    def gradient_of_squares(params: Any) -> Any:
        return sum(jnp.square(x).sum() for x in net.apply(params, net.preprocess(obs)))

    gradient = gradient_of_squares(params)
    for path, leaf in jax.tree_util.tree_leaves_with_path(gradient):
        assert float(jnp.abs(leaf).sum()) > 0, path


# Pixels


def patches_by_definition(images: np.ndarray, factor: int, side: int) -> np.ndarray:
    """Pad with black, average squares, cut patches: loops over everything."""
    batch, height, width, channels = images.shape
    whole = factor * side
    rows, columns = -(-height // whole), -(-width // whole)
    padded = np.zeros((batch, rows * whole, columns * whole, channels))
    padded[:, :height, :width] = images
    found = np.zeros((batch, rows * columns, side * side * channels))
    for b in range(batch):
        for r in range(rows):
            for c in range(columns):
                values = []
                for y in range(side):
                    for x in range(side):
                        top, left = r * whole + y * factor, c * whole + x * factor
                        square = padded[b, top : top + factor, left : left + factor]
                        values.extend(square.mean((0, 1)) / 255)
                found[b, r * columns + c] = values
    return found


@pytest.mark.medium
@pytest.mark.parametrize(
    ("shape", "factor", "side"),
    [((2, 12, 12, 4), 2, 6), ((1, 10, 20, 1), 1, 6), ((2, 7, 5, 3), 2, 2), ((1, 4, 4, 1), 4, 1)],
)
def test_patches_equal_the_definition(shape: tuple[int, ...], factor: int, side: int) -> None:
    images = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    found = patches_of(averaged(jnp.asarray(images), factor), side)
    np.testing.assert_allclose(found, patches_by_definition(images, factor, side), atol=1e-6)


@pytest.mark.medium
def test_patches_by_hand() -> None:
    """A 2 x 2 square of 0, 255, 255, 0 averages to ½; white stays 1."""
    image = jnp.array([[0, 255, 255, 255], [255, 0, 255, 255]], jnp.uint8)[None, :, :, None]
    np.testing.assert_array_equal(averaged(image, 2)[..., 0], [[[0.5, 1.0]]])


@pytest.mark.medium
def test_a_standardised_picture_by_hand() -> None:
    """Three cells at 0 and one at 1: mean ¼, deviation √3/4; a picture of one colour is 0."""
    images = jnp.array([[[0.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]])[..., None]
    dark, bright = -0.25 / (3**0.5 / 4 + 1e-3), 0.75 / (3**0.5 / 4 + 1e-3)
    expected = [[[dark, dark], [dark, bright]], [[0, 0], [0, 0]]]
    found = torsos.standardized(images, jnp.ones((1, 2, 2, 1)))
    np.testing.assert_allclose(found[..., 0], expected, rtol=1e-5)


@pytest.mark.medium
def test_padding_is_excluded_from_standardisation() -> None:
    """Cells ½ and 1, and two invalid ones: mean ¾, deviation ¼."""
    images, inside = (
        jnp.array([[0.5, 0.0], [1.0, 0.0]])[None, ..., None],
        jnp.array([[1.0, 0.0], [1.0, 0.0]])[None, ..., None],
    )
    side = 0.25 / (0.25 + 1e-3)
    found = torsos.standardized(images, inside)
    np.testing.assert_allclose(found[..., 0], [[[-side, 0], [side, 0]]], rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("side", [pytest.param(84, marks=pytest.mark.slow), 64])  # filled up to 66
def test_contrast_is_invariant_to_brightness(side: int) -> None:
    """A brighter picture gives the same inputs; a shifted one does not."""
    rng = np.random.default_rng(0)
    spec = EnvSpec("pixels", box((side, side, 4), np.uint8), Discrete(3), None)
    obs = rng.integers(0, 100, (1, side, side, 4), np.uint8)
    moved = np.roll(obs, 7, axis=2)
    same = jnp.asarray(np.concatenate([obs, 2 * obs, obs + 50, moved]))
    net = torsos.pixel_torso(spec, (), "contrast")
    features = np.asarray(net.apply(net.init(rng), net.preprocess(same)))
    for other in features[1:3]:
        np.testing.assert_allclose(other, features[0], atol=0.05)
    assert np.abs(features[3] - features[0]).max() > 0.5


@pytest.mark.parametrize(
    ("side", "factor"), [(42, 1), (64, 1), (65, 2), (84, 2), (128, 2), (210, 4)]
)
def test_images_are_halved_until_they_fit(side: int, factor: int) -> None:
    assert torsos.halving((side, 10, 3)) == factor
    assert torsos.halving((10, side, 3)) == factor


@pytest.mark.medium
def test_a_single_pixel_changes_the_output_anywhere() -> None:
    obs = np.zeros((4, 84, 84, 4), np.uint8)
    for row, (y, x, frame) in enumerate([(0, 0, 0), (83, 83, 3), (41, 2, 1)], start=1):
        obs[row, y, x, frame] = 255
    _, value = answer(PIXELS, jnp.asarray(obs))
    assert len(set(np.asarray(value).tolist())) == 4


def test_rejects_images_that_are_not_bytes() -> None:
    with pytest.raises(TypeError, match="images"):
        averaged(jnp.zeros((1, 12, 12, 1)), 1)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("side", "stride"),
    [
        pytest.param(2, 1, marks=pytest.mark.slow),
        pytest.param(4, 2, marks=pytest.mark.slow),
        pytest.param(3, 1, marks=pytest.mark.slow),
        (3, 2),
    ],
)
def test_convolutions_and_their_gradients_equal_those_of_xla(side: int, stride: int) -> None:
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(3, 9, 12, 5)), jnp.float32)
    w, b = rng.normal(size=(side * side * 5, 7)), rng.normal(size=7)
    layer = {"w": jnp.asarray(w, jnp.float32), "b": jnp.asarray(b, jnp.float32)}

    def by_xla(layer: Any, x: Any) -> Any:
        kernel = layer["w"].reshape(side, side, 5, 7)
        numbers = ("NHWC", "HWIO", "NHWC")
        strides = (stride, stride)
        out = jax.lax.conv_general_dilated(x, kernel, strides, "VALID", dimension_numbers=numbers)
        return out + layer["b"][None, None, None]

    def by_us(layer: Any, x: Any) -> Any:
        return torsos.convolve(layer, x, side, stride)

    def graded(function: Any) -> Any:
        return jax.grad(lambda *a: jnp.square(function(*a)).sum(), (0, 1))(layer, x)

    np.testing.assert_allclose(by_us(layer, x), by_xla(layer, x), rtol=1e-4, atol=1e-4)
    pairs = zip(*map(jax.tree.leaves, map(graded, (by_us, by_xla))), strict=True)
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-2)


@pytest.mark.medium
def test_cells_are_divided_by_at_least_1() -> None:
    nothing = np.zeros((8, 8, 2), np.uint8)
    spec = EnvSpec("dark", Box(nothing, nothing, nothing.dtype), Discrete(2), None)
    for head in answer(spec, jnp.asarray(nothing[None])):
        assert np.isfinite(head).all()


@pytest.mark.slow
def test_flat_equals_dense_layers_on_scaled_pixels() -> None:
    net = torsos.pixel_torso(SMALL_PIXELS, (16, 8), "flat")
    params = net.init(np.random.default_rng(0))
    obs = observations(SMALL_PIXELS, 2)
    first, second = params["body"]
    x = np.asarray(obs).reshape(2, 200) / 255.0
    x = np.maximum(x @ first["w"] + first["b"], 0.0)
    expected = np.maximum(x @ second["w"] + second["b"], 0.0)
    assert net.features == 8
    assert (expected > 0).sum() > 4
    np.testing.assert_allclose(
        net.apply(params, net.preprocess(obs)), expected, rtol=1e-5, atol=1e-6
    )
