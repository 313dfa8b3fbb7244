"""Every command, option, setting and metric has its place in docs/, and no other has."""

import dataclasses
import re
from pathlib import Path
from types import ModuleType

import pytest
from tests.modules import module_at

from backflip.algorithms.registry import algorithms, names
from backflip.cli.main import PROGRAM
from backflip.preferences.teachers import SimulatedTeacher
from backflip.training.teaching.config import TeachConfig
from backflip.training.teaching.defaults import (
    CONTINUOUS_TEACHING,
    CURIOUS,
    FREQUENT,
    GRID_TEACHING,
    JOINTS_TEACHING,
    LONG_TEACHING,
    PIXELS_TEACHING,
)
from runshelf.cli.command_line import build_parser

ROOT = Path(__file__).parents[2]
CLI = (ROOT / "docs" / "cli.md").read_text()
COMMANDS = build_parser(PROGRAM)[1]
ACTIONS = next(a for a in COMMANDS["labels"]._actions if isinstance(a.choices, dict)).choices

FINDING = {
    "runs": "runs [FILTER ...]",
    "show": "show RUN",
    "diff": "diff A B",
    "rm": "rm RUN ...",
    "restore": "restore [RUN ...]",
    "gc": "gc",
    "du": "du",
    "reindex": "reindex",
    "trust": "trust [RUN ...]",
    "note": "note [TEXT ...]",
    "now": "now",
    "digest": "digest",
    "hours": "hours [ACTION]",
    "premortem": "premortem [RUN]",
    "alerts": "alerts [RUN|LOGS ...]",
}


def section(page: str, heading: str) -> str:
    """The text under a heading of second degree."""
    parts = re.split(r"^## ", page, flags=re.MULTILINE)
    return next(part for part in parts if part.startswith(f"{heading}\n"))


def named_in_table(text: str) -> list[str]:
    """The names in backticks in the first column of tables."""
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("|")]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def options_of(command: str) -> set[str]:
    return {name for name in COMMANDS[command]._option_string_actions if name.startswith("--")}


def described(heading: str) -> set[str]:
    names = {name.split()[0] for name in named_in_table(section(CLI, heading))}
    return {name for name in names if name.startswith("-")}


def test_every_command_has_a_section() -> None:
    headings = re.findall(r"^## `backflip ([\w-]+)", CLI, flags=re.MULTILINE)
    assert headings == list(COMMANDS)
    assert set(re.findall(r"`backflip labels ([a-z]+) RUN FILE`", CLI)) == set(ACTIONS)


def test_every_option_is_described_and_exists() -> None:
    everywhere = described("Options of every command") - {"-h"}
    train = described("`backflip train ALGORITHM ENV`")
    page = described("The labelling page")
    alerts = described("Alerts of a run")
    about = described("Description of a run") | alerts
    assert options_of("resume") == everywhere | page | alerts
    assert options_of("train") == everywhere | about | train
    alike = train - {"--updates-per-step"}
    assert options_of("teach") == everywhere | about | alike | page | described(
        "`backflip teach ENV`"
    )
    assert options_of("serve") == everywhere | page | described("`backflip serve RUN`")
    for command, heading in {
        "look": "look ENV",
        "doctor": "doctor RUN|GROUP|LOGS ...",
        "probe": "probe ALGORITHM|MODULE:FACTORY",
        "lint": "lint FILE ...",
        "sweep": "sweep SWEEP -- CMD ...",
        "battery": "battery FOLDER",
        "ablate": "ablate RUN",
        "sensitivity": "sensitivity ALGORITHM ENV ...",
        "play": "play ENV",
        "watch": "watch RUN",
        "export-policy": "export-policy RUN FILE",
    }.items():
        assert options_of(command) == everywhere | described(f"`backflip {heading}`")
    run = described("`backflip run -- CMD ...`")
    assert options_of("run") == everywhere | run | alerts
    assert options_of("rerun") == everywhere | run | described("`backflip rerun RUN`")
    assert options_of("budget") == everywhere | described("`backflip budget`")
    assert options_of("import") == everywhere | described("`backflip import PATH`")
    assert options_of("export") == everywhere
    assert options_of("compare") == everywhere | described("`backflip compare GROUP ...`")
    assert options_of("register") == everywhere | described("`backflip register NAME`")
    for command, heading in FINDING.items():
        assert options_of(command) == everywhere | described(f"`backflip {heading}`")
    assert options_of("report") == everywhere | described("`backflip report RUN|GROUP ... FILE`")
    export = described("`backflip labels ACTION RUN FILE`")
    for name, action in ACTIONS.items():
        own = everywhere | export if name == "export" else everywhere
        assert {n for n in action._option_string_actions if n.startswith("--")} == own


