"""`sweep.json`: what a sweep runs. It is written once, when the sweep is made."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, final

from runshelf.errors import DamagedFile, UsageError
from runshelf.received_json import parse_json
from runshelf.store.opening import read_whole
from runshelf.store.paths import is_folder
from runshelf.store.run_ids import new_ulid
from runshelf.sweeps.searches import Search, search_named
from runshelf.sweeps.space import Parameter, Space, Values, from_fields, to_fields
from runshelf.sweeps.template import check_template, takes_many_seeds

SWEEP = "sweep.json"
SCHEMA = 1
TUNING_SEED, REPORT_SEED = 1_000_000, 0  # where the two ranges of seeds begin
MOST_SEEDS = 1_000_000  # seeds of a range
MOST_BLOCK_SEEDS = 50


@final
@dataclass(frozen=True)
class Definition:
    """What a sweep runs.

    Attributes:
        command: the command template.
        cwd: the folder in which commands run.
        home: the folder whose `runs/` gets the runs.
        space: the parameters that are searched over.
        search: how configurations are chosen, one of `SEARCHES`.
        configurations: their number.
        listed: the configurations, if they are written down; else None.
        search_seed: of the search.
        seeds: the seeds of each configuration in tuning; 0 for a command that is only reported, as
            a row of a battery, which may name its seeds itself.
        block_seeds: the most seeds of one block.
        tuning_seed: the first seed of tuning; the range has `MOST_SEEDS` seeds.
        report_seed: the first seed of the report.
        metric: the metric that ranks configurations; None for the result of a run.
        minimise: whether smaller is better; None for losses and errors only.
        halving: η: after each round only the best 1/η of the configurations get more seeds; 0 for
            no early stopping.
        budget_seconds: no block is started after the blocks took so many seconds together.
        cost_per_hour: of one block at a time.
        fixed: words that describe each configuration of a list; empty otherwise.
    """

    command: tuple[str, ...]
    cwd: str
    home: str
    space: Space
    search: str
    configurations: int
    listed: tuple[Values, ...] | None = None
    search_seed: int = 0
    seeds: int = 5
    block_seeds: int = 1
    tuning_seed: int = TUNING_SEED
    report_seed: int = REPORT_SEED
    metric: str | None = None
    minimise: bool | None = None
    halving: int = 0
    budget_seconds: float | None = None
    cost_per_hour: float | None = None
    fixed: tuple[str, ...] = ()

    def searcher(self) -> Search:
        """Return the search that chooses the configurations."""
        return search_named(self.search, self.space, self.search_seed, self.listed)


@final
@dataclass(frozen=True)
class Sweep:
    """A sweep on disk.

    Attributes:
        folder: its folder.
        ulid: its id.
        name: the name of its folder.
        definition: what it runs.
        chosen: configurations by number that a search which learns has chosen so far.
    """

    folder: Path
    ulid: str
    name: str
    definition: Definition
    chosen: dict[int, Values] = field(default_factory=dict[int, Values], compare=False)


def check_definition(definition: Definition) -> None:
    """Check that a definition can run.

    Raises:
        UsageError: it cannot; the message says what to type instead.
    """
    check_template(definition.command, definition.space, names_seeds=not definition.seeds)
    found = definition.searcher().configurations(definition.configurations)
    if found != definition.configurations:
        raise UsageError(f"{definition.configurations} configurations were named, {found} found")
    one_by_one = definition.seeds and not takes_many_seeds(definition.command)
    if definition.block_seeds > 1 and one_by_one:
        raise UsageError(
            "--block-seeds is for commands with `{first_seed}` and `{seeds}`; this one runs one "
            "seed in each process"
        )
    apart = abs(definition.tuning_seed - definition.report_seed)
    if apart < MOST_SEEDS:
        raise UsageError(
            f"the seeds of tuning begin at {definition.tuning_seed} and those of the report at "
            f"{definition.report_seed}: they must be at least {MOST_SEEDS:,} apart, so that no "
            "seed is used for both"
        )
    if definition.halving and definition.searcher().learns:
        raise UsageError(
            "--halving compares all configurations in rounds, and Optuna's samplers choose one "
            "after the other; use --search sobol or random with it"
        )
    if definition.halving and definition.configurations < 2:
        raise UsageError("--halving needs at least 2 configurations; add --samples 16")


def to_json(definition: Definition) -> dict[str, Any]:
    """Return a definition as JSON values."""
    fields = asdict(definition)
    return fields | {"space": {name: to_fields(one) for name, one in definition.space.items()}}


def from_json(fields: Mapping[str, Any]) -> Definition:
    """Return the definition in JSON values.

    Raises:
        KeyError, TypeError, ValueError, UsageError: the values are invalid.
    """
    space: dict[str, Parameter] = {
        name: from_fields(name, one) for name, one in fields["space"].items()
    }
    listed = fields.get("listed")
    known: dict[str, Any] = dict(fields) | {
        "space": space,
        "command": tuple(map(str, fields["command"])),
        "listed": None if listed is None else tuple(listed),
        "fixed": tuple(fields.get("fixed", ())),
    }
    return Definition(**known)


def text_of(definition: Definition) -> bytes:
    """Return the content of a new `sweep.json`."""
    about = {"schema": SCHEMA, "sweep": new_ulid(), "definition": to_json(definition)}
    return json.dumps(about, indent=1, allow_nan=False).encode() + b"\n"


def read_sweep(folder: Path) -> Sweep:
    """Return the sweep in `folder`.

    Raises:
        UsageError: the folder holds no sweep.
        DamagedFile: its `sweep.json` is damaged, or of another version.
    """
    folder = folder.resolve()
    data = read_whole(folder, SWEEP) if is_folder(folder) else None
    if data is None:
        raise UsageError(f"there is no sweep in `{folder}`: it has no `{SWEEP}`")
    try:
        fields = parse_json(data)
        if fields["schema"] != SCHEMA:
            raise DamagedFile(
                f"`{folder / SWEEP}` has schema {fields['schema']!s:.20}, this runshelf reads "
                f"{SCHEMA}: use the version that wrote it"
            )
        definition = from_json(fields["definition"])
        check_definition(definition)
        return Sweep(folder, str(fields["sweep"]), folder.name, definition)
    except (KeyError, TypeError, ValueError, AttributeError, UsageError) as error:
        raise DamagedFile(
            f"`{folder / SWEEP}` is damaged ({error!s:.200}): restore it from a copy"
        ) from error
