"""Victims that write a run: `runshelf.log` in a program, and the recorder of a program."""

import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from packages.runshelf.tests.recorder.test_kills import PROGRAM, acknowledged, check_one
from tests.random_kills import Figures, Fork, main

import runshelf
from runshelf.cli.main import main as command_line
from runshelf.environment import exported
from runshelf.store.metrics import read_metrics, writers
from runshelf.store.run import create_run

KILLS_OF_RUN = 20


def kill_loggers(home: Path, kills: int, chance: random.Random) -> Figures:
    """Kill programs that log; `home` gets a run for every few of them."""
    total = Counter[str]()
    for kill in range(kills):
        if kill % KILLS_OF_RUN == 0:
            with create_run(home, command="run", config={}, argv=[]) as writer:
                folder = writer.folder
        victim = Fork(lambda folder=folder: _log_forever(folder), home / "errors")
        first = victim.output.readline()
        time.sleep(chance.uniform(0, 0.02))
        victim.kill()
        told = {int(line) for line in [first.strip(), *victim.rest()] if line}
        total.update(_lost_and_doubled(folder, victim.pid, told))
    return Figures(kills, total["acknowledged"], total["lost"], total["doubled"])


def _log_forever(folder: Path) -> None:
    os.environ.update(exported({"RUN": str(folder)}))
    for number in range(10_000_000):
        if number % 3:
            runshelf.log("a", number)
        else:
            runshelf.log({"a": number, "b": 0.5})
        os.write(1, b"%d\n" % number)


def _lost_and_doubled(folder: Path, pid: int, told: set[int]) -> Counter[str]:
    (name,) = [name for name in writers(folder) if name.startswith(f"log-{pid}-")]
    kept = Counter(int(record["a"]) for record in read_metrics(folder, name).records)
    more = sum(1 for number in kept if number not in told)
    assert more <= 1, "only the last call may have been cut off after it was written"
    return Counter(
        acknowledged=len(told),
        lost=sum(1 for number in told if number not in kept),
        doubled=sum(1 for count in kept.values() if count > 1),
    )


def kill_recorders(home: Path, kills: int, chance: random.Random) -> Figures:
    """Kill programs, their recorders, or both."""
    (home / "program.py").write_text(PROGRAM)
    told = 0
    for kill in range(kills):
        acks = home / f"acks-{kill}"
        check_one(home, acks, chance, start=_record)
        told += sum(map(len, acknowledged(acks).values()))
    return Figures(kills, told, 0, 0)  # `check_one` fails if anything is lost or doubled


def _record(home: Path, acks: Path) -> Fork:
    program = [sys.executable, "-I", "-S", str(home / "program.py"), str(acks)]
    argv = ["run", "--home", str(home), "--", *program]

    def act() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(home)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        command_line(argv)

    return Fork(act, home / "errors")


if __name__ == "__main__":
    main({"log": kill_loggers, "recorder": kill_recorders})
