"""The commands `ablate` and `sensitivity`."""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backflip.algorithms.registry import entry_of
from backflip.cli.sweeping import add_training, passed_on, training_command, usual_name
from runshelf.cli.arguments import RUN, add_command, add_output, home, whole
from runshelf.cli.command_line import Reported
from runshelf.cli.sweeping import add_running, run_open
from runshelf.errors import UsageError
from runshelf.terminal_text import harmless, put

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from backflip.studies.ablation import Ablation
    from runshelf.sweeps.definition import Definition
    from runshelf.sweeps.space import Values
    from runshelf.sweeps.state import State

_SEEDS = 10
_PICTURE = "sensitivity.svg"


def add(commands: Any) -> None:
    """Add the commands."""
    about = "switch off what a run changed, one setting at a time, and on again"
    parser = add_command(commands, "ablate", _ablate, about)
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument("--seeds", type=whole(1, 10_000, 10), default=_SEEDS, metavar="N")
    add_running(parser)
    add_output(parser)
    about = "measure how much an algorithm depends on its settings"
    parser = add_command(commands, "sensitivity", _sensitivity, about)
    parser.add_argument("algorithm", metavar="ALGORITHM")
    parser.add_argument("env", metavar="ENV", nargs="+")
    parser.add_argument(
        "--over",
        action="append",
        default=[],
        metavar="NAME=VALUES",
        help="a grid of these instead of every setting, one at a time: learning_rate=1e-4,1e-3",
    )
    parser.add_argument("--seeds", type=whole(1, 10_000, 10), default=_SEEDS, metavar="N")
    add_training(parser)
    add_running(parser)
    add_output(parser)


def _ablate(options: argparse.Namespace) -> Reported:
    from backflip.studies.ablation import ablation_of
    from backflip.training.build import env_args_of
    from runshelf.store.finding import find_run

    run = find_run(home(options), options.run)
    study = ablation_of(run)
    algorithm, env = run.manifest["algorithm"], run.manifest["env"]
    more = [word for n, v in study.fixed.items() for word in ("--set", f"{n}={v}")]
    args = {name: _text(value) for name, value in env_args_of(run).items()}
    more += [word for name, value in args.items() for word in ("--env-arg", f"{name}={value}")]
    command = training_command(algorithm, env, list(study.arms[0].values), more)
    listed = tuple(dict(arm.values) for arm in study.arms)
    words = tuple(arm.what for arm in study.arms)
    definition = _definition(options, command, listed, words)
    state = run_open(options, definition, f"ablate-{run.short}-{options.seeds}")
    return _ablation_report(state, study)


def _ablation_report(state: "State", study: "Ablation") -> Reported:
    from backflip.studies.ablation import change_of, failure_value
    from runshelf.cli.sweep_tables import fields_of
    from runshelf.sweeps.ranking import is_minimised

    by_number = {one.configuration: one for one in state.standings()}
    minimised = is_minimised(state.sweep.definition, state.done)
    failed_as = failure_value(list(by_number.values()), higher_is_better=not minimised)
    rows: list[dict[str, Any]] = []
    for number, arm in enumerate(study.arms):
        one, against = by_number.get(number), by_number.get(arm.against)
        if one is None or against is None:
            continue
        change = None if number == arm.against else change_of(one, against, failed_as)
        rows.append(
            {"what": arm.what, "n": one.seeds, "mean": one.mean, "low": one.low, "high": one.high}
            | {"failed": one.failed, "against": study.arms[arm.against].what}
            | {"change": None if change is None else change._asdict()}
        )
    fields = fields_of(state, "backflip") | {"arms": rows, "skipped": list(study.skipped)}
    fields["failed_as"] = None if math.isnan(failed_as) else failed_as
    return Reported(fields, lambda: _print_ablation(state, rows, failed_as, study.skipped))


