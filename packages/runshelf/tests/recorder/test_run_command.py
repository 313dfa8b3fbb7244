"""Tests of `runshelf run`: what it records, and that it does not disturb the program."""

import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runshelf.store.liveness import read_heartbeat
from runshelf.store.metrics import read_metrics
from runshelf.store.state import state_of

PYTHON = sys.executable


def wait_for(ready, seconds=30.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = ready()
        if found:
            return found
        time.sleep(0.005)
    raise AssertionError("timed out")


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.medium
def test_output_is_shown_and_recorded_per_stream(bench):
    done = bench("run", "--", "sh", "-c", "echo one; echo two >&2; printf three; exit 4")
    assert (done.stdout, done.returncode) == ("one\nthree", 4)
    assert done.stderr.startswith("two\n")
    assert sorted(bench.output()) == [("err", "two"), ("out", "one"), ("out", "three")]
    end = bench.end()
    assert (end["status"], end["exit_status"]) == ("failed", 4)
    assert state_of(bench.last).note == "exit status 4"


ALTERNATE = """
import os
for i in range(3000):
    os.write(1 + i % 2, b"%d\\n" % i)
"""


@pytest.mark.slow
def test_alternating_lines_of_two_streams_keep_their_order(bench):
    done = bench("run", "--", PYTHON, "-c", ALTERNATE)
    assert [int(text) for _, text in bench.output()] == list(range(3000))
    assert done.stdout.split() == [str(i) for i in range(0, 3000, 2)]


@pytest.mark.slow
def test_a_large_output_is_recorded_completely(bench):
    flood = "import sys; sys.stdout.write('x' * 99 + '\\n' * 1); [print(i) for i in range(300_000)]"
    done = bench("run", "--", PYTHON, "-c", flood)
    lines = [text for _, text in bench.output()]
    assert lines == ["x" * 99, *map(str, range(300_000))]
    assert done.stdout.count("\n") == 300_001


@pytest.mark.medium
def test_the_manifest(bench):
    bench("run", "--name", "mine", "--question", "why?", "--tag", "a", "--tag", "b",
          "--cost", "3/h", "--", PYTHON, "-c", "pass", "--lr", "1e-3", "--seed", "5")  # fmt: skip
    manifest = bench.last.manifest
    assert manifest["config"] == {"lr": 1e-3, "seed": 5}
    assert (manifest["command"], manifest["seeds"]) == ("run", [5])
    assert (manifest["name"], manifest["question"]) == ("mine", "why?")
    assert (manifest["tags"], manifest["cost_per_hour"]) == (["a", "b"], 3.0)
    assert manifest["executable"] == PYTHON
    assert manifest["python"]["packages"]["numpy"]
    assert manifest["hardware"]["host"]
    assert manifest["git"] is None
    assert manifest["snapshot"]["files"] == 0
    assert bench.end()["cost"] == pytest.approx(bench.end()["seconds"] / 1200, abs=1e-5)


@pytest.mark.medium
def test_secrets_are_masked_and_reported(bench):
    done = bench(
        "run",
        "--name",
        "with hunter2hunter2",
        "--",
        "sh",
        "-c",
        "exit 0",
        "--password",
        "hunter2hunter2",
        "--keyboard",
        "qwerty12",
        MY_API_KEY="topsecretvalue",
    )
    assert "masked arguments that look like keys: --password" in done.stderr
    assert "masked variables that look like keys: MY_API_KEY" in done.stderr
    assert bench.last.config == {"password": "***", "keyboard": "qwerty12"}
    for path in bench.last.folder.rglob("*"):
        if path.is_file():
            assert b"hunter2" not in path.read_bytes(), path
            assert b"topsecret" not in path.read_bytes(), path


PRINTS = """
import os, sys
print('before ' + os.environ['MY_API_KEY'] + ' after')
print(sys.argv[2], file=sys.stderr)
print(os.environ['DEPLOY_KEY_SECRET'])
print('x' * 70000 + os.environ['MY_API_KEY'])
"""


@pytest.mark.attack
@pytest.mark.medium
def test_secrets_that_a_program_prints_are_masked_in_the_output_that_is_kept(bench, tried):
    values = {"MY_API_KEY": "topsecretvalue", "DEPLOY_KEY_SECRET": "first-secret\nsecond-secret"}
    done = bench("run", "--", PYTHON, "-c", PRINTS, "-u", "me:p4ssw0rd-x", **values)
    assert "before topsecretvalue after" in done.stdout, "what is shown stays as it is"
    kept = (bench.last.folder / "output.log").read_text()
    assert "before *** after" in kept
    for secret in ("topsecret", "first-secret", "second-secret", "p4ssw0rd"):
        for path in bench.last.folder.rglob("*"):
            if path.is_file():
                assert secret.encode() not in path.read_bytes(), path
    tried(4, "printed secrets")


@pytest.mark.medium
def test_environment_variables_of_the_program_and_the_list_of_outputs(bench):
    script = """
    echo "$BACKFLIP_RUN" "$BACKFLIP_OUTPUT"; cd "$BACKFLIP_OUTPUT"
    echo result > a; mkdir b; echo more > b/c; ln -s /etc/passwd link; mkfifo pipe
    """
    done = bench("run", "sh", "-c", script)
    folder = bench.last.folder
    assert done.stdout == f"{folder} {folder}/outputs\n"
    files = {item["path"]: item for item in bench.read("outputs.json")}
    assert files["a"] == {
        "path": "a",
        "bytes": 7,
        "sha256": hashlib.sha256(b"result\n").hexdigest(),
    }
    assert files["link"] == {"path": "link", "link": "/etc/passwd"}
    assert set(files) == {"a", "b/c", "link"}


@pytest.mark.medium
def test_stdin_is_passed_through(bench):
    assert bench("run", "cat", input="some\ntext").stdout == "some\ntext"


@pytest.mark.slow
def test_only_the_last_state_of_a_progress_bar_is_recorded(bench):
    done = bench("run", "sh", "-c", r"printf 'step 1\rstep 2\rstep 3\n'; printf 'a\r\n'")
    assert done.stdout == "step 1\rstep 2\rstep 3\na\r\n"
    assert bench.output() == [("out", "step 3"), ("out", "a")]


@pytest.mark.slow
def test_a_prompt_is_shown_before_its_line_ends(bench):
    with bench.start("run", "sh", "-c", "printf 'name? '; read x; echo $x", stdin=-1) as process:
        assert process.stdout.read(6) == b"name? "
        out, _ = process.communicate(b"me\n")
    assert out == b"me\n"
    assert bench.output() == [("out", "name? me")]


# Output that is truncated before the recorder reads it is lost, so these scripts wait.
KEPT = """
kept() { until grep -q "\t$1$" "$BACKFLIP_RUN/output.log"; do sleep 0.01; done; }
"""


@pytest.mark.slow
def test_a_program_that_truncates_its_own_output(bench):
    script = """
    echo a >&2; kept a; echo b > /dev/stderr; kept b; echo c > /dev/stderr; kept c
    (echo d; kept d; echo e; kept e; echo f) > /dev/stderr; kept f; echo g >&2
    """
    done = bench("run", "bash", "-c", KEPT + script)
    assert [text for _, text in bench.output()] == list("abcdefg")
    assert "reopened its own output" in done.stderr
    assert any(event.get("event") == "emptied-output" for event in bench.last.events())


@pytest.mark.slow
def test_a_program_that_truncates_its_own_output_many_times(bench):
    script = KEPT + "for i in $(seq 50); do echo $i > /dev/stderr; kept $i; done"
    done = bench("run", "bash", "-c", script)
    assert [int(text) for _, text in bench.output()] == list(range(1, 51))
    assert "reopened its own output" in done.stderr


@pytest.mark.medium
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no command given"),
        (["ecoh", "x"], "there is no program `ecoh`, did you mean `echo`?"),
        pytest.param(["./absent"], "there is no program `./absent`", marks=pytest.mark.slow),
        pytest.param(
            ["plain.py"],
            "`plain.py` is not executable: type runshelf run -- python plain.py",
            marks=pytest.mark.slow,
        ),
        pytest.param(["folder"], "`folder` is a folder", marks=pytest.mark.slow),
        pytest.param(
            ["--nmae", "x", "--", "echo"],
            "unknown option `--nmae` of runshelf run, did you mean",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ["--budget", "soon", "--", "echo"],
            "must be a time, got `soon`; try 90s, 30m, 2h or 1d",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ["--cost", "x", "echo"],
            "must be a cost by the hour, got `x`; try 1.20/h",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_wrong_usage_prints_one_line_and_makes_no_run(bench, words, message):
    bench.write("plain.py", "")
    bench.write("folder/x", "")
    done = bench("run", *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not bench.home.exists()


@pytest.mark.slow
def test_a_file_that_is_not_a_program_is_a_failed_run(bench):
    bench.write("broken", "#!/no/such/interpreter\n").chmod(0o755)
    done = bench("run", "./broken")
    assert done.returncode == 1
    assert "`./broken` cannot be started (No such file or directory)" in done.stderr
    assert bench.end()["status"] == "failed"


@pytest.mark.medium
def test_json_goes_to_stdout_and_the_programs_output_to_stderr(bench):
    done = bench("run", "--json", "--cost", "1", "sh", "-c", "echo hello; exit 3")
    fields = json.loads(done.stdout)
    assert (fields["run"], fields["exit_status"], fields["state"]) == (bench.last.ulid, 3, "failed")
    assert fields["seconds"] > 0
    assert fields["cost"] >= 0
    assert "hello\n" in done.stderr
    assert done.returncode == 3


@pytest.mark.medium
@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGINT, "interrupted"),
        (signal.SIGTERM, "failed"),
        pytest.param(signal.SIGHUP, "failed", marks=pytest.mark.slow),
    ],
)
def test_signals_reach_the_program_and_its_children(bench, number, status):
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("the signal is ignored in this process, as under nohup")
    with bench.start("run", PYTHON, "-c", """
import os, signal, subprocess, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
child = subprocess.Popen(["sleep", "60"]); print(child.pid, flush=True); child.wait()
""") as process:  # fmt: skip
        pid = int(process.stdout.readline())
        process.send_signal(number)
        process.communicate()
    assert process.returncode == 128 + number
    assert bench.end()["status"] == status
    assert bench.end()["signal"] == number
    wait_for(lambda: not is_running(pid))


