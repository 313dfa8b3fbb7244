"""Tests of `runshelf.store.run`: the manifest, finding runs, the lock, events, full disks."""

import errno
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from runshelf.errors import DamagedFile, UsageError, UserFacingError
from runshelf.store import run as module
from runshelf.store.finding import find_run, list_runs
from runshelf.store.records import read_lines
from runshelf.store.run import RunInfo, create_run, open_run, resume_run
from runshelf.store.run_ids import is_ulid, new_ulid, short_id

CONFIG = {"lr": 1e-3, "clip": math.inf, "goal": (80, 105), "nested": {"on": True}}


def create(home, **changes):
    wanted = {
        "command": "teach",
        "config": CONFIG,
        "seeds": [3, 4],
        "env": "dot",
        "algorithm": "ppo",
        "argv": ["teach", "dot"],
    }
    return create_run(home, **(wanted | changes))


@pytest.fixture
def writer(tmp_path):
    with create(tmp_path) as writer:
        yield writer


def test_fields_of_the_manifest(tmp_path, writer):
    manifest = json.loads((writer.folder / "run.json").read_text(), parse_constant=pytest.fail)
    assert writer.folder == tmp_path / "runs" / manifest["run"]
    assert manifest["schema"] == 1
    assert manifest["command"] == "teach"
    assert manifest["argv"] == ["teach", "dot"]
    assert manifest["cwd"] == str(Path.cwd())
    assert manifest["config"] == CONFIG | {"clip": "Infinity", "goal": [80, 105]}
    assert (manifest["env"], manifest["algorithm"]) == ("dot", "ppo")
    assert manifest["versions"]["numpy"] == np.__version__
    assert {"python", "platform", "jax"} <= manifest["versions"].keys()
    assert manifest["hardware"]["cpu"]
    assert manifest["hardware"]["cores"] >= 1
    assert manifest["hardware"]["memory_bytes"] > 2**28
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", manifest["created"])


def test_the_run_reads_back(tmp_path, writer):
    run = open_run(writer.folder)
    assert run == writer.run
    assert run.ulid == writer.folder.name
    assert run.seeds == [3, 4]
    assert run.config == CONFIG | {"goal": [80, 105]}
    assert [event["status"] for event in run.events()] == ["started"]


def test_a_folder_without_manifest_is_not_a_run(tmp_path, monkeypatch):
    """A folder left by a kill before the manifest is written is not a run."""

    def killed(*_, **__):
        raise KeyboardInterrupt

    with create(tmp_path) as first:
        pass
    monkeypatch.setattr(module, "replace_file", killed)
    with pytest.raises(KeyboardInterrupt):
        create(tmp_path)
    assert list_runs(tmp_path) == [first.run.ulid]
    assert find_run(tmp_path, "latest") == first.run
    leftover = next(f for f in tmp_path.glob("runs/0*") if f != first.folder)
    assert not (leftover / "run.json").exists()


def test_a_configuration_that_is_not_json_leaves_no_folder(tmp_path):
    with pytest.raises(UsageError, match="recorded"):
        create(tmp_path, config={"x": object()})
    assert list(tmp_path.iterdir()) == []


def test_ids_sort_by_creation_and_follow_the_specification():
    before = time.time_ns() // 1_000_000
    ids = [new_ulid() for _ in range(1000)]
    assert ids == sorted(set(ids))
    milliseconds = 0
    for letter in ids[0][:10]:
        milliseconds = milliseconds * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(letter)
    assert before <= milliseconds <= before + 1000
    assert all(is_ulid(ulid) for ulid in ids)


def fake(home, ulid):
    folder = home / "runs" / ulid
    folder.mkdir(parents=True)
    manifest = {"schema": 1, "ulid": ulid, "created": "", "command": "", "config": {}, "seeds": []}
    (folder / "run.json").write_text(json.dumps(manifest))
    return folder


A, B, C = ("01ARZ3NDEKTSV4RRFFQ69G5FA" + letter for letter in "VWX")
OTHER = "01BX5ZZKBKACTAV9WEVGEMMVRZ"


@pytest.fixture
def home(tmp_path):
    for ulid in (B, OTHER, A, C):
        fake(tmp_path, ulid)
    (tmp_path / "runs" / "notes").mkdir()
    (tmp_path / "runs" / "01BX5ZZKBKACTAV9WEVGEMMVS0").mkdir()  # killed before its manifest
    return tmp_path


