"""Shows the progress of a run on stderr and its result on stdout.

A terminal shows a bar with the remaining time, and a line of metrics. Other outputs get a plain
line every few seconds.
"""

import contextlib
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, final

import numpy as np
from rich.console import Console, RenderableType
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from backflip.cli.long_runs import LongRunQuestion
from backflip.core.paths import from_here
from backflip.core.spec import LONGEST_EPISODE
from backflip.training.progress import Progress, decimal, health_line, plain_line, time_and_speed
from backflip.training.result import Result
from backflip.training.runtime import peak_memory_mib
from runshelf.formatting import plural
from runshelf.statistics.intervals import mean_interval
from runshelf.store.run_ids import short_id
from runshelf.terminal_text import harmless

SECONDS_BETWEEN_LINES = 3.0  # at least
SHARE_BETWEEN_LINES = 1 / 40  # of the elapsed time, so that long runs print fewer lines
SECONDS_BETWEEN_WAITS = 30.0
SMALL_RETURN = 10.0  # returns below it, as of tasks that are won or lost, have three decimals
FILES = {
    "curve.svg": "learning curve, mean and spread over seeds",
    "curve.csv": "the learning curve as numbers, with the 95 % interval of the mean",
    "clips.png": "clips before and after training",
    "teaching.webp": "clips before, during and after training, animated",
    "learned-reward.svg": "the learned reward against the true one and the answers",
    "learned-reward-most-wrong.png": "the answers that the reward model finds least likely",
    "learned-reward-most-unsure.png": "the answers on which its members differ most",
    "labels.sqlite": "all clips and all answers",
    "metrics-train.jsonl": "metrics, one line per seed and update",
    "policy.safetensors": "the trained policies",
    "checkpoint.safetensors": "the full state, to resume training",
    "run.json": "configuration, versions, command",
    "events.jsonl": "times of start, stop and finish",
}


Doctor = Callable[[Path], tuple[list[str], str]]


@final
class _Bar(Bar):
    """A progress bar with a line of metrics below it."""

    health = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the bar, then the line."""
        yield self.make_tasks_table(self.tasks)
        if self.health:
            yield Text(harmless(f"  {self.health}"), style="dim", no_wrap=True, overflow="ellipsis")


@final
class Display:
    """A progress callback that shows the progress; a context manager.

    Args:
        console: where; by default stderr.
        doctor: called with the run's folder at each progress; returns notes, and an addition to
            the line of metrics.
        asks: whether a person at the terminal is asked what may go wrong with a long run.
    """

    def __init__(
        self, console: Console | None = None, doctor: Doctor | None = None, *, asks: bool = False
    ) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._doctor = doctor
        self._question = LongRunQuestion(self._paused) if asks else None
        self._bar = _Bar(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[ahead]}", markup=False),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("setting up and compiling", total=None, ahead="")
        self._began, self._next_line = time.monotonic(), 0.0
        self._next_wait = 0.0
        self._waiting_for, self._activity = "", ""

    def __call__(self, progress: Progress) -> None:
        """Show the progress."""
        if progress.note:
            self.print_note(f"note: {progress.note}")
        if progress.waiting_for:
            self._show_waiting(progress)
            return
        if progress.doing:
            self._show_doing(progress.doing)
            return
        ended = 0 < progress.phases == progress.phase
        if not progress.phases:
            return
        if self._question and not ended:
            self._question(progress)
        warning = "" if ended else self._ask_doctor(progress.folder)
        if self._console.is_terminal:
            self._bar.health = _joined(warning, health_line(progress.health))
            self._bar.update(
                self._task,
                description="evaluating" if ended else "learning",
                total=progress.phases,
                completed=progress.phase + progress.share,
                ahead=time_and_speed(progress),
            )
        elif ended or time.monotonic() >= self._next_line:
            self._print_line(_joined(plain_line(progress), warning))

    def print_note(self, note: str) -> None:
        """Print a line above the bar; any thread may do so."""
        self._console.print(_text(f"backflip: {note}"), soft_wrap=True)

    @contextlib.contextmanager
    def _paused(self) -> Generator[None, None, None]:
        """Leave the terminal alone in the block."""
        self._bar.stop()
        try:
            yield
        finally:
            self._bar.start()

    def _ask_doctor(self, folder: Path | None) -> str:
        """Print what the doctor finds; return what the line of metrics says about it."""
        if self._doctor is None or folder is None:
            return ""
        notes, warning = self._doctor(folder)
        for note in notes:
            self.print_note(note)
        return warning

    def _show_doing(self, what: str) -> None:
        """Show an activity outside phases; without a terminal, as often as progress lines.

        The first line of an activity is shown at once.
        """
        activity = what.partition(":")[0]
        is_new, self._activity = activity != self._activity, activity
        if self._console.is_terminal:
            self._bar.update(self._task, description=harmless(what))
        elif is_new or time.monotonic() >= self._next_line:
            self._print_line(what)

    def _print_line(self, line: str) -> None:
        now = time.monotonic()
        pause = SHARE_BETWEEN_LINES * (now - self._began)
        self._next_line = now + max(pause, SECONDS_BETWEEN_LINES)
        self._console.print(_text(line), soft_wrap=True)

    def _show_waiting(self, progress: Progress) -> None:
        """Show what training waits for; without a terminal, only when it changes."""
        if self._console.is_terminal:
            self._bar.update(self._task, description=harmless(progress.waiting_for))
        elif progress.waiting_for != self._waiting_for and time.monotonic() >= self._next_wait:
            self._next_wait = time.monotonic() + SECONDS_BETWEEN_WAITS
            self._waiting_for = progress.waiting_for
            self._console.print(_text(progress.waiting_for), soft_wrap=True)

    def __enter__(self) -> "Display":
        """Begin."""
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the bar."""
        self._bar.stop()


