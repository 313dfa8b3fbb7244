"""An exported policy acts as the run's own, in a process that can import NumPy only."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from backflip.algorithms.interface import Algorithm
from backflip.algorithms.registry import algorithms, entry_of
from backflip.cli.main import main
from backflip.core.spaces import Box, Discrete, Group, MultiDiscrete
from backflip.core.spec import EnvSpec, OwnSpaces
from backflip.export.numpy_policy import OPERATIONS, fold_in, inverse_erf, random_bits, split
from backflip.export.numpy_policy import Policy as NumpyPolicy
from backflip.export.program import record
from backflip.export.write import export_policy, packed, source
from backflip.training.algorithm_config import configure
from backflip.training.policy import Policy
from backflip.training.train import train
from runshelf.errors import UsageError
from runshelf.store.finding import find_run

FLOAT = np.dtype(np.float32)


def box(low: float, high: float, *shape: int) -> Box:
    return Box(np.full(shape, low, FLOAT), np.full(shape, high, FLOAT), FLOAT)


def image(*shape: int, high: int = 255) -> Box:
    kind = np.dtype(np.uint8)
    return Box(np.zeros(shape, kind), np.full(shape, high, kind), kind)


class Case(NamedTuple):
    """An algorithm, the spaces it acts in, and settings."""

    algorithm: str
    observation: Box
    action: Box | Discrete
    settings: Mapping[str, Any] = MappingProxyType({})
    own: OwnSpaces | None = None


VECTOR, PUSH = box(-2, 2, 3), Box(np.array([-1, 0], FLOAT), np.array([1, 20], FLOAT), FLOAT)
NAMED = {"goal": Discrete(3, 1), "place": box(-1, 1, 1, 2)}
CASES = {
    **{f"{name}, vectors": Case(name, VECTOR, Discrete(3)) for name in ("a2c", "vpg", "cem")},
    **{f"{name}, floats": Case(name, VECTOR, PUSH) for name in ("a2c", "vpg", "ddpg", "cem")},
    "ppo, vectors": Case("ppo", VECTOR, Discrete(3)),
    "ppo, normalised": Case("ppo", VECTOR, PUSH, {"normalize_obs": True}),
    "dqn, vectors": Case("dqn", VECTOR, Discrete(3), {"dueling": True}),
    "sac, vectors": Case("sac", VECTOR, Discrete(3)),
    "sac, floats": Case("sac", VECTOR, PUSH),
    "td3, floats": Case("td3", VECTOR, PUSH),
    "ppo, patches": Case("ppo", image(100, 90, 4), Discrete(3), {"network": "patches"}),
    "a2c, contrast": Case("a2c", image(70, 84, 2), Discrete(3), {"network": "contrast"}),
    "sac, nature": Case("sac", image(44, 40, 3), Discrete(3), {"network": "nature"}),
    "vpg, flat": Case("vpg", image(9, 8, 1), box(-9, 9, 2), {"network": "flat"}),
    "dqn, grid": Case("dqn", image(10, 10, 2, high=1), Discrete(4), {"network": "grid"}),
    "dqn, contrast": Case("dqn", image(84, 84, 4), Discrete(4), {"network": "contrast"}),
    "ppo, parts": Case(
        "ppo",
        box(-1, 1, 5),
        Discrete(6),
        own=OwnSpaces(
            Group(NAMED, named=True),
            MultiDiscrete(np.array([3, 2]), np.array([-1, 0]), np.dtype(np.int64)),
        ),
    ),
}

QUICK = (  # one of each algorithm or kind of network; large convolutions take seconds to compile
    *("ppo, normalised", "dqn, vectors", "sac, floats", "cem, vectors", "td3, floats"),
    *("ppo, patches", "dqn, grid", "ppo, parts"),
)


def learner(case: Case) -> tuple[EnvSpec, Algorithm, Any]:
    """The algorithm and a state with random parameters, as after training."""
    spec = EnvSpec("mine", case.observation, case.action, 100, own=case.own)
    entry = entry_of(case.algorithm)
    algorithm = entry.build(configure(entry, case.settings), spec)
    rng = np.random.default_rng(3)

    def moved(x: Any) -> Any:
        array = np.asarray(x)
        noise = rng.normal(scale=0.1, size=array.shape)
        noise = np.abs(noise) if (array >= 0).all() else noise  # variances stay positive
        return array + noise.astype(array.dtype) if array.dtype.kind == "f" else array

    return spec, algorithm, jax.tree.map(moved, algorithm.init(0))


def observations(case: Case, count: int) -> Any:
    rng = np.random.default_rng(5)
    if case.own is not None:
        place = rng.uniform(-1, 1, (count, 1, 2)).astype(FLOAT)
        return {"goal": rng.integers(1, 4, count), "place": place}
    shape = (count, *case.observation.shape)
    if case.observation.dtype == np.uint8:
        return rng.integers(0, int(case.observation.high.max()) + 1, shape).astype(np.uint8)
    return (3 * rng.normal(size=shape)).astype(FLOAT)


def one(batch: Any, row: int) -> Any:
    return {k: v[row] for k, v in batch.items()} if isinstance(batch, dict) else batch[row]


def test_every_algorithm_has_a_case() -> None:
    assert {case.algorithm for case in CASES.values()} == set(algorithms())


@pytest.mark.medium
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in QUICK else pytest.mark.slow) for kind in CASES]
)
def test_acts_as_the_policy_does(kind: str, tmp_path: Path) -> None:
    case = CASES[kind]
    spec, algorithm, state = learner(case)
    (tmp_path / "policy.npz").write_bytes(packed(record(algorithm, state, spec), spec, {}))
    ours, theirs = Policy(spec, algorithm, state), NumpyPolicy(tmp_path / "policy.npz")
    obs = observations(case, 7)
    for row in (0, 1):  # one by one, then as a batch; sampled actions follow the calls
        for given in (one(obs, row), obs):
            expected, got = ours.act(given), theirs.act(given)
            assert got.dtype == expected.dtype
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    if isinstance(case.action, Box):  # the comparison would be void if all actions were clipped
        assert np.std(ours.act(obs), 0).min() > 0


def test_slices_along_an_axis_by_hand() -> None:
    """JAX has this operation since 0.11."""
    first, second = OPERATIONS["unstack"]({"axis": 1}, np.array([[1, 2], [3, 4]]))
    assert (first.tolist(), second.tolist()) == ([1, 3], [2, 4])


@pytest.mark.medium
def test_random_numbers_are_those_of_jax() -> None:
    raw, key = (
        np.array([3, 4_000_000_000], np.uint32),
        jax.random.wrap_key_data(np.array([3, 4_000_000_000], np.uint32)),
    )
    first, second = (np.asarray(jax.random.key_data(x)) for x in jax.random.split(key))
    np.testing.assert_array_equal(split(raw), (first, second))
    for number in (0, 7, 2**31):
        np.testing.assert_array_equal(
            fold_in(raw, number), jax.random.key_data(jax.random.fold_in(key, np.uint32(number)))
        )
    for shape in ((), (1,), (5, 3)):
        expected = jax.random.bits(key, shape)
        np.testing.assert_array_equal(random_bits({"shape": shape}, raw), expected)


SHORT = {"hidden": (8,), "num_envs": 2}
FEW = {"rollout_length": 16, "learning_starts": 64, "batch_size": 32}
ALONE = """
import json, sys
import numpy as np
sys.path.insert(0, {folder!r})
for name in ("backflip", "runshelf", "jax", "jaxlib", "jaxtyping", "gymnasium"):
    sys.modules[name] = None  # importing it raises
