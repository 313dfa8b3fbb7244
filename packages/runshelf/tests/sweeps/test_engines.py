"""One suite for every engine: workers run a sweep to its end, die, are replaced, and stop."""

import os
import signal
import stat
import subprocess
import sys
import time

import pytest

from runshelf.errors import UsageError, UserFacingError
from runshelf.sweeps.definition import Definition
from runshelf.sweeps.driver import drive
from runshelf.sweeps.engines.choosing import engine_named, scripts_of
from runshelf.sweeps.engines.processes import Processes
from runshelf.sweeps.making import make_sweep
from runshelf.sweeps.space import Choice
from runshelf.sweeps.state import state_of_sweep

# Ray starts its processes by fork, which JAX warns of if an earlier test imported it.
pytestmark = pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")

PROGRAM = """
import pathlib, sys, time
time.sleep(float(pathlib.Path("seconds").read_text()))
print("score =", float(sys.argv[1]) + int(sys.argv[2]) % 7)
"""
# A stand-in for Slurm: sbatch runs the elements of an array as processes of this machine.
SBATCH = """#!{python}
import os, re, subprocess, sys
state = {state!r}
text = open(sys.argv[1]).read()
first, last = map(int, re.search(r"--array=(\\d+)-(\\d+)", text).groups())
number = len(os.listdir(state)) + 100
if last - first + 1 > 2:
    sys.exit("sbatch: error: Invalid job array specification")
pids = []
for element in range(first, last + 1):
    log = re.search(r"--error=(.*)", text)[1].replace("%A", str(number)).replace("%a", str(element))
    with open(log, "w") as error:
        command = ["bash", sys.argv[1]]
        program = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=error, start_new_session=True
        )
        pids.append(program.pid)
open(f"{{state}}/{{number}}", "w").write(" ".join(map(str, pids)))
print("Submitted batch job", number)
"""
SRUN = """#!/bin/bash
while [[ "$1" == --* ]]; do case "$1" in --unbuffered) shift;; *) shift 2;; esac; done
exec "$@"
"""
SQUEUE = """#!{python}
import os, sys
state = {state!r}
for job in sys.argv[-1].removeprefix("--jobs=").split(","):
    for pid in open(f"{{state}}/{{job}}").read().split():
        try:
            zombie = open(f"/proc/{{pid}}/stat").read().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            continue
        if not zombie:
            print(f"{{job}}_{{pid}}")
"""
SCANCEL = """#!{python}
import os, signal, sys
for job in sys.argv[1:]:
    for pid in open(f"{state}/{{job}}").read().split():
        try:
            os.killpg(int(pid), signal.SIGTERM)
        except ProcessLookupError:
            pass
"""


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    (tmp_path / "toy.py").write_text(PROGRAM)
    (tmp_path / "seconds").write_text("0")
    definition = Definition(
        command=(sys.executable, str(tmp_path / "toy.py"), "{lr}", "{seed}"),
        cwd=str(tmp_path), home=str(tmp_path), space={"lr": Choice((1, 2))}, search="grid",
        configurations=2, seeds=2, metric="score",
    )  # fmt: skip
    return make_sweep(tmp_path / "sweep", tmp_path, definition)


@pytest.fixture
def slurm_here(tmp_path, monkeypatch):
    """A folder on PATH with stand-ins for the commands of Slurm."""
    programs, state = tmp_path / "bin", tmp_path / "jobs"
    programs.mkdir()
    state.mkdir()
    about = {"python": sys.executable, "state": str(state)}
    for name, text in {"sbatch": SBATCH, "squeue": SQUEUE, "scancel": SCANCEL}.items():
        (programs / name).write_text(text.format(**about))
    (programs / "srun").write_text(SRUN)
    (programs / "scontrol").write_text("#!/bin/sh\necho 'MaxArraySize            = 3'\n")
    for path in programs.iterdir():
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")


