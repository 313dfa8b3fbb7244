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
from runshelf.formatting import cut
from runshelf.recorder.command_templates import filled, placeholders, unescaped, words_of
from runshelf.recorder.ending import Ending, error_of_ending
from runshelf.recorder.launch import Launch
from runshelf.recorder.output_files import FOLDER
from runshelf.recorder.output_reader import read_output
from runshelf.recorder.run_command import check_executable, record, recording_of
from runshelf.store.paths import is_file
from runshelf.store.run import RunInfo

MOST_LETTERS = 200  # of the line with which a program failed
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
    say = _once(say)

    def repeat(change: Mapping[str, Any], question: str) -> Repeated:
        values = {name: as_text(value) for name, value in {**present, **change}.items()}
        info = RunInfo(question=question, tags=TAGS)
        endings, returns = list[Ending](), list[float]()
        for seed in range(SEEDS):
            endings.append(_run(words, {**values, "seed": str(seed)}, info, home, say))
            returns.append(final_return(_outputs(endings[-1]), mapping))
            if endings[-1].state == "failed":
                failure = _failure(endings[-1])
                if not change and not np.isfinite(returns).any():
                    raise UserFacingError(f"the unchanged program failed: {failure}")
                say(failure)
        if not change and not np.isfinite(returns).any():
            raise UserFacingError(
                f"the unchanged program logged no return in `{_outputs(endings[0])}`: its log must "
                "be in the folder in which it runs, or in {folder}"
            )
        return Repeated(tuple(returns), endings[0].run)

    return repeat, lambda change: change.keys() <= names


def _run(
    words: list[str],
    values: Mapping[str, str],
    info: RunInfo,
    home: Path,
    say: Callable[[str], None],
) -> Ending:
    """Run the program to its end, in the folder `outputs` of its run."""
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
    return ending


def _outputs(ending: Ending) -> Path:
    return Path(ending.folder) / FOLDER


def _failure(ending: Ending) -> str:
    """Return how a program failed, and the last line that it printed, of stderr if it has one."""
    lines = [line for line in read_output(Path(ending.folder)) if line.text.strip()]
    of_errors = [line for line in lines if line.stream == "err"] or lines
    last = of_errors[-1].text.strip() if of_errors else "it printed nothing"
    how = error_of_ending(ending) or f"exit status {ending.exit_status}"
    return f"run {ending.run}, {how}: {cut(last, MOST_LETTERS)}"


def _once(say: Callable[[str], None]) -> Callable[[str], None]:
    """Return a function that says each line only once: repetitions have the same ones."""
    said = set[str]()

    def say_new(line: str) -> None:
        if line not in said:
            said.add(line)
            say(line)

    return say_new


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
