"""Runs the next batch of seeds by the registered commands. No shell takes part."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from runshelf.comparison.seed_order import ranges
from runshelf.environment import exported
from runshelf.errors import UsageError
from runshelf.recorder.command_templates import filled, placeholders, unescaped, words_of
from runshelf.recorder.run_command import check_executable, record, recording_of
from runshelf.recorder.self_recording import has_option, self_recording
from runshelf.registrations.carrying import VARIABLE
from runshelf.registrations.kept import Kept
from runshelf.store.run import RunInfo

Say = Callable[[str], None]


def commands_of(kept: Kept, seeds: Mapping[str, Sequence[int]]) -> list[tuple[str, list[str]]]:
    """Return the command lines of the next batch, each with its group.

    `{seed}` is filled in for each seed. A command with `{seeds}` runs so many consecutive seeds
    from `{seed}` on, so it is called once for each range of seeds.

    Raises:
        UsageError: a group has no registered command, or its program does not exist.
    """
    found: list[tuple[str, list[str]]] = []
    for group, of in seeds.items():
        command = kept.registration.commands.get(group)
        if command is None:
            raise UsageError(
                f"`{kept.name}` has no command for `{group}`: start its seeds "
                f"{', '.join(map(str, of))} yourself, with --registered {kept.name}"
            )
        words = words_of(command, f"the command of `{group}`", "python train.py --seed {seed}")
        check_executable(words, Path.cwd(), os.environ)
        together = "seeds" in placeholders(words)
        batches = ranges(of) if together else [[seed] for seed in of]
        for batch in batches:
            values = {"seed": str(batch[0]), "seeds": str(len(batch))}
            found.append((group, [unescaped(filled(word, values)) for word in words]))
    return found


def start(home: Path, kept: Kept, commands: Sequence[tuple[str, list[str]]], say: Say) -> int:
    """Run command lines one after the other; return how many ended with success.

    A program that records itself, as `backflip train` does, gets the group and the registration;
    any other is recorded.

    Raises:
        KeyboardInterrupt: the user stopped one.
    """
    done = 0
    for place, (group, argv) in enumerate(commands, 1):
        say(f"{place} of {len(commands)}: {shlex.join(argv)}")
        run = _run_ours if self_recording(argv) is not None else _record
        done += run(home, kept, group, argv, say)
    return done


def _run_ours(home: Path, kept: Kept, group: str, argv: Sequence[str], say: Say) -> int:
    options = {"--group": group, "--home": str(home.absolute())}
    left = {name: value for name, value in options.items() if not has_option(argv, name)}
    words = [*argv, *(word for option in left.items() for word in option)]
    environ = {**os.environ, **exported({VARIABLE: kept.name})}
    status = subprocess.run(words, env=environ, stdout=sys.stderr, check=False).returncode
    if status:
        say(f"exit status {status}: {shlex.join(words)}")
    return int(status == 0)


def _record(home: Path, kept: Kept, group: str, argv: Sequence[str], say: Say) -> int:
    info = RunInfo(group=group, registered=kept.carried())
    recording = recording_of(home, argv, info, say)
    ending = record(recording, say)
    if ending.state == "interrupted":
        raise KeyboardInterrupt
    return int(ending.state == "finished")