@pytest.mark.slow
def test_a_program_that_handles_ctrl_c_and_exits_with_0_has_finished(bench):
    with bench.start("run", "sh", "-c", "trap 'exit 0' INT; echo up; sleep 60 & wait") as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == 0
    assert bench.end()["status"] == "finished"


@pytest.mark.medium
def test_a_program_that_is_killed(bench):
    with bench.start("run", "sleep", "60") as process:
        pid = wait_for(
            lambda: (
                bench.home.exists()
                and bench.runs()
                and (beat := read_heartbeat(bench.last.folder))
                and beat.program
                and beat.program.pid
            )
        )
        os.kill(pid, signal.SIGKILL)
        process.communicate()
    assert process.returncode == 137
    assert state_of(bench.last) == ("failed", bench.end()["time"], "killed by SIGKILL")


SLOW = """
import time
from runshelf.recorder.program import Program
start = Program.__init__
def slow(*arguments):
    start(*arguments)
    time.sleep(1)
Program.__init__ = slow
"""


@pytest.mark.slow
def test_a_signal_that_the_program_sends_us_at_once_reaches_the_program(bench):
    words = bench.command("run", "sh", "-c", "kill -TERM $PPID; sleep 60 & wait")
    words[2] = SLOW + words[2]
    done = subprocess.run(words, cwd=bench.work, env=bench.env, capture_output=True, timeout=50)
    assert done.returncode == 143
    assert state_of(bench.last)[2] == "killed by SIGTERM"


