"""A real full disk: labels, metrics and checkpoints keep what was acknowledged."""

import shutil
import subprocess
import sys

import pytest

# Real disk of 800 KiB, where the kernel lets an unprivileged user mount one.
TINY_DISK = 'mount -t tmpfs -o size=800k tmpfs "$1" && exec "$2" -c "$3" "$1"'
UNSHARE = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
FILL_IT = """
import sys
from pathlib import Path
import numpy as np
from backflip.core.checkpoint import load_arrays, save_arrays
from runshelf.store.metrics import MetricsWriter, read_metrics
from runshelf.store.finding import list_runs
from runshelf.store.run import create_run, resume_run
from runshelf.errors import UserFacingError, UsageError
from backflip.preferences.labels import LabelStore

home = Path(sys.argv[1])

def until_full(step):
    for count in range(100_000):
        try:
            step(count)
        except UserFacingError as error:
            assert str(error).startswith("no space left"), error
            assert not isinstance(error, UsageError)
            return count
    raise AssertionError("never full")

def make():
    return create_run(home, command="train", config={}, seeds=[0], env="e", algorithm="a",
                      argv=[], cwd=home)

run = make().run
checkpoint = run.folder / "checkpoint.safetensors"
ballast = [home / f"ballast{n}" for n in range(3)]
for file in ballast:
    file.write_bytes(b"x" * 150_000)
store = LabelStore.open(run.folder / "labels.sqlite")
metrics = MetricsWriter(run.folder, "train")
clip = {"x": np.random.default_rng(0).integers(0, 256, 2000, np.uint8)}
save_arrays(checkpoint, {"x": np.arange(1000)}, {"version": "1"})

queries = until_full(lambda n: store.add_query(0, clip, clip, n))
ballast.pop().unlink()
records = until_full(lambda n: metrics.write({"seed": 0, "updates": n, "x": "y" * 500}))
until_full(lambda n: save_arrays(checkpoint, {"x": np.arange(10_000)}, {"version": "2"}))
ballast.pop().unlink()
runs = until_full(lambda n: make())
assert min(queries, records, runs) > 0, (queries, records, runs)

def check():
    assert store.counts().queries == queries
    assert len(read_metrics(run.folder).records) == records
    assert load_arrays(checkpoint).metadata == {"version": "1"}
    assert len(list_runs(home)) == 1 + runs

check()
ballast.pop().unlink()
check()
store.add_query(0, clip, clip, 0)
metrics.write({"seed": 0, "updates": records})
save_arrays(checkpoint, {"x": np.arange(1000)}, {"version": "3"})
assert (store.counts().queries, len(read_metrics(run.folder).records)) == (queries + 1, records + 1)
assert load_arrays(checkpoint).metadata == {"version": "3"}
make()
print("well")
"""


@pytest.mark.medium
def test_a_real_full_disk_loses_nothing_and_goes_on_when_there_is_room(tmp_path):
    able = shutil.which("unshare") and subprocess.run(
        [*UNSHARE, 'mount -t tmpfs tmpfs "$1"', "sh", str(tmp_path)], capture_output=True
    )
    if not able or able.returncode:
        pytest.skip("only root can mount a tmpfs on this kernel")
    command = [*UNSHARE, TINY_DISK, "sh", str(tmp_path), sys.executable, FILL_IT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout == "well\n", done.stderr
