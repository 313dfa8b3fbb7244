"""Tests of `backflip.core.checkpoint`: bits, kills, damage, full disks."""

import errno
import json
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from backflip.core import checkpoint
from backflip.core.checkpoint import has_checkpoint, load_arrays, save_arrays
from runshelf.errors import DamagedFile, UsageError, UserFacingError
from runshelf.store import files
from runshelf.store.writing import write_whole

DTYPES = sorted(checkpoint._DTYPES)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "checkpoint.safetensors"


def save(path, version, size=1000):
    save_arrays(path, {"version": np.full(size, version)}, {"version": str(version)})


def version_at(path):
    arrays, metadata, _ = load_arrays(path)
    assert (arrays["version"] == int(metadata["version"])).all()
    return int(metadata["version"])


def flip(path, position):
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def same_bits(left, right):
    return (
        left.dtype == right.dtype
        and left.shape == right.shape
        and left.tobytes() == right.tobytes()
    )


@pytest.mark.medium
@given(
    arrays=st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=5).filter(lambda n: n != "__metadata__"),
        st.sampled_from(DTYPES).flatmap(
            lambda d: hnp.arrays(
                d, hnp.array_shapes(min_dims=0, min_side=0, max_dims=3, max_side=4)
            )
        ),
        max_size=4,
    ),
    metadata=st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=5), st.text(max_size=5)
    ),
)
def test_every_dtype_and_shape_comes_back_bit_for_bit(tmp_path_factory, arrays, metadata):
    path = tmp_path_factory.mktemp("checkpoint") / "x.safetensors"
    metadata = {k: v for k, v in metadata.items() if v.isprintable()}
    save_arrays(path, arrays, metadata)
    loaded = load_arrays(path)
    assert loaded.arrays.keys() == arrays.keys()
    assert all(same_bits(loaded.arrays[name], array) for name, array in arrays.items())
    assert loaded.metadata == metadata
    assert loaded.note is None


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_in_empty_scalar_and_transposed_shapes(path, dtype):
    arrays = {
        "scalar": np.array(1, dtype),
        "empty": np.zeros((3, 0, 2), dtype),
        "transposed": np.arange(6).astype(dtype).reshape(2, 3).T,
        "strided": np.arange(9).astype(dtype)[::-2],
    }
    save_arrays(path, arrays, {})
    loaded = load_arrays(path).arrays
    assert all(same_bits(loaded[name], array) for name, array in arrays.items())


def test_big_endian_arrays_keep_their_values(path):
    save_arrays(path, {"x": np.array([1, 2, 3], ">u4")}, {})
    np.testing.assert_array_equal(load_arrays(path).arrays["x"], np.array([1, 2, 3], "<u4"))


def test_a_checkpoint_without_arrays(path):
    assert checkpoint.from_safetensors(checkpoint.to_safetensors({}, {})) == {}
    save_arrays(path, {}, {})
    assert load_arrays(path) == ({}, {}, None)


def test_nan_payloads_and_signed_zeros_survive(path):
    bits = np.array([0x7FC00001, 0xFFC12345, 0x80000000, 0x00000001], np.uint32)
    save_arrays(path, {"x": bits.view(np.float32)}, {})
    np.testing.assert_array_equal(load_arrays(path).arrays["x"].view(np.uint32), bits)


def test_unsupported_dtypes_are_refused_and_nothing_is_replaced(path):
    save(path, 1)
    arrays = {"words": np.array(["a"]), "wide": np.zeros(1, np.complex128), "fine": np.zeros(1)}
    with pytest.raises(UsageError, match=r"`words`.*`wide`") as caught:
        save_arrays(path, arrays, {})
    assert "`fine`" not in str(caught.value)
    with pytest.raises(UsageError, match="reserved"):
        save_arrays(path, {}, {"backflip.sha256": "x"})
    assert version_at(path) == 1