ESCAPES = """
import os, subprocess, sys, signal, time
subprocess.Popen(["setsid", "sleep", "10739"])
subprocess.Popen(["sh", "-c", "setsid sh -c 'sleep 10739 & sleep 10739' & exit 0"])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(1000)
    os._exit(0)
def save(*_):
    print("saved", flush=True)
    open(os.environ["BACKFLIP_OUTPUT"] + "/checkpoint", "w").write("x")
    sys.exit(7)
signal.signal(signal.SIGTERM, save)
time.sleep(1000)
"""


def sleepers():
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and is_running(int(entry.name)):
            try:
                found += [entry.name] * (b"sleep\x0010739" in (entry / "cmdline").read_bytes())
            except OSError:
                continue
    return found


@pytest.mark.slow
def test_a_budget_lets_the_program_save_then_kills_all_processes(bench):
    done = bench("run", "--budget", "4s", "--grace", "4s", "--", PYTHON, "-c", ESCAPES)
    assert "its budget of 4 s is used up: sent SIGTERM" in done.stderr
    assert done.returncode == 7
    assert done.stdout == "saved\n"
    (budget,) = (event for event in bench.last.events() if event.get("event") == "budget")
    assert budget["survivors"] == []
    assert len(budget["killed"]) >= 4
    assert not any(is_running(pid) for pid in budget["killed"])
    assert sleepers() == []
    assert bench.end()["status"] == "stopped"
    assert [item["path"] for item in bench.read("outputs.json")] == ["checkpoint"]


@pytest.mark.medium
def test_processes_left_running_are_listed(bench):
    done = bench("run", "sh", "-c", "setsid sleep 987 & exit 0")
    pid = int(done.stderr.split("processes ")[1].split()[0])
    assert "still running after the program ended" in done.stderr
    assert is_running(pid)
    os.kill(pid, signal.SIGKILL)
    assert bench.end()["status"] == "finished"


