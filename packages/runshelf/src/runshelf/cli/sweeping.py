"""The command `sweep`."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runshelf.cli.arguments import add_command, add_cost, add_output, home, whole
from runshelf.cli.command_line import Reported
from runshelf.cli.recording import duration
from runshelf.errors import UsageError, UserFacingError
from runshelf.terminal_text import put

if TYPE_CHECKING:
    from runshelf.sweeps.definition import Definition, Sweep
    from runshelf.sweeps.state import State

_ABOUT = "run a program over many configurations and seeds, on this machine or on many"
DESCRIBING = (
    "over",
    "search",
    "samples",
    "search_seed",
    "seeds",
    "block_seeds",
    "tuning_seed",
    "report_seed",
    "metric",
    "minimise",
    "halving",
    "budget",
    "cost",
)
_SEEDS = 5


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_parser(commands)
    parser.set_defaults(act=sweep)


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the parser of the command, and return it."""
    parser = add_command(commands, "sweep", sweep, _ABOUT)
    parser.usage = "%(prog)s SWEEP [options] [-- CMD ...]"
    parser.add_argument(
        "what",
        nargs="*",
        metavar="SWEEP",
        help="the name of a sweep in the home, or the path of its folder",
    )
    _add_making(parser)
    add_running(parser)
    _add_workers(parser)
    _add_looking(parser)
    add_output(parser)
    return parser


def _add_making(parser: argparse.ArgumentParser) -> None:
    making = parser.add_argument_group("a new sweep")
    making.add_argument(
        "--over",
        action="append",
        metavar="NAME=VALUES",
        help="a parameter: 1e-4..1e-2:log, 16..256, 0.9..0.99:points=4, or relu,tanh; repeatable",
    )
    making.add_argument(
        "--search", metavar="HOW", help="grid, random, sobol, optuna:tpe, optuna:random, optuna:qmc"
    )
    making.add_argument("--samples", type=whole(1, 1_000_000, 16), metavar="N")
    making.add_argument("--search-seed", type=whole(0, 2**31, 0), metavar="N")
    making.add_argument("--seeds", type=whole(1, 1_000_000, 5), metavar="N")
    making.add_argument("--block-seeds", type=whole(1, 10_000, 10), metavar="N")
    making.add_argument("--tuning-seed", type=whole(0, 1_999_000_000, 1_000_000), metavar="FIRST")
    making.add_argument("--report-seed", type=whole(0, 1_999_000_000, 0), metavar="FIRST")
    making.add_argument("--metric", metavar="NAME", help="default: the result of a run")
    add_direction(making)
    making.add_argument("--halving", type=whole(2, 100, 3), metavar="RATE")
    making.add_argument("--budget", type=duration, metavar="TIME")
    add_cost(making)


def add_direction(group: Any) -> None:
    """Add the options that say which scores are better; None for the usual ones of the metric."""
    one = group.add_mutually_exclusive_group()
    one.add_argument(
        "--minimise", action="store_true", default=None, help="smaller is better, as of a loss"
    )
    one.add_argument("--maximise", action="store_false", default=None, dest="minimise")


def add_running(parser: argparse.ArgumentParser) -> None:
    """Add the options of how a sweep runs, which studies have, too."""
    running = parser.add_argument_group("how it runs")
    running.add_argument("--engine", default="processes", metavar="NAME")
    running.add_argument("--workers", type=whole(1, 100_000, 4), metavar="N")
    running.add_argument(
        "--engine-set", action="append", default=[], metavar="KEY=VALUE", dest="engine_options"
    )
    running.add_argument("--retry-failed", action="store_true", help="run failed blocks again")
    running.add_argument(
        "--show", action="store_true", help="print the state of the sweep, and run nothing"
    )


def _add_workers(parser: argparse.ArgumentParser) -> None:
    running = parser.add_argument_group("parts of a sweep")
    running.add_argument("--print", action="store_true", dest="print_scripts")
    running.add_argument("--work", action="store_true", help="work as one worker, in this process")
    running.add_argument("--blocks", type=whole(1, 1_000_000, 1), metavar="N")


