"""Policies and checkpoints of a received run: refused in a line, before memory is taken."""

import json
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packages.runshelf.tests.attacks.commands import no_hang
from packages.runshelf.tests.attacks.mutations import HOSTILE
from tests.attack_figures import Tried

from backflip.core import checkpoint
from backflip.core.checkpoint import LoadedArrays, load_arrays, save_arrays
from backflip.training.policy import load_saved_policy
from runshelf.errors import UserFacingError

pytestmark = pytest.mark.attack

ABOUT: dict[str, Any] = {
    "spec": {
        "id": "dot",
        "observation": {"shape": [2], "dtype": "float32"},
        "action": {"n": 3},
        "max_episode_steps": 10,
        "frame_stack": 1,
    },
    "seeds": [0],
    "algorithm": "ppo",
    "settings": {"hidden": [4]},
    "env_steps": 10,
}
LARGE: dict[str, Any] = {
    "a shape of 10^12 numbers": {"observation": {"shape": [10**6, 10**6], "dtype": "float32"}},
    "a shape of 10^9 numbers": {"observation": {"shape": [10**9], "dtype": "uint8"}},
    "a negative shape": {"observation": {"shape": [-1], "dtype": "float32"}},
    "a shape of fractions": {"observation": {"shape": [1.5], "dtype": "float32"}},
    "numbers of a gigabyte each": {"observation": {"shape": [2], "dtype": "S1000000000"}},
    "10^12 actions": {"action": {"n": 10**12}},
    "minus one action": {"action": {"n": -1}},
    "an action that is a group": {"action": {"dict": {"a": {"n": 2}}}},
    "a hundred thousand spaces": {
        "own": {
            "observation": {"dict": {str(n): {"n": 2} for n in range(10**5)}},
            "action": {"n": 3},
        }
    },
    "sizes of 10^12": {
        "own": {"observation": {"sizes": [10**12], "start": [0]}, "action": {"n": 3}}
    },
    "no shape": {"observation": {}},
}


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    """Let this process take at most 4 GiB more than it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * resource.getpagesize() + 4 * 2**30
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def saved(folder: Path, about: dict[str, Any]) -> Path:
    path = folder / "policy.safetensors"
    save_arrays(path, {"x": np.zeros((1, 2), np.float32)}, {"about": json.dumps(about)})
    return path


@pytest.mark.medium
@pytest.mark.parametrize("what", LARGE)
def test_a_spec_that_claims_memory_is_refused(tmp_path: Path, what: str, tried: Tried) -> None:
    path = saved(tmp_path, ABOUT | {"spec": ABOUT["spec"] | LARGE[what]})
    with no_hang(), pytest.raises(UserFacingError) as refusal:
        load_saved_policy(path)
    assert len(str(refusal.value)) < 1000
    tried(1, "policies that claim memory")


@pytest.mark.medium
@pytest.mark.parametrize(
    "settings",
    [
        {"hidden": [10**6, 10**6]},
        pytest.param({"hidden": [60_000, 60_000]}, marks=pytest.mark.slow),
        {"hidden": [4] * 10_000},
        {"x": 1},
        [],
    ],
    ids=lambda settings: str(settings)[:30],
)
def test_settings_that_claim_memory_are_refused(
    tmp_path: Path, settings: Any, tried: Tried
) -> None:
    with no_hang(), pytest.raises(UserFacingError):
        load_saved_policy(saved(tmp_path, ABOUT | {"settings": settings}))
    tried(1, "policies that claim memory")


@pytest.mark.medium
@pytest.mark.parametrize(
    "field", ["spec", "seeds", "algorithm", "settings", "spec.action", "spec.frame_stack"]
)
def test_hostile_facts_of_a_policy_are_refused(tmp_path: Path, field: str, tried: Tried) -> None:
    name, _, inner = field.partition(".")
    for hostile in HOSTILE:
        changed = ABOUT | {name: ABOUT["spec"] | {inner: "MARK"} if inner else "MARK"}
        about = json.dumps(changed).replace('"MARK"', hostile)
        path = tmp_path / "policy.safetensors"
        save_arrays(path, {"x": np.zeros((1, 2), np.float32)}, {"about": about})
        with no_hang(), pytest.raises(UserFacingError):
            load_saved_policy(path)
    tried(len(HOSTILE), "hostile facts of a policy")


@pytest.mark.parametrize("at", ["length", "shape", "offsets", "dtype", "metadata"])
def test_a_header_that_claims_memory_is_refused(tmp_path: Path, at: str, tried: Tried) -> None:
    path = saved(tmp_path, ABOUT)
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    if at == "shape":
        header["x"]["shape"] = [10**6, 10**6]
    if at == "offsets":
        header["x"]["data_offsets"] = [0, 10**12]
    if at == "dtype":
        header["x"]["dtype"] = "BF16"
    if at == "metadata":
        header["__metadata__"] = {"backflip.sha256": "0" * 64, "about": "[" * 100_000}
    text = json.dumps(header).encode()
    size = 10**12 if at == "length" else len(text)
    path.write_bytes(size.to_bytes(8, "little") + text + data[8 + length :])
    with no_hang(), pytest.raises(UserFacingError):
        load_saved_policy(path)
    tried(1, "policies that claim memory")


def test_sealed_arrays_that_numpy_lacks_are_refused(tmp_path: Path, tried: Tried) -> None:
    """An attacker can compute the checksum, too."""
    header = {
        "x": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]},
        "__metadata__": {"backflip.sha256": "0" * 64},
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    data = len(text).to_bytes(8, "little") + text + b"\0\0"
    path = tmp_path / "policy.safetensors"
    path.write_bytes(checkpoint._seal(data))
    with pytest.raises(UserFacingError, match="no usable checkpoint"):
        load_arrays(path)
    tried(1, "policies that claim memory")


def test_a_sound_file_is_read(tmp_path: Path) -> None:
    assert isinstance(load_arrays(saved(tmp_path, ABOUT)), LoadedArrays)