from mine import Policy
policy = Policy({folder!r} + "/mine.npz")
obs = np.load({folder!r} + "/obs.npy")
print(json.dumps([policy.act(obs).tolist(), policy.act(obs[0]).tolist(), policy.about["seed"]]))
"""


@pytest.mark.medium
@pytest.mark.parametrize(
    ("algorithm", "env", "settings"),
    [
        pytest.param("ppo", "Pendulum-v1", {**SHORT, "minibatches": 1}, marks=pytest.mark.slow),
        (
            "dqn",
            "gymnasium:CartPole-v1",
            {**SHORT, **FEW},
        ),
    ],
)
def test_an_exported_run_acts_where_only_numpy_is(
    algorithm: str, env: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    result = train(algorithm, env, seeds=2, env_steps=256, settings=settings, home=tmp_path)
    arguments = [result.run, str(tmp_path / "mine.npz"), "--seed", "1", "--json"]
    assert main(["export-policy", *arguments, "--home", str(tmp_path)]) == 0
    size = 3 if env.startswith("Pendulum") else 4
    obs = np.random.default_rng(1).normal(size=(9, size)).astype(FLOAT)
    np.save(tmp_path / "obs.npy", obs)
    program = ALONE.format(folder=str(tmp_path))
    isolated = [sys.executable, "-I", "-c", program]
    done = subprocess.run(isolated, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    every, first, seed = json.loads(done.stdout)
    policy = result.policy(1)
    np.testing.assert_allclose(every, policy.act(obs), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(first, policy.act(obs[0]), rtol=1e-5, atol=1e-5)
    assert seed == 1
    assert not np.array_equal(every, result.policy(0).act(obs)) or algorithm == "dqn"
    with pytest.raises(UsageError, match="has no seed 7; it has 0, 1"):
        export_policy(find_run(tmp_path, result.run), tmp_path / "mine.npz", 7)
    (tmp_path / "other.py").write_text("print()\n")
    with pytest.raises(UsageError, match="is another program, which would be overwritten"):
        export_policy(find_run(tmp_path, result.run), tmp_path / "other.npz")
    with pytest.raises(UsageError, match=r"must end in \.npz, got .*; try mine\.npz"):
        export_policy(find_run(tmp_path, result.run), tmp_path / "mine.onnx")


def test_the_program_imports_numpy_only() -> None:
    lines = [line for line in source().splitlines() if line.startswith(("import ", "from "))]
    modules = {line.split()[1].partition(".")[0] for line in lines}
    assert modules - sys.stdlib_module_names == {"numpy"}


def test_inverse_of_the_error_function() -> None:
    x = np.tanh(np.linspace(-6, 6, 2_001)).astype(FLOAT)
    expected = np.asarray(jax.scipy.special.erfinv(x))
    np.testing.assert_allclose(inverse_erf({}, x), expected, rtol=1e-5)


def test_an_operation_that_numpy_does_not_have_is_named() -> None:
    spec, algorithm, state = learner(CASES["ppo, vectors"])

    def act(state: Any, obs: Any, key: Any) -> Any:
        del key
        return jax.lax.sort(algorithm.evaluation_action(state, obs, jax.random.key(0)))

    with pytest.raises(UsageError, match="operations that the NumPy file does not have: sort"):
        record(algorithm._replace(evaluation_action=act), state, spec)


@pytest.mark.parametrize(
    ("named", "operation"),
    [
        ("cumsum with reverse", lambda x, _: jax.lax.cumsum(x, reverse=True)),
        ("pad with interior padding", lambda x, _: jax.lax.pad(x, 0.0, [(0, 0, 1)])),
        ("round with rounding_method", lambda x, _: jax.lax.round(x)),
        (
            "reshape with dimensions",
            lambda x, _: jax.lax.reshape_p.bind(  # JAX transposes before
                x[None], new_sizes=(3,), dimensions=(1, 0), sharding=None
            ),
        ),
        ("random_bits with bit_width", lambda _, key: jax.random.bits(key, (3,), "uint8")),
        (
            "dot_general with preferred_element_type",
            lambda x, _: jax.lax.dot(
                x.astype("int8"), x.astype("int8"), preferred_element_type="int32"
            ),
        ),
    ],
)
def test_parameters_that_numpy_does_not_compute_are_refused(
    named: str, operation: Callable[[jax.Array, jax.Array], jax.Array]
) -> None:
    spec, algorithm, state = learner(CASES["ppo, vectors"])

    def act(state: Any, obs: Any, key: Any) -> Any:
        del state
        return operation(obs[0], key)[None]

    changed = algorithm._replace(evaluation_action=act)
    with pytest.raises(UsageError, match=f"the NumPy file does not have: {named};"):
        record(changed, state, spec)


def test_bits_move_right_without_the_sign() -> None:
    x, bits = np.array([-8, 8], np.int32), np.array([1, 1], np.int32)
    expected = np.asarray(jax.lax.shift_right_logical(x, bits))
    found = OPERATIONS["shift_right_logical"]({}, x, bits).astype(np.int32)
    assert found.tolist() == expected.tolist() == [2**31 - 4, 4]


def test_reductions_of_whole_numbers_are_those_of_their_bits() -> None:
    x = np.array([[6, 3], [4, 8]], np.int32)
    assert OPERATIONS["reduce_and"]({"axes": [1]}, x).tolist() == [2, 0]
    assert OPERATIONS["reduce_or"]({"axes": [0, 1]}, x).tolist() == 15


@pytest.mark.medium
@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions_of_a_users_network(groups: int, tmp_path: Path) -> None:
    spec = EnvSpec("mine", image(9, 8, 2), box(-9, 9, 4), 100)
    _, algorithm, state = learner(Case("ppo", image(9, 8, 2), box(-9, 9, 4), {"network": "flat"}))
    kernel = np.random.default_rng(0).normal(size=(3, 2, 2 // groups, 4)).astype(FLOAT)

    def act(state: Any, obs: Any, key: Any) -> Any:
        del state, key
        return (
            jax.lax.conv_general_dilated(
                obs.astype(FLOAT) / 255,
                kernel,
                (2, 1),
                "SAME",
                dimension_numbers=("NHWC", "HWIO", "NHWC"),
                feature_group_count=groups,
            ).sum((1, 2))
            / 90
        )

    changed = algorithm._replace(evaluation_action=act)
    if groups > 1:
        with pytest.raises(
            UsageError, match="does not have: conv_general_dilated with feature_group_count"
        ):
            record(changed, state, spec)
        return
    (tmp_path / "own.npz").write_bytes(packed(record(changed, state, spec), spec, {}))
    obs = observations(Case("ppo", spec.observation, spec.action), 4)
    expected = Policy(spec, changed, state).act(obs)
    assert np.abs(expected).max() < 9
    got = NumpyPolicy(tmp_path / "own.npz").act(obs)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_observations_that_are_not_finite_are_refused(tmp_path: Path, number: float) -> None:
    case = CASES["ppo, vectors"]
    spec, algorithm, state = learner(case)
    (tmp_path / "policy.npz").write_bytes(packed(record(algorithm, state, spec), spec, {}))
    obs = observations(case, 3)
    obs[1] = number
    with pytest.raises(ValueError, match="`obs` has numbers that are not finite"):
        NumpyPolicy(tmp_path / "policy.npz").act(obs)


def test_other_files_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(ValueError, match="is not a policy that this file can read"):
        NumpyPolicy(tmp_path / "other.npz")