def test_list_is_oldest_first_and_only_runs(home):
    assert list_runs(home) == [A, B, C, OTHER]
    assert list_runs(home / "absent") == []


@pytest.mark.parametrize(
    ("name", "ulid"),
    [
        ("latest", OTHER),
        (A, A),
        ("01B", OTHER),
        ("01bx5", OTHER),
        (B.lower(), B),
        (B[-8:], B),
        (C[-9:].lower(), C),
    ],
)
def test_find_by_a_part_of_the_id_or_latest(home, name, ulid):
    assert find_run(home, name).ulid == ulid


def test_find_by_path(home, monkeypatch):
    assert find_run(home / "elsewhere", str(home / "runs" / A)).ulid == A
    monkeypatch.chdir(home / "runs")
    assert find_run(home / "elsewhere", A).ulid == A
    assert find_run(home / "elsewhere", f"./{A}").ulid == A


def test_find_by_name(home):
    for ulid, name in ((A, "mine"), (B, "größe"), (C, "twice"), (OTHER, "twice")):
        path = home / "runs" / ulid / "run.json"
        manifest = json.loads(path.read_text()) | {"name": name, "question": "mine"}
        path.write_text(json.dumps(manifest))
    assert find_run(home, "mine").ulid == A
    assert find_run(home, "größe").ulid == B
    with pytest.raises(UsageError, match=f"2 runs are named `twice`.*`{OTHER[-8:]}` .*`{C[-8:]}`"):
        find_run(home, "twice")
    (home / "runs" / C / "run.json").write_text('damaged "twice"')
    assert find_run(home, "twice").ulid == OTHER, "others are not disturbed"
    with pytest.raises(UsageError, match="no run `min`"):
        find_run(home, "min")


@pytest.mark.medium
def test_the_short_form_tells_runs_of_one_moment_apart_and_finds_each(tmp_path):
    made = [create(tmp_path) for _ in range(20)]
    shorts = {short_id(writer.run.ulid) for writer in made}
    assert len(shorts) == 20
    for writer in made:
        writer.close()
        assert writer.run.short == short_id(writer.run.ulid)
        assert find_run(tmp_path, writer.run.short.lower()) == writer.run
        assert find_run(tmp_path, writer.run.short[:7]) == writer.run


def test_a_name_comes_before_a_part_of_an_id_that_is_shorter_than_the_short_form(home):
    for ulid, name in ((A, OTHER[-3:]), (B, C[-8:])):
        path = home / "runs" / ulid / "run.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"name": name}))
    assert find_run(home, OTHER[-3:]).ulid == A
    assert find_run(home, OTHER[-4:]).ulid == OTHER
    assert find_run(home, C[-8:]).ulid == C


def test_runs_that_a_text_may_mean_are_listed_with_what_tells_them_apart(tmp_path):
    for seed, env in ((1, "dot"), (2, "Pendulum-v1")):
        create(tmp_path, seeds=[seed], env=env).close()
    with pytest.raises(UsageError) as caught:
        find_run(tmp_path, "0")
    first, second = (open_run(tmp_path / "runs" / ulid) for ulid in list_runs(tmp_path))
    assert f"`{second.short}` (ppo Pendulum-v1, seed 2, 20" in str(caught.value)
    assert f"`{first.short}` (ppo dot, seed 1, 20" in str(caught.value)
    (second.folder / "run.json").write_text("{")
    with pytest.raises(UsageError, match=rf"`{second.short}` \(damaged\), `{first.short}` \(ppo"):
        find_run(tmp_path, "0")


def test_find_suggests_similar_runs(home):
    with pytest.raises(UsageError, match=f"3 runs begin .*`{C[-8:]}` .*`{B[-8:]}` .*`{A[-8:]}`"):
        find_run(home, "01A")
    with pytest.raises(UsageError, match=rf"4 runs begin .*`{OTHER[-8:]}` .* and 1 more"):
        find_run(home, "01")
    with pytest.raises(UsageError, match=f"no run `01BX6`.*did you mean `{OTHER[-8:]}`"):
        find_run(home, "01BX6")
    with pytest.raises(UsageError, match=r"no run `latset`.*did you mean `latest`"):
        find_run(home, "latset")
    with pytest.raises(UsageError, match=f"no run `zzzz`.*the latest are .*{OTHER[-8:]}"):
        find_run(home, "zzzz")
    with pytest.raises(UsageError, match="no run ``"):
        find_run(home, "")
    with pytest.raises(UsageError, match=r"notes` is not a run folder: it has no `run.json`"):
        find_run(home, str(home / "runs" / "notes"))