def _print_ablation(
    state: "State",
    rows: "Sequence[Mapping[str, Any]]",
    failed_as: float,
    skipped: "Sequence[str]",
) -> None:
    from runshelf.cli.sweep_tables import metric_of
    from runshelf.cli.tables import plain, print_table
    from runshelf.formatting import number

    put(f"{metric_of(state) or 'metric'}; mean and change with 95 % intervals over the seeds")
    print_table(
        {
            "what": [row["what"] for row in rows],
            "n": [row["n"] for row in rows],
            "failed": [row["failed"] for row in rows],
            "mean": [_between(row) for row in rows],
            "change": ["" if row["change"] is None else _between(row["change"]) for row in rows],
        },
        right=("n", "failed"),
    )
    if not math.isnan(failed_as):
        worst = plain(number(failed_as))
        put(
            f"means are of seeds that did not fail; in a change, a failed seed counts as {worst}, "
            "the worst score of all seeds here"
        )
    put("the change is against the run's settings; of `baseline with`, against the baseline")
    tested = sum(row["change"] is not None for row in rows)
    if tested > 1:
        put(
            f"note: with {tested} changes, about {tested * 0.05:.1f} intervals miss 0 by chance "
            "alone"
        )
    for note in (*skipped, *_study_notes(state)):
        put(f"note: {harmless(note)}")


def _study_notes(state: "State") -> list[str]:
    from runshelf.cli.sweep_tables import notes

    return [note for note in notes(state, "backflip") if "is the best of" not in note]


def _sensitivity(options: argparse.Namespace) -> Reported:
    from backflip.envs.arguments import parse_env_args
    from backflip.studies.sensitivity import one_at_a_time
    from backflip.training.build import spec_of

    entry = entry_of(options.algorithm)
    specs = [spec_of(env, parse_env_args(options.env_arg)) for env in options.env]
    if len(set(options.env)) < len(options.env):
        raise UsageError("an environment is named twice; name each once")
    settings, left_out = (_grid(options), []) if options.over else one_at_a_time(entry, specs)
    listed = tuple({"env": env, **one} for env in options.env for one in settings)
    command = training_command(options.algorithm, "{env}", list(settings[0]), passed_on(options))
    definition = _definition(options, command, listed, ())
    options.what = ["sensitivity", options.algorithm, *options.env, str(options.seeds)]
    name = usual_name("sensitivity", options.algorithm, options)
    state = run_open(options, definition, name)
    return _sensitivity_report(options, state, settings, left_out)


def _grid(options: argparse.Namespace) -> "list[dict[str, Any]]":
    from backflip.cli.sweeping import check_parameters
    from backflip.studies.sensitivity import grid_of
    from runshelf.sweeps.space import Range, parse_space

    space = parse_space(options.over)
    check_parameters(options.algorithm, space)
    choices: dict[str, Any] = {}
    for name, one in space.items():
        if isinstance(one, Range):
            if one.points is None:
                raise UsageError(f"--over `{name}` needs :points=N here; try {name}=1,2,3")
            choices[name] = one.values(one.points)
        else:
            choices[name] = one.options
    return grid_of(choices)


