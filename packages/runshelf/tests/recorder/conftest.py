"""The command line as a process, and readers of the folders that it makes."""

import json
import os
import subprocess
import sys

import pytest

from runshelf.recorder.output_reader import read_output
from runshelf.store.finding import list_runs
from runshelf.store.run import open_run

RUNSHELF = "import sys; from runshelf.cli.main import main; sys.exit(main())"


class Bench:
    """A home, a folder to work in, and the command line."""

    def __init__(self, folder):
        self.home = folder / "home"
        self.work = folder / "work"
        self.work.mkdir()
        self.env = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("BACKFLIP", "PYTHONUNBUFFERED"))
        }
        self.env["BACKFLIP_HOME"] = str(self.home)

    def command(self, *words):
        """Return a command line of runshelf."""
        return [sys.executable, "-c", RUNSHELF, *map(str, words)]

    def __call__(self, *words, cwd=None, input="", **env):
        """Run a command line of runshelf to its end."""
        done = subprocess.run(
            self.command(*words),
            cwd=cwd or self.work,
            env=self.env | env,
            input=input.encode(),
            capture_output=True,
            timeout=120,
        )
        # Decoded here, because `text=True` would turn carriage returns into newlines.
        done.stdout, done.stderr = os.fsdecode(done.stdout), os.fsdecode(done.stderr)
        return done

    def start(self, *words, **settings):
        """Start a command line of runshelf."""
        settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | settings
        return subprocess.Popen(self.command(*words), cwd=self.work, env=self.env, **settings)

    def runs(self):
        """Return the runs, oldest first."""
        return [open_run(self.home / "runs" / ulid) for ulid in list_runs(self.home)]

    @property
    def last(self):
        """The newest run."""
        return self.runs()[-1]

    def output(self, run=None):
        """Return stream and text of each line of a run's output."""
        return [(line.stream, line.text) for line in read_output((run or self.last).folder)]

    def end(self, run=None):
        """Return the last status of a run."""
        return [event for event in (run or self.last).events() if "status" in event][-1]

    def write(self, name, text):
        """Write a file to work with."""
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def read(self, name, run=None):
        """Return a JSON file of a run."""
        return json.loads(((run or self.last).folder / name).read_text())


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)