def test_find_in_an_empty_home(tmp_path):
    with pytest.raises(UsageError, match="there are no runs in"):
        find_run(tmp_path, "latest")
    with pytest.raises(UsageError, match=r"no run `x` in .*, nor any other"):
        find_run(tmp_path, "x")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (b"", "damaged"),
        (b'{"schema": 1, "ul', "damaged"),
        (b"\xff\x00", "damaged"),
        (b"[" * 100_000, "damaged"),
        (b"[1]", "not written by runshelf"),
        (b'{"name": "wandb"}', "not written by runshelf"),
        (b'{"schema": 2}', "has schema 2, this runshelf reads 1"),
        (b'{"schema": 1, "run": 3}', "run, created, command, config, seeds missing"),
    ],
)
def test_a_damaged_or_foreign_manifest_raises_one_line(home, text, match):
    (home / "runs" / OTHER / "run.json").write_bytes(text)
    with pytest.raises(DamagedFile, match=match) as caught:
        find_run(home, "latest")
    assert f"{OTHER}/run.json`" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert find_run(home, A).ulid == A, "other runs are not disturbed"


def test_a_home_that_cannot_be_written_is_a_usage_error(tmp_path, monkeypatch):
    home = tmp_path / "file"
    home.write_text("")
    with pytest.raises(
        UsageError, match=r"cannot write runs in `.*file` \(Not a directory\).*--home"
    ):
        create(home)

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(UsageError, match="Permission denied"):
        create(tmp_path)


@pytest.mark.parametrize("call", ["mkdir", "write"])
def test_a_full_disk_raises_one_line_and_leaves_no_run(tmp_path, monkeypatch, call):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(UserFacingError, match="no space left") as caught:
        create(tmp_path)
    monkeypatch.undo()
    assert not isinstance(caught.value, UsageError)
    assert list_runs(tmp_path) == []


