"""`teach --more RUN` and `train --more RUN`: carry a run on in a new run."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from backflip.cli.who_answers import (
    PEOPLE,
    display_for,
    given_options,
    labelling_of,
    note,
    refuse_page_options,
)
from runshelf.cli.arguments import RUN, home, run_info
from runshelf.cli.run_alerts import without_alerts
from runshelf.cli.trusting import ask_to_import
from runshelf.errors import UsageError

if TYPE_CHECKING:
    from backflip.training.result import Result
    from runshelf.store.run import Run

# What may differ from the parent; with `--more`, all other options are refused.
FREE = frozenset(
    (
        "--more",
        "--env-steps",
        "--labels",
        "--goal",
        "--open",
        "--no-open",
        "--port",
        "--host",
        "--question",
        "--name",
        "--group",
        "--tag",
        "--json",
        "--home",
        "--debug",
        "--cost",
        "--alert",
        "--to",
    )
)


def add_more(parser: argparse.ArgumentParser) -> None:
    """Add the option `--more`."""
    parser.add_argument(
        "--more",
        metavar="RUN",
        help=f"carry RUN on in a new run, with its settings and from where it ended; RUN is {RUN}",
    )


def teach_more_of(options: argparse.Namespace) -> "Result":
    """Carry out `teach --more RUN`."""
    from backflip.teaching_api import teach_more

    run = _parent(options, {"ENV": options.env})
    teacher = str(run.config.get("teacher", ""))
    if options.labels is None:
        refuse_page_options(options, "without --labels there are no new queries; try --labels 50")
        teacher = ""
    elif teacher not in PEOPLE:
        refuse_page_options(options, f"the teacher of the run, `{teacher}`, is a program")
    with display_for(teacher, options) as display:
        return teach_more(
            run,
            labels=options.labels,
            env_steps=options.env_steps,
            labelling=labelling_of(options, teacher),
            **_about(options, run, display),
        )


def train_more_of(options: argparse.Namespace) -> "Result":
    """Carry out `train --more RUN`."""
    from backflip.training.train import train_more

    run = _parent(options, {"ALGORITHM": options.algorithm, "ENV": options.env})
    if options.env_steps is None:
        raise UsageError("how much more? Add --env-steps 50000")
    with display_for(None, options) as display:
        return train_more(run, env_steps=options.env_steps, **_about(options, run, display))


def finished_note(run: "Run") -> str:
    """Return when a finished run finished, and how to carry it on."""
    from backflip.core.paths import name_on_command_line
    from backflip.training.finished import end_of, more_command
    from runshelf.cli.tables import moment_of
    from runshelf.store.times import seconds_of

    seconds = seconds_of((end_of(run) or {}).get("time"))
    when = "" if seconds is None else f" at {moment_of(seconds)}"
    name = name_on_command_line(run)
    more = f"to {run.manifest['command']} it more: {more_command(run)}"
    return f"run `{name}` finished{when}, so there is nothing to resume; {more}"


def _parent(options: argparse.Namespace, positional: dict[str, str | None]) -> "Run":
    """Return the parent, or refuse what cannot differ from it."""
    from backflip.training.named_code import code_named_by
    from runshelf.store.finding import find_run

    named = [name for name, text in positional.items() if text is not None]
    named += [name for name in given_options(options) if name not in FREE]
    if named:
        raise UsageError(
            f"with --more, the new run has the settings of `{options.more}`: leave out "
            f"{' and '.join(named)}"
        )
    run = find_run(home(options), options.more)
    ask_to_import(run, code_named_by(run), options)
    return run


def _about(options: argparse.Namespace, run: "Run", display: Any) -> dict[str, Any]:
    """Return the arguments common to both commands; `latest` is recorded as the run's id.

    Raises:
        UserFacingError: nothing is left of the weekly budget.
    """
    from runshelf.recorder.time_limit import check_weekly_budget

    own = run.folder.resolve().parent == (home(options) / "runs").resolve()
    recorded = run.ulid if own else str(run.folder.resolve())
    argv = list(_naming(recorded, without_alerts(options.argv)))
    info = run_info(options)
    info = replace(info, cost_per_hour=info.cost_per_hour or run.manifest.get("cost_per_hour"))
    check_weekly_budget(home(options), info.cost_per_hour, note)
    return {"home": home(options), "argv": argv, "info": info, "report": display}


def _naming(run: str, argv: Sequence[str]) -> Iterator[str]:
    """Yield the words of a command line, with the run as the value of `--more`."""
    before = ""
    for word in argv:
        if before == "--more":
            yield run
        else:
            yield f"--more={run}" if word.startswith("--more=") else word
        before = word