@pytest.mark.slow
def test_system_metrics_are_recorded(bench):
    burn = "import os, pathlib; x = bytearray(50_000_000)\n"
    burn += "file = pathlib.Path(os.environ['BACKFLIP_RUN'], 'metrics-system.jsonl')\n"
    burn += "while not file.exists() or b'\\n' not in file.read_bytes(): 1"
    bench("run", PYTHON, "-c", burn)
    record = read_metrics(bench.last.folder, "system").records[0]
    assert record["cpu_percent"] > 2, "a sleeping program uses about 0"
    assert record["load_per_core"] >= 0
    assert record["cores"] == os.cpu_count()
    assert record["memory_bytes"] > 50_000_000
    assert (record["processes"], record["disk_free_bytes"] > 0) == (1, True)
    assert record["seconds"] > 0.5


@pytest.mark.medium
def test_a_closed_pipe_does_not_stop_the_program(bench):
    script = "for i in $(seq 2000); do echo line $i; done; echo end >&2"
    command = " ".join(["exec", *map(shlex.quote, bench.command("run", "sh", "-c", script))])
    done = subprocess.run(
        ["sh", "-c", f"({command}) | head -n 1"], cwd=bench.work, env=bench.env,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == "line 1\n"
    assert len(bench.output()) == 2001
    assert bench.end()["status"] == "finished"


UNSHARE = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
TINY = 'mount -t tmpfs -o size=2m tmpfs "$1"; shift; exec "$@"'
FILLS = """
import os, sys
home = sys.argv[1]
print("before", flush=True)
import time
from pathlib import Path
while not any("before" in log.read_text() for log in Path(home).glob("runs/*/output.log")):
    time.sleep(0.01)
with open(home + "/filler", "wb", buffering=0) as file:
    try:
        while True: file.write(b"x" * 4096)
    except OSError: pass
for i in range(1000): print("line", i, flush=True)
print("after", file=sys.stderr)
if sys.argv[2] == "again": os.remove(home + "/filler"); time.sleep(0.5); print("late", flush=True)
"""


@pytest.mark.medium
@pytest.mark.parametrize("again", ["again", pytest.param("never", marks=pytest.mark.slow)])
def test_a_full_disk_does_not_disturb_the_program(bench, again):
    bench.home.mkdir()
    able = subprocess.run([*UNSHARE, TINY, "sh", str(bench.home), "true"], capture_output=True)
    if able.returncode:
        pytest.skip("this kernel lets only root mount a tmpfs")
    look = 'cat "$H"/runs/*/output.log > seen; cat "$H"/runs/*/events.jsonl > events'
    words = bench.command("run", "--", PYTHON, "-c", FILLS, str(bench.home), again)
    command = [*UNSHARE, TINY, "sh", str(bench.home), "sh", "-c"]
    done = subprocess.run(
        [*command, f'H="$1"; shift; "$@"; s=$?; {look}; exit $s', "sh", str(bench.home), *words],
        cwd=bench.work, env=bench.env, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    wanted = ["before", *(f"line {i}" for i in range(1000))]
    assert done.stdout.splitlines() == wanted + (["late"] if again == "again" else [])
    assert done.returncode == 0
    assert "after\n" in done.stderr
    assert "Traceback" not in done.stderr
    seen = [line.split("\t", 3)[3] for line in (bench.work / "seen").read_text().splitlines()]
    if again == "again":
        assert sorted(seen) == sorted([*wanted, "after", "late"])
        assert '"finished"' in (bench.work / "events").read_text()
    else:
        assert "lines of output were not recorded: No space left on device" in done.stderr
        assert "runshelf: not recorded: " in done.stderr
        assert seen[0] == "before"


@pytest.mark.slow
def test_a_disk_that_is_full_at_the_start_prints_one_line(bench):
    bench.home.mkdir()
    tiny = 'mount -t tmpfs -o size=4k tmpfs "$1"; echo x > "$1/f"; shift; exec "$@"'
    command = [*UNSHARE, tiny, "sh", str(bench.home), *bench.command("run", "echo", "x")]
    if subprocess.run(
        [*UNSHARE, TINY, "sh", str(bench.home), "true"], capture_output=True
    ).returncode:
        pytest.skip("this kernel lets only root mount a tmpfs")
    done = subprocess.run(command, cwd=bench.work, env=bench.env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no space left" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_spool_is_removed(bench):
    bench("run", "echo", "x")
    assert not (bench.last.folder / "spool").exists()