def _sensitivity_report(
    options: argparse.Namespace,
    state: "State",
    settings: "Sequence[Values]",
    left_out: "Sequence[str]",
) -> Reported:
    import numpy as np

    from backflip.studies.sensitivity import sensitivity
    from backflip.studies.sensitivity_picture import sensitivity_picture
    from runshelf.cli.sweep_tables import fields_of
    from runshelf.sweeps.space import as_text

    means = {one.configuration: math.nan if one.failed else one.mean for one in state.standings()}
    many = len(settings)
    scores = np.array(
        [[means.get(e * many + h, math.nan) for h in range(many)] for e in range(len(options.env))]
    )
    fields = fields_of(state, "backflip") | {"left_out": list(left_out)}
    if state.open or np.isnan(scores).all(axis=1).any():
        return Reported(
            fields, lambda: put("the study is not finished: start the same command again")
        )
    found = sensitivity(scores, settings)
    file = state.sweep.folder / _PICTURE
    title = f"{options.algorithm} on {', '.join(options.env)}"
    _write(file, sensitivity_picture(found, title))
    moved = [_moved(settings[0], one) for one in settings]
    rows = [
        {
            "env": env,
            "fixed": float(scores[e, found.setting]),
            "tuned": float(scores[e, found.best[e]]),
            "setting": moved[found.best[e]],
        }
        for e, env in enumerate(options.env)
    ]
    fields |= {
        "environments": rows,
        "sensitivity": found.phi,
        "tuned": found.tuned,
        "fixed": found.fixed,
        "fixed_setting": dict(settings[found.setting]),
        "dimensionality": found.dimensionality,
        "tune": list(found.names[found.dimensionality]),
        "by_count": list(found.by_count),
        "picture": str(file),
    }
    fixed = moved[found.setting] or as_text(settings[found.setting])
    return Reported(fields, lambda: _print_sensitivity(fields, fixed, _study_notes(state)))


def _print_sensitivity(fields: "Mapping[str, Any]", fixed: str, notes: "Sequence[str]") -> None:
    from runshelf.cli.tables import plain, print_table
    from runshelf.formatting import number, plural

    rows = fields["environments"]
    print_table(
        {
            "environment": [row["env"] for row in rows],
            "one fixed setting": [plain(number(row["fixed"])) for row in rows],
            "tuned": [plain(number(row["tuned"])) for row in rows],
            "best setting": [row["setting"] or "the defaults" for row in rows],
        },
        right=("one fixed setting", "tuned"),
    )
    put(
        f"sensitivity {fields['sensitivity']:.3f}: normalised score {fields['fixed']:.3f} with one "
        f"fixed setting ({fixed}), {fields['tuned']:.3f} tuned for each environment"
    )
    names = ", ".join(fields["tune"])
    put(
        f"{plural(fields['dimensionality'], 'hyper-parameter')} must be tuned for each environment "
        f"to reach 95 % of that{f': {names}' if names else ''}"
    )
    put(f"picture {fields['picture']}")
    if fields["left_out"]:
        put(f"note: not moved: {', '.join(fields['left_out'])}")
    if len(rows) == 1:
        put("note: with one environment, a fixed setting is a tuned one: name several")
    for note in notes:
        put(f"note: {harmless(note)}")


def _moved(base: "Values", one: "Values") -> str:
    from runshelf.sweeps.space import as_text

    return as_text({name: value for name, value in one.items() if value != base[name]})


def _definition(
    options: argparse.Namespace,
    command: "Sequence[str]",
    listed: "tuple[Values, ...]",
    words: tuple[str, ...],
) -> "Definition":
    from runshelf.sweeps.blocks import usual_block_seeds
    from runshelf.sweeps.definition import Definition
    from runshelf.sweeps.space import Choice

    names = list(listed[0])
    space = {n: Choice(tuple(dict.fromkeys(one[n] for one in listed))) for n in names}
    return Definition(
        command=tuple(command),
        cwd=str(Path.cwd()),
        home=str(home(options).absolute()),
        space=space,
        search="grid",
        configurations=len(listed),
        listed=listed,
        seeds=options.seeds,
        block_seeds=usual_block_seeds(command, options.seeds),
        fixed=words,
    )


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value).lower()


def _between(fields: "Mapping[str, Any]") -> str:
    from runshelf.cli.tables import plain
    from runshelf.formatting import number

    mean = plain(number(fields["mean"]))
    if math.isnan(fields["low"]):
        return mean
    return f"{mean} ({plain(number(fields['low']))} to {plain(number(fields['high']))})"


def _write(file: Path, text: str) -> None:
    from runshelf.store.writing import replace_file

    replace_file(file.parent, file.name, text.encode())