def print_result(
    result: Result, doctor: Mapping[str, Any] | None = None, console: Console | None = None
) -> None:
    """Print a table with a row for each seed, the doctor's word, the times, and the files."""
    console = console or Console(highlight=False)
    console.print(_table(result))
    if result.cut_episodes is not None:
        console.print(_text(_cut_in_words(result.cut_episodes)), soft_wrap=True)
    seconds = result.seconds
    spent = {name: x for name, x in seconds.items() if name != "total" and x}
    if result.teacher is not None:
        console.print(_text(f"teacher: {result.teacher}"), soft_wrap=True)
    for who, words in (result.careless or {}).items():
        console.print(_text(f"CARELESS ANSWERS of `{who}`: {words}"), soft_wrap=True)
    for found in (result.reward_alarm, result.reward_measures, doctor):
        if found is not None:
            console.print(_text(str(found.get("in_words", ""))), soft_wrap=True)
    if result.parent is not None:
        console.print(
            _text(f"carries on {short_id(result.parent)}: {_own_share(result)}"), soft_wrap=True
        )
    parts = ", ".join(f"{name} {x:.1f}" for name, x in spent.items())
    memory = f"{peak_memory_mib():,.0f} MiB at most"
    console.print(f"{seconds['total']:.1f} s in all ({parts}); {memory}", soft_wrap=True)
    console.print(
        _text(f"run {short_id(result.run)} in {from_here(result.folder)}"), soft_wrap=True
    )
    for name, what in FILES.items():
        if (result.folder / name).exists():
            console.print(_text(f"  {name:<23} {what}"), soft_wrap=True)
    if result.more is not None:
        verb = "train" if result.labels is None else "teach"
        console.print(_text(f"to {verb} it more: {result.more}"), soft_wrap=True)


def _cut_in_words(episodes: int) -> str:
    """Return what to do about evaluation episodes that did not end."""
    return (
        f"{plural(episodes, 'evaluation episode')} did not end, and the returns are of the part "
        f"that was played: without a time limit this is {LONGEST_EPISODE:,} env steps; "
        "--env-arg max_episode_steps=1000 sets a limit"
    )


def _joined(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


def _text(line: str) -> Text:
    return Text(harmless(line))


def _own_share(result: Result) -> str:
    """Return how much of the labels and env steps a run with a parent added."""
    own = result.own_labels
    labels = "" if own is None else f"{own:,} label{'' if own == 1 else 's'} and "
    return f"{labels}{result.own_env_steps:,} env steps of each seed are its own"


def _table(result: Result) -> Table:
    """Return the table of seeds, and of several seeds the mean ± half its 95 % interval."""
    decimals = 1 if max(map(abs, result.returns)) >= SMALL_RETURN else 3
    columns = {"true return": (list(result.returns), decimals)}
    if result.optimum is not None:
        columns["optimum"] = (list(result.optimum), decimals)
    if result.score is not None and None not in result.score:
        columns["return / optimum"] = ([one for one in result.score if one is not None], 3)
    if result.labels is not None:
        columns["labels"] = ([float(result.labels)] * len(result.seeds), 0)
    columns["env steps"] = ([float(result.env_steps)] * len(result.seeds), 0)
    table = Table(title=_text(f"{result.env}, {result.algorithm}"), title_justify="left")
    table.add_column("seed", justify="right")
    for name in columns:
        table.add_column(name, justify="right")
    for row, seed in enumerate(result.seeds):
        cells = [_cell(values[row], decimals) for values, decimals in columns.values()]
        table.add_row(str(seed), *cells, end_section=row == len(result.seeds) - 1)
    if len(result.seeds) > 1:
        means = [mean_cell(*column) for column in columns.values()]
        table.add_row("mean", *means)
        if any("±" in mean for mean in means):
            table.caption = "±: 95 % interval (Student's t)"
            table.caption_justify = "left"
    return table


def mean_cell(values: list[float], decimals: int) -> str:
    """Return the mean over seeds ± half its 95 % interval (Student's t)."""
    interval = mean_interval(np.array(values)[:, None])
    mean, margin = interval.centre[0], interval.high[0] - interval.centre[0]
    if min(values) == max(values):
        return _cell(mean, decimals)
    return f"{_cell(mean, decimals)} ± {_cell(margin, decimals)}"


def _cell(value: float, decimals: int) -> str:
    if 0 < abs(value) < 0.5 / 10**decimals:  # it would be 0.000, or even -0.000
        return f"{value:.3g}"
    return decimal(value, decimals, ",")