def _add_looking(parser: argparse.ArgumentParser) -> None:
    looking = parser.add_argument_group("what it found")
    looking.add_argument("--report", action="store_true", help="run the best on fresh seeds")
    looking.add_argument("--configurations", metavar="N,N")
    looking.add_argument("--against", action="append", default=[], metavar="SWEEP")


def sweep(options: argparse.Namespace) -> Reported | None:
    """Make, run or show a sweep."""
    from runshelf.sweeps.making import folder_of

    if len(options.what) != 1:
        got = " ".join(options.what) or "nothing"
        raise UsageError(f"name one sweep, got {got}; try {options.program_name} sweep my-sweep")
    folder = folder_of(home(options), options.what[0])
    found = _opened(options, folder)
    if options.work:
        return _work(options, found)
    if options.report:
        _ask_for_report(options, found)
    return run_and_report(options, found)


def _opened(options: argparse.Namespace, folder: Path) -> "Sweep":
    """Make the sweep if the command line describes one; else read it."""
    from runshelf.store.paths import is_file
    from runshelf.sweeps.definition import SWEEP, read_sweep
    from runshelf.sweeps.making import list_sweeps, make_sweep

    if options.program:
        return make_sweep(folder, home(options), _definition(options))
    given = [name for name in DESCRIBING if getattr(options, name) is not None]
    given = [name for name in given if not (options.report and name == "seeds")]
    if given and is_file(folder / SWEEP):
        option = f"--{given[0].replace('_', '-')}"
        raise UsageError(
            f"`{options.what[0]}` was made before, so {option} cannot change: leave it out, or "
            "make another sweep"
        )
    if not is_file(folder / SWEEP):
        known = ", ".join(f"`{name}`" for name in list_sweeps(home(options))[:8])
        raise UsageError(
            f"there is no sweep `{options.what[0]}`{f' (there are {known})' if known else ''}; "
            f"make one: {options.program_name} sweep {options.what[0]} --over lr=1e-4..1e-2:log "
            "--samples 8 -- python train.py --lr {lr} --seed {seed}"
        )
    return read_sweep(folder)


def _definition(options: argparse.Namespace) -> "Definition":
    from runshelf.sweeps.blocks import usual_block_seeds
    from runshelf.sweeps.definition import REPORT_SEED, TUNING_SEED, Definition
    from runshelf.sweeps.searches import search_named, usual_search
    from runshelf.sweeps.space import parse_space
    from runshelf.sweeps.template import check_template

    space = parse_space(options.over or [])
    if not space:
        raise UsageError("a new sweep needs a parameter; try --over lr=1e-4..1e-2:log")
    command = tuple(options.program)
    check_template(command, space)
    search = options.search or usual_search(space)
    seed = options.search_seed or 0
    count = search_named(search, space, seed).configurations(options.samples or 0)
    seeds = options.seeds or _SEEDS
    return Definition(
        command=command,
        cwd=str(Path.cwd()),
        home=str(home(options).absolute()),
        space=space,
        search=search,
        configurations=count,
        search_seed=seed,
        seeds=seeds,
        block_seeds=options.block_seeds or usual_block_seeds(command, seeds),
        tuning_seed=TUNING_SEED if options.tuning_seed is None else options.tuning_seed,
        report_seed=REPORT_SEED if options.report_seed is None else options.report_seed,
        metric=options.metric,
        minimise=options.minimise,
        halving=options.halving or 0,
        budget_seconds=options.budget,
        cost_per_hour=options.cost,
    )


def _work(options: argparse.Namespace, found: "Sweep") -> Reported:
    from runshelf.cli.sweep_tables import fields_of, print_state
    from runshelf.sweeps.worker import Worker

    state, program = Worker(found, say, options.blocks).run(), options.program_name
    return Reported(fields_of(state, program), lambda: print_state(state, program))