def test_equal_contents_have_equal_bytes(tmp_path):
    """The library writes metadata in an order that is random in each call."""
    metadata = {name: f"{name}é\n" for name in "abcdef"}
    paths = [tmp_path / f"{number}.safetensors" for number in range(10)]
    for number, path in enumerate(paths):
        turned = dict(sorted(metadata.items(), reverse=number % 2 == 1))
        save_arrays(path, {"x": np.arange(3)}, turned)
    assert len({path.read_bytes() for path in paths}) == 1
    assert load_arrays(paths[0]).metadata == metadata


def test_metadata_that_imitates_the_seal_changes_nothing(path):
    metadata = {"x": '"backflip.sha256":"' + "0" * 64, "a": "backflip.sha256"}
    save_arrays(path, {"backflip.sha256": np.ones(2)}, metadata)
    assert load_arrays(path).metadata == metadata


@pytest.mark.medium
def test_every_flipped_bit_and_every_truncation_is_detected(path):
    save_arrays(path, {"x": np.arange(5, dtype=np.uint8)}, {"k": "v"})
    whole = path.read_bytes()
    damaged = [whole[:n] for n in range(len(whole))] + [whole + b"\0"]
    for position in range(len(whole)):
        for bit in range(8):
            changed = bytearray(whole)
            changed[position] ^= 1 << bit
            damaged.append(bytes(changed))
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(DamagedFile) as caught:
            load_arrays(path)
        assert "\n" not in str(caught.value)


def test_a_file_of_another_program_is_not_a_checkpoint(path):
    path.write_bytes(checkpoint.to_safetensors({"x": np.ones(3)}, {}))
    with pytest.raises(DamagedFile, match="not a checkpoint of backflip"):
        load_arrays(path)


def test_a_damaged_newest_file_falls_back_to_the_previous_and_says_so(path):
    save(path, 1)
    save(path, 2)
    flip(path, -1)
    loaded = load_arrays(path)
    assert loaded.metadata == {"version": "1"}
    assert loaded.note is not None
    assert "`checkpoint.safetensors` is damaged" in loaded.note
    assert "using `checkpoint.previous.safetensors`" in loaded.note
    path.unlink()
    assert "`checkpoint.safetensors` is missing" in (load_arrays(path).note or "")
    assert has_checkpoint(path)


def test_a_file_that_cannot_be_read_is_named(path):
    path.mkdir()
    with pytest.raises(DamagedFile, match=r"cannot be read: Is a directory.*start the run again"):
        load_arrays(path)


def test_a_missing_checkpoint_says_what_to_do(path):
    assert not has_checkpoint(path)
    with pytest.raises(DamagedFile, match=r"no checkpoint .*start the run again"):
        load_arrays(path)


class Killed(BaseException):
    """Simulates SIGKILL: no handler of ours catches it."""


