"""Repeats a training run of any program with changed options, and reads its log."""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from backflip.doctor.log import Log
from backflip.doctor.next_experiment import as_text, part_of
from backflip.doctor.proving import SEEDS, TAGS, Repeat, Repeated
from backflip.doctor.reading.log_files import logs_in
from runshelf.errors import UsageError, UserFacingError
from runshelf.recorder.command_templates import filled, placeholders, unescaped, words_of
from runshelf.recorder.launch import Launch
from runshelf.recorder.output_files import FOLDER
from runshelf.recorder.run_command import check_executable, record, recording_of
from runshelf.store.paths import is_file
from runshelf.store.run import RunInfo

LAST = 0.1  # share of the logged returns whose mean is the final return


def absolute_words(command: str) -> list[str]:
    """Return the words of a command; names of files in the current folder become absolute.

    Raises:
        UsageError: a quote is not closed, or there is no word.
    """
    words = words_of(command, "`--command`", "python train.py --seed {seed}")
    return [str(Path(word).absolute()) if is_file(Path(word)) else word for word in words]


def repetition_of_program(
    command: str,
    log: Log,
    mapping: Mapping[str, str],
    home: Path,
    say: Callable[[str], None],
) -> tuple[Repeat, Callable[[Mapping[str, Any]], bool]]:
    """Return a function that repeats a program, and one that says which changes it can make.

    Each repetition is a recorded run of its own. The program runs in the folder `outputs` of the
    run, where its log is found afterwards.

    Args:
        command: the command line. `{seed}`, `{env_steps}`, `{folder}` and settings in our names,
            such as `{learning_rate}`, are filled in.
        log: the log that was diagnosed; the present settings come from it.
        mapping: our names by logged names.
        home: where the runs are kept.
        say: receives lines of the recorder.

    Raises:
        UsageError: a placeholder is missing or has no value, or the program does not exist.
    """
    words = absolute_words(command)
    names = placeholders(words)
    if "seed" not in names:
        raise UsageError("`--command` needs {seed}: repetitions of one seed would be alike")
    if "env_steps" in names and not log.is_over_env_steps:
        raise UsageError(
            f"`--command` has {{env_steps}}, and the log counts {log.counts}: write the number of "
            "env steps in its place"
        )
    steps = part_of(round(log.budget), log.settings)
    present = {**log.settings, "env_steps": steps}
    for name in sorted(names - {"seed", "folder"} - present.keys()):
        raise UsageError(
            f"`--command` has {{{name}}}, and its value is not in the log; add --about {name}=VALUE"
        )
    check_executable(words, Path.cwd(), os.environ)

    def repeat(change: Mapping[str, Any], question: str) -> Repeated:
        values = {name: as_text(value) for name, value in {**present, **change}.items()}
        info = RunInfo(question=question, tags=TAGS)
        runs = [_run(words, {**values, "seed": str(s)}, info, home, say) for s in range(SEEDS)]
        returns = tuple(final_return(folder, mapping) for _, folder in runs)
        if not change and not np.isfinite(returns).any():
            raise UserFacingError(
                f"the unchanged program logged no return in `{runs[0][1]}`: its log must be in the "
                "folder in which it runs, or in {folder}"
            )
        return Repeated(returns, runs[0][0])

    return repeat, lambda change: change.keys() <= names


def _run(
    words: list[str],
    values: Mapping[str, str],
    info: RunInfo,
    home: Path,
    say: Callable[[str], None],
) -> tuple[str, Path]:
    """Run the program to its end; return the id of the run, and the folder in which it ran."""
    argv = [filled(word, values) for word in words]
    recording = recording_of(home, argv, info, say)
    known = recording.launch(Path())

    def launch(folder: Path) -> Launch:
        outputs = folder / FOLDER
        in_folder = (filled(word, {"folder": str(outputs)}) for word in known.argv)
        return replace(known, argv=tuple(map(unescaped, in_folder)), cwd=outputs)

    quiet = os.open(os.devnull, os.O_WRONLY)
    try:
        ending = record(replace(recording, launch=launch, out=quiet, err=quiet), say)
    finally:
        os.close(quiet)
    if ending.state == "interrupted":
        raise KeyboardInterrupt
    return ending.run, Path(ending.folder) / FOLDER


def final_return(folder: Path, mapping: Mapping[str, str]) -> float:
    """Return the mean of the last tenth of the returns logged in a folder; NaN without any."""
    try:
        logs = logs_in(folder, mapping)
    except UserFacingError:
        return math.nan
    known = next((log for log in logs if log.has("episode_return_mean")), None)
    if known is None:
        return math.nan
    values = known.signals["episode_return_mean"].y
    values = values[np.isfinite(values)]
    if not len(values):
        return math.nan
    return float(values[-max(1, round(LAST * len(values))) :].mean())