def _ask_for_report(options: argparse.Namespace, found: "Sweep") -> None:
    from runshelf.sweeps.blocks import ReportPlan
    from runshelf.sweeps.state import read_report, state_of_sweep, write_report

    state = state_of_sweep(found)
    best = next((one.configuration for one in state.standings() if not one.failed), None)
    if any(block.purpose == "tuning" for block in state.open) or best is None:
        raise UsageError(
            f"the tuning of `{found.name}` has not finished, so its best configuration is not "
            f"known: go on with {options.program_name} sweep {shlex.quote(options.what[0])}"
        )
    named = _numbers(options.configurations, found.definition.configurations)
    before = read_report(found)
    seeds = options.seeds or (before.seeds if before else 2 * found.definition.seeds)
    write_report(found, ReportPlan((best, *named), seeds))


def _numbers(text: str | None, many: int) -> list[int]:
    numbers: list[int] = []
    for part in text.split(",") if text else ():
        if not part.strip().isdecimal() or int(part) >= many:
            raise UsageError(
                f"--configurations must be numbers from 0 to {many - 1}, got `{text}`; try 0,1"
            )
        numbers.append(int(part))
    return numbers


def run_open(options: argparse.Namespace, definition: "Definition", name: str) -> "State":
    """Make the sweep of a study, run what is open, and return its state."""
    from runshelf.sweeps.making import folder_of, make_sweep

    found = make_sweep(folder_of(home(options), name), home(options), definition)
    return run_sweep(options, found)


def run_sweep(options: argparse.Namespace, found: "Sweep") -> "State":
    """Run what is open, unless only a look was asked for.

    Raises:
        UserFacingError: the first blocks all failed.
    """
    from runshelf.sweeps.making import open_failed
    from runshelf.sweeps.state import state_of_sweep

    if options.retry_failed:
        say(f"failed blocks that are open again: {open_failed(found)}")
    state = state_of_sweep(found)
    if options.show:
        return state
    if state.open and not state.hopeless:
        state = _driven(options, found)
    if state.hopeless:
        raise UserFacingError(
            f"the first blocks all failed, and the sweep stopped: {state.hopeless}; "
            "after a fix, go on with --retry-failed"
        )
    return state


def run_and_report(options: argparse.Namespace, found: "Sweep") -> Reported | None:
    """Run what is open, unless only a look was asked for, and report the state."""
    from runshelf.cli.sweep_tables import compared_budgets, fields_of, print_state
    from runshelf.sweeps.definition import read_sweep
    from runshelf.sweeps.making import folder_of
    from runshelf.sweeps.state import state_of_sweep

    others = [read_sweep(folder_of(home(options), name)) for name in options.against]
    if options.print_scripts:
        return _print_scripts(options, found, len(state_of_sweep(found).open))
    state, program = run_sweep(options, found), options.program_name
    budgets = compared_budgets([state, *map(state_of_sweep, others)]) if others else None
    return Reported(
        fields_of(state, program, budgets), lambda: print_state(state, program, budgets)
    )


def _driven(options: argparse.Namespace, found: "Sweep") -> "State":
    import signal

    from runshelf.cli.sweep_display import display
    from runshelf.cores import usable_cores
    from runshelf.interrupts import interruptible
    from runshelf.sweeps.driver import drive
    from runshelf.sweeps.engines.choosing import engine_named

    chosen = _engine_options(options.engine_options)
    engine = engine_named(options.engine, found, chosen)
    # A cluster has its own limits; this machine has its cores.
    at_once = usable_cores() if options.engine == "processes" else 1_000_000
    workers = options.workers or at_once
    with interruptible(signal.SIGTERM, signal.SIGHUP), display(found.name) as show:
        return drive(found, engine, workers, show, say)


def _engine_options(texts: Sequence[str]) -> dict[str, str]:
    from runshelf.key_values import key_values

    return key_values("--engine-set", texts, "cpus=2")


def _print_scripts(options: argparse.Namespace, found: "Sweep", blocks: int) -> Reported:
    from runshelf.sweeps.engines.choosing import scripts_of

    chosen = _engine_options(options.engine_options)
    workers = min(options.workers or blocks, blocks)
    scripts = scripts_of(options.engine, found, chosen, workers)
    return Reported({"scripts": scripts}, lambda: put("\n".join(scripts)))


def say(line: str) -> None:
    """Print one line about a sweep on stderr."""
    put(f"runshelf: {line}", file=sys.stderr)