ENGINES = [
    ("processes", {}),
    pytest.param(("slurm", {"poll": "0"}), marks=pytest.mark.medium),
    pytest.param(("slurm", {"cluster": "local"}), marks=pytest.mark.slow),
    pytest.param(("ray", {"address": "local"}), marks=pytest.mark.slow),
]


@pytest.fixture(params=ENGINES)
def engine(request, sweep, slurm_here):
    name, options = request.param
    if name != "processes":
        pytest.importorskip("ray" if name == "ray" else "submitit")
    made = engine_named(name, sweep, options)
    yield made
    made.stop()
    if name == "ray":
        made._ray.shutdown()


def wait_for(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


# The tests of sweeps run some with local processes.
@pytest.mark.parametrize(
    "engine", [pytest.param(*ENGINES[:1], marks=pytest.mark.slow), *ENGINES[1:]], indirect=True
)
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning")
def test_an_engine_runs_a_sweep_to_its_end(sweep, engine):
    said = []
    assert engine.alive() == 0
    state = drive(sweep, engine, 3, lambda progress: None, said.append)
    assert state.open == []
    assert [one.mean for one in state.standings()] == [3.5, 2.5]
    wait_for(lambda: engine.alive() == 0)
    assert said == []


@pytest.mark.medium
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning")
def test_stopped_workers_give_their_blocks_up(sweep, engine, tmp_path):
    (tmp_path / "seconds").write_text("600")
    engine.start(2)
    assert engine.alive() == 2
    wait_for(lambda: len(list(sweep.folder.glob("blocks/*.claim-1"))) == 2)
    engine.stop()
    assert engine.alive() == 0
    ends = engine.ended()
    assert len(ends) == 2
    assert engine.ended() == []
    assert len(state_of_sweep(sweep).open) == 4


@pytest.mark.slow
def test_killed_workers_are_replaced(sweep, tmp_path):
    (tmp_path / "seconds").write_text("0.5")
    engine, said = Processes(sweep.folder), []
    engine.start(2)
    wait_for(lambda: list(sweep.folder.glob("blocks/*.claim-1")))
    for pid in engine.pids:
        os.kill(pid, signal.SIGKILL)
    state = drive(sweep, engine, 2, lambda progress: None, said.append)
    assert state.open == []
    assert said[:2] == ["a worker ended (killed by signal 9)"] * 2


def test_workers_that_cannot_work_stop_the_sweep_with_their_reason(sweep, tmp_path):
    engine = Processes(sweep.folder, ["--blocks", "none"])
    with pytest.raises(UserFacingError, match=r"`--blocks` must be a whole number.*kept"):
        drive(sweep, engine, 1, lambda progress: None, lambda line: None)


def test_scripts_of_slurm_are_cut_below_the_limit_of_the_site(sweep, slurm_here):
    pytest.importorskip("submitit")
    scripts = scripts_of("slurm", sweep, {"partition": "dev", "mem": "8GB"}, 5)
    arrays = [line for text in scripts for line in text.splitlines() if "--array" in line]
    assert arrays == ["#SBATCH --array=0-1%2", "#SBATCH --array=0-1%2", "#SBATCH --array=0-0%1"]
    assert "#SBATCH --partition=dev" in scripts[0]
    assert f"-m runshelf sweep {sweep.folder} --work" in scripts[0]
    assert "pickle" not in scripts[0]
    subprocess.run(["bash", "-n"], input=scripts[0], text=True, check=True)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("processes", {"cpus": "1"}, "no option `cpus`"),
        ("slurm", {"partitoin": "x"}, "did you mean `partition`"),
        ("slurm", {"time": "1h"}, "whole minutes"),
        ("slurm", {"array_limit": "0"}, "at least 1"),
        ("slurm", {"cluster": "x"}, "slurm or local"),
        ("slurm", {"poll": "soon"}, "seconds"),
        ("rey", {}, "did you mean `ray`"),
    ],
)
def test_wrong_options_are_refused(sweep, name, options, said):
    if name == "slurm":
        pytest.importorskip("submitit")
    with pytest.raises(UsageError, match=said):
        engine_named(name, sweep, options)