class Killer:
    """Kills at the n-th system call of a save; a write that is killed has written a half."""

    def __init__(self, monkeypatch):
        self.left = None
        for name in ("open", "write", "fsync", "replace"):
            monkeypatch.setattr(os, name, self._wrapped(name, getattr(os, name)))

    def _wrapped(self, name, call):
        def counted(*args, **kwargs):
            if self.left is None or not self._is_ours(name, args):
                return call(*args, **kwargs)
            if self.left == 0:
                self.left = None
                if name == "write":
                    call(args[0], args[1][: len(args[1]) // 2])
                raise Killed
            self.left -= 1
            return call(*args, **kwargs)

        return counted

    @staticmethod
    def _is_ours(name, args):
        return name != "open" or "checkpoint" in str(args[0])

    def save(self, path, version, after):
        """Save, killed after so many calls; return whether the save returned."""
        self.left = after
        try:
            save(path, version, size=10)
        except Killed:
            return False
        finally:
            self.left = None
        return True


@pytest.mark.medium
@pytest.mark.parametrize("damaged", [False, True])
@pytest.mark.parametrize("saved_before", [0, 1, 2])
def test_two_kills_at_any_two_instructions_leave_a_checkpoint(
    path, monkeypatch, saved_before, damaged
):
    """Every pair of system calls, also when the newest file was damaged before."""
    if damaged and saved_before < 2:
        pytest.skip("nothing to fall back to")
    killer = Killer(monkeypatch)
    unkilled = 0
    for first in range(9):
        for second in range(9):
            for leftover in path.parent.iterdir():
                leftover.unlink()
            for version in range(1, saved_before + 1):
                save(path, version, size=10)
            if damaged:
                flip(path, -1)
            acknowledged = saved_before - damaged
            for version, after in ((3, first), (4, second)):
                if killer.save(path, version, after):
                    acknowledged = version
                    unkilled += 1
                if acknowledged:
                    assert acknowledged <= version_at(path) <= version
            save(path, 5)
            assert version_at(path) == 5
            assert load_arrays(path).note is None
    assert unkilled > 0, "more kill points than calls: all of them were tried"


KILLED_AT_RANDOM = """
import os, random, signal, sys, time
from pathlib import Path
import numpy as np
from backflip.core.checkpoint import load_arrays, save_arrays, has_checkpoint

path, chance = Path(sys.argv[1]), random.Random(0)

def child(pipe, version):
    while True:
        version += 1
        save_arrays(path, {"x": np.full(20_000, version)}, {"version": str(version)})
        os.write(pipe, b"%d\\n" % version)

version = 0
for _ in range(25):
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        child(writer, version)
    os.close(writer)
    pipe = os.fdopen(reader)
    lines = [pipe.readline() for _ in range(chance.randrange(6))]
    time.sleep(chance.uniform(0, 0.004))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    acknowledged = ("".join(lines) + pipe.read()).split()
    if has_checkpoint(path):
        arrays, metadata, _ = load_arrays(path)
        found = int(metadata["version"])
        assert (arrays["x"] == found).all()
        assert found >= int((acknowledged or [version])[-1]), (found, acknowledged)
        version = found
print(version)
"""


@pytest.mark.medium
def test_kill_9_at_random_moments(path):
    command = [sys.executable, "-c", KILLED_AT_RANDOM, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 25


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_is_one_line_and_the_old_checkpoint_stays(path, monkeypatch, call, code):
    save(path, 1)

    def full(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(
        UserFacingError, match=r"no space left.*`.*checkpoint.safetensors`"
    ) as caught:
        save(path, 2)
    monkeypatch.undo()
    assert "\n" not in str(caught.value)
    assert version_at(path) == 1
    assert [file.name for file in path.parent.iterdir()] == [path.name], "half a file was left"


@pytest.fixture
def small_files():
    """A real limit: no file of this process may grow beyond 4 KiB."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_real_limit_on_the_file_size(path, small_files):
    save(path, 1, size=10)
    with pytest.raises(UserFacingError, match="no space left"):
        save(path, 2, size=10_000)
    assert version_at(path) == 1


def test_any_other_failure_names_the_file_and_the_reason(tmp_path):
    path = tmp_path / "absent" / "x"
    with pytest.raises(UserFacingError, match=r"`.*absent/x`: No such file"):
        write_whole(path, b"")


def test_an_error_without_a_reason_is_still_one_line(tmp_path):
    with pytest.raises(UserFacingError, match="odd"), files.disk_errors(tmp_path):
        raise OSError("odd")


def test_the_file_is_on_disk_before_it_is_renamed_and_the_names_are_before_it_returns(
    path, monkeypatch
):
    """No test can cut the power, so the order of calls is checked."""
    save(path, 1)
    calls = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor):
        calls.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def renamed(source, target, **folders):
        calls.append(target)
        replace(source, target, **folders)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    save(path, 2)
    assert calls == ["file", "checkpoint.previous.safetensors", path.name, "folder"]


def test_write_whole_leaves_one_file(tmp_path):
    path = tmp_path / "run.json"
    write_whole(path, json.dumps([1]).encode())
    write_whole(path, json.dumps([2]).encode())
    assert path.read_text() == "[2]"
    assert list(Path(tmp_path).iterdir()) == [path]