@pytest.mark.parametrize("option", ["--seeds", "--seed", "--overlap", "--host"])
def test_defaults_are_those_described(option: str) -> None:
    default = COMMANDS["teach"]._option_string_actions[option].default
    row = next(line for line in CLI.splitlines() if line.startswith(f"| `{option} "))
    assert row.split("|")[2].strip(" `") == str(default)


def as_typed(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower()


def settings_tables() -> ModuleType:
    """The program that writes the tables of settings."""
    return module_at("docs/settings_tables.py")


@pytest.mark.parametrize("name", names())
def test_every_setting_of_an_algorithm_is_documented_in_its_dataclass(name: str) -> None:
    documented = settings_tables().documented(algorithms()[name].config)
    assert list(documented) == list(algorithms()[name].settings)
    assert all(documented.values())


def test_the_tables_of_settings_are_those_of_the_entries() -> None:
    for path, text in settings_tables().pages().items():
        assert path.read_text() == text, f"{path.name}: run python docs/settings_tables.py"


def test_the_catalogue_of_checks_is_that_of_the_code() -> None:
    module = module_at("docs/check_catalogue.py")
    assert module.PAGE.read_text() == module.page(), "run python docs/check_catalogue.py"


def test_the_rules_of_lint_are_those_of_the_registry() -> None:
    module = module_at("docs/lint_rules.py")
    assert module.PAGE.read_text() == module.page(), "run python docs/lint_rules.py"


def test_tables_of_settings_by_hand() -> None:
    page = settings_tables().pages()[ROOT / "docs" / "algorithms" / "ppo.md"]
    assert "\n| `gae_lambda` | `0.8` | 0 to 1 | λ of the advantage estimator |\n" in page
    assert "\n| `hidden` | `64,64` | whole numbers, or none | widths of" in page
    defaults = settings_tables().pages()[ROOT / "docs" / "algorithms" / "defaults.md"]
    assert "\n| [`dqn`](dqn.md) | `dot` | `network=patches` |\n" in defaults
    assert "\n| [`cem`](cem.md) | vectors, discrete actions | `env_steps=500000` |\n" in defaults


def test_every_setting_of_teaching_and_property_of_teachers_is_described() -> None:
    text = section(CLI, "`backflip teach ENV`")
    written = [name for name in named_in_table(text) if not name.startswith("-")]
    fields = [*dataclasses.fields(SimulatedTeacher), *dataclasses.fields(TeachConfig)]
    assert written == [field.name for field in fields]


KINDS_OF_TEACHING = {
    "continuous actions": CONTINUOUS_TEACHING,
    "several actuators": {
        name: value for name, value in JOINTS_TEACHING.items() if name not in CONTINUOUS_TEACHING
    },
    "long vectors": LONG_TEACHING,
    "images": PIXELS_TEACHING,
    "grids": {
        name: value for name, value in GRID_TEACHING.items() if value != PIXELS_TEACHING.get(name)
    },
    "images without PPO": FREQUENT,
    "off-policy algorithms and several actuators": CURIOUS,
}


def test_defaults_of_teaching_are_those_described() -> None:
    text = section(CLI, "`backflip teach ENV`")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    written = {row[0].strip("| `"): row[1] for row in rows}
    for field in [*dataclasses.fields(SimulatedTeacher), *dataclasses.fields(TeachConfig)]:
        of_kinds = [
            f"{kind} {settings[field.name]}"
            for kind, settings in KINDS_OF_TEACHING.items()
            if field.name in settings and field in dataclasses.fields(TeachConfig)
        ]
        assert written[field.name] == "; ".join([as_typed(field.default), *of_kinds])


def details() -> list[tuple[str, str]]:
    """Every numbered detail of every algorithm's page."""
    found: list[tuple[str, str]] = []
    for name in names():
        page = (ROOT / "docs" / "algorithms" / f"{name}.md").read_text()
        numbered = section(page, "Implementation details")
        found += [(name, item) for item in re.findall(r"^\d+\. .*$", numbered, re.MULTILINE)]
    return found


@pytest.mark.parametrize(("name", "item"), details(), ids=lambda text: text.split(".")[0])
def test_every_function_named_for_an_algorithm_exists(name: str, item: str) -> None:
    source = ROOT / "packages" / "backflip" / "src" / "backflip"
    spans = re.findall(r"`([^`]+)`", item)
    paths = [span.partition(": ")[0] for span in spans if "/" in span or ".py" in span]
    assert [path for path in paths if not (source / path).exists()] == []
    of_algorithm = [f"algorithms/{name}.py", f"algorithms/entries/{name}.py"]
    files = [source / path for path in [*paths, *of_algorithm] if path.endswith(".py")]
    code = "\n".join(path.read_text() for path in files)
    known = re.findall(r"^(?:def|class|    )\s*(\w+)", code, flags=re.MULTILINE)
    names = [span.rpartition(": ")[2] for span in spans if span not in paths]
    assert [name for name in names if name not in known] == []


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda p: p.name
)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target