@pytest.mark.medium
def test_a_second_writer_is_refused_with_the_process_id(tmp_path, writer):
    script = (
        "import sys; from pathlib import Path; from runshelf.store.run import *\n"
        "try: resume_run(open_run(Path(sys.argv[1])))\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    command = [sys.executable, "-c", script, str(writer.folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.stdout.startswith(f"UserFacingError run `{writer.run.short}` is being written by")
    assert f"({os.getpid()})" in done.stdout
    assert len(writer.run.events()) == 1


@pytest.mark.medium
def test_the_lock_is_released_after_the_end_and_after_a_kill(tmp_path):
    writer = create(tmp_path)
    with pytest.raises(UserFacingError, match="being written"):
        resume_run(writer.run)
    writer.close()
    resume_run(writer.run).close()
    script = (
        "import sys, time; from pathlib import Path; from runshelf.store.run import *\n"
        "writer = resume_run(open_run(Path(sys.argv[1]))); print('locked', flush=True)\n"
        "time.sleep(60)"
    )
    command = [sys.executable, "-c", script, str(writer.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "locked\n"
        with pytest.raises(UserFacingError, match=f"another process \\({child.pid}\\)"):
            resume_run(writer.run)
        child.send_signal(signal.SIGKILL)
        child.wait()
    resume_run(writer.run).close()


def test_a_finished_run_is_not_resumed(tmp_path):
    with create(tmp_path) as writer:
        pass
    before = writer.run.events()
    for _ in range(2):  # the lock is released
        with pytest.raises(UsageError, match="has finished: there is nothing left to resume"):
            resume_run(writer.run)
    assert writer.run.events() == before


def test_other_errors_of_the_lock_are_reported(home, monkeypatch):
    run = open_run(home / "runs" / A)
    shutil.rmtree(run.folder)
    with pytest.raises(UserFacingError, match=r"lock`: No such file"):
        resume_run(run)


def test_a_failed_resume_releases_the_lock(home, monkeypatch):
    run = open_run(home / "runs" / A)
    (run.folder / "events.jsonl").mkdir()
    for _ in range(2):
        with pytest.raises(UserFacingError, match="is not a regular file"):
            resume_run(run)


def statuses(run):
    return [event["status"] for event in run.events()]


def test_events_are_recorded_with_times(tmp_path):
    with pytest.raises(KeyboardInterrupt), create(tmp_path) as writer:
        raise KeyboardInterrupt
    with pytest.raises(ValueError, match="no"), resume_run(writer.run):
        raise ValueError("no")
    with resume_run(writer.run):
        pass
    events = writer.run.events()
    assert [event["status"] for event in events] == [
        *("started", "interrupted"),
        *("resumed", "failed"),
        *("resumed", "finished"),
    ]
    assert events[3]["error"] == "ValueError: no"
    times = [event["time"] for event in events]
    assert times == sorted(times)


def test_an_event_is_on_disk_when_recorded(writer, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    writer.record("interrupted")
    assert synced == [(writer.folder / "events.jsonl").stat().st_ino]


def test_an_end_recorded_in_the_block_is_not_recorded_again(tmp_path):
    with create(tmp_path) as writer:
        writer.record("interrupted", updates=np.int64(7))
    assert statuses(writer.run) == ["started", "interrupted"]
    assert writer.run.events()[1]["updates"] == 7


def test_the_error_of_the_block_is_not_hidden_by_a_full_disk(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    def fail():
        monkeypatch.setattr(os, "write", full)
        raise ValueError("first")

    with pytest.raises(ValueError, match="first"), create(tmp_path) as writer:
        fail()
    monkeypatch.undo()
    with (
        pytest.raises(UserFacingError, match=r"no space left.*events.jsonl"),
        resume_run(writer.run),
    ):
        monkeypatch.setattr(os, "write", full)
    monkeypatch.undo()
    resume_run(writer.run).close()
    assert statuses(writer.run) == ["started", "resumed", "resumed"]


def test_the_cpu_model_with_and_without_proc(tmp_path, monkeypatch):
    path = tmp_path / "cpuinfo"
    monkeypatch.setattr(module, "_CPU_INFO", path)
    assert module._cpu_model()
    path.write_text("processor: 0\nmodel name : Z80\n")
    assert module._cpu_model() == "Z80"
    path.write_text("processor: 0\n")
    assert module._cpu_model()


def test_a_missing_distribution_is_left_out():
    assert module._versions(("numpy", "no-such-thing")).keys() == {"python", "platform", "numpy"}


KILLED_AT_RANDOM = """
import os, random, signal, sys, time
from pathlib import Path
from runshelf.store.run import create_run

home, chance = Path(sys.argv[1]), random.Random(0)

def child(pipe):
    while True:
        with create_run(home, command="train", config={}, seeds=[0], env="e", algorithm="a",
                        argv=[], cwd=home) as writer:
            os.write(pipe, f"{writer.run.ulid}\\n".encode())

for _ in range(20):
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        child(writer)
    os.close(writer)
    pipe = os.fdopen(reader)
    lines = [pipe.readline() for _ in range(chance.randrange(6))]
    time.sleep(chance.uniform(0, 0.004))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    sys.stdout.write("".join(lines) + pipe.read())
"""


@pytest.mark.medium
def test_kill_9_at_random_moments(tmp_path):
    command = [sys.executable, "-c", KILLED_AT_RANDOM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    acknowledged = done.stdout.split()
    runs = list_runs(tmp_path)
    assert len(acknowledged) > 10
    assert set(acknowledged) <= set(runs)
    assert len(runs) <= len(acknowledged) + 20
    for ulid in runs:
        run = find_run(tmp_path, ulid)
        assert (ulid not in acknowledged) or statuses(run)[0] == "started"
        assert read_lines(run.folder / "events.jsonl").torn == 0
        if "finished" not in statuses(run):
            resume_run(run).close()


def test_a_name_equal_to_a_folder_is_found(tmp_path, monkeypatch):
    with create(tmp_path, info=RunInfo(name="data")) as writer:
        pass
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_run(tmp_path, "data") == writer.run


def test_a_link_to_a_run_is_not_listed(tmp_path):
    with create(tmp_path, info=RunInfo(name="one")) as writer:
        pass
    (tmp_path / "runs" / new_ulid()).symlink_to(writer.folder)
    assert list_runs(tmp_path) == [writer.run.ulid]
    assert find_run(tmp_path, "one") == writer.run


def test_old_manifests_with_ulid_open(tmp_path):
    assert open_run(fake(tmp_path, A)).manifest["run"] == A
    assert "ulid" not in open_run(tmp_path / "runs" / A).manifest
    with create(tmp_path) as writer:
        manifest = json.loads((writer.folder / "run.json").read_text())
    assert manifest["run"] == writer.run.ulid
