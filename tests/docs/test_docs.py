"""Every command, option, setting and metric has its place in docs/, and no other has."""

import dataclasses
import re
from pathlib import Path

import pytest

from backflip.cli.main import _parser  # pyright: ignore[reportPrivateUsage]
from backflip.preferences.teachers import SimulatedTeacher
from backflip.training import defaults
from backflip.training.offers import ALGORITHMS
from backflip.training.teach_settings import CONTINUOUS_TEACHING, PIXELS_TEACHING, TeachConfig

ROOT = Path(__file__).parents[2]
CLI = (ROOT / "docs" / "cli.md").read_text()
COMMANDS = _parser()[1]
ACTIONS = next(a for a in COMMANDS["labels"]._actions if isinstance(a.choices, dict)).choices

FINDING = {
    **{"runs": "runs [FILTER ...]", "show": "show RUN", "diff": "diff A B", "rm": "rm RUN ..."},
    **{"restore": "restore [RUN ...]", "gc": "gc", "du": "du", "reindex": "reindex"},
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
    headings = re.findall(r"^## `backflip (\w+)", CLI, flags=re.MULTILINE)
    assert headings == list(COMMANDS)
    assert set(re.findall(r"`backflip labels ([a-z]+) RUN FILE`", CLI)) == set(ACTIONS)


def test_every_option_is_described_and_exists() -> None:
    everywhere = described("Options of every command") - {"-h"}
    train = described("`backflip train ALGORITHM ENV`")
    page = described("The labelling page")
    about = described("What a run is about")
    assert options_of("resume") == everywhere | page
    assert options_of("train") == everywhere | about | train
    alike = train - {"--updates-per-step"}
    assert options_of("teach") == everywhere | about | alike | page | described(
        "`backflip teach ENV`"
    )
    assert options_of("serve") == everywhere | page | described("`backflip serve RUN`")
    for command, heading in {"look": "look ENV", "play": "play ENV", "watch": "watch RUN"}.items():
        assert options_of(command) == everywhere | described(f"`backflip {heading}`")
    run = described("`backflip run -- CMD ...`")
    assert options_of("run") == everywhere | run
    assert options_of("rerun") == everywhere | run | described("`backflip rerun RUN`")
    assert options_of("budget") == everywhere | described("`backflip budget`")
    assert options_of("import") == everywhere | described("`backflip import PATH`")
    assert options_of("export") == everywhere
    for command, heading in FINDING.items():
        assert options_of(command) == everywhere | described(f"`backflip {heading}`")
    assert options_of("report") == everywhere | described("`backflip report RUN|GROUP ... FILE`")
    for action in ACTIONS.values():
        assert {n for n in action._option_string_actions if n.startswith("--")} == everywhere


@pytest.mark.parametrize("option", ["--seeds", "--seed", "--overlap", "--host"])
def test_defaults_are_those_described(option: str) -> None:
    default = COMMANDS["teach"]._option_string_actions[option].default
    row = next(line for line in CLI.splitlines() if line.startswith(f"| `{option} "))
    assert row.split("|")[2].strip(" `") == str(default)


def as_typed(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_setting_of_an_algorithm_is_described_with_its_default(name: str) -> None:
    page = (ROOT / "docs" / "algorithms" / f"{name}.md").read_text()
    rows = [line.split("|") for line in section(page, "Settings").splitlines() if "| `" in line[:3]]
    written = {row[1].strip(" `"): row[2].strip(" `") for row in rows}
    fields = dataclasses.fields(ALGORITHMS[name].config)
    assert written == {field.name: as_typed(field.default) for field in fields}


def test_every_setting_of_teaching_and_property_of_teachers_is_described() -> None:
    text = section(CLI, "`backflip teach ENV`")
    written = [name for name in named_in_table(text) if not name.startswith("-")]
    fields = [*dataclasses.fields(SimulatedTeacher), *dataclasses.fields(TeachConfig)]
    assert written == [field.name for field in fields]


KINDS_OF_TEACHING = {"continuous actions": CONTINUOUS_TEACHING, "pictures": PIXELS_TEACHING}


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


KINDS = {
    "discrete": "vectors, discrete actions",
    "continuous": "vectors, continuous actions",
    "pixels": "pictures",
    "grid": "grids of cells",
}


def test_what_train_sets_by_itself_is_on_its_page() -> None:
    page = (ROOT / "docs" / "algorithms" / "defaults.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| [")]
    written = {
        (re.findall(r"`(\w+)`", who)[0], where.strip("`")): set(re.findall(r"`([^`]+)`", settings))
        for who, where, settings in rows
    }
    of_kinds = {
        (name, KINDS[kind]): settings
        for name, kinds in defaults.ALGORITHMS.items()
        for kind, settings in kinds.items()
    }
    assert written == {
        key: {f"{name}={as_typed(value)}" for name, value in settings.items()}
        for key, settings in (of_kinds | defaults.OF_ONE).items()
    }


def details() -> list[tuple[str, str]]:
    """Every numbered detail of every algorithm's page."""
    found: list[tuple[str, str]] = []
    for name in ALGORITHMS:
        page = (ROOT / "docs" / "algorithms" / f"{name}.md").read_text()
        numbered = section(page, "Implementation details")
        found += [(name, item) for item in re.findall(r"^\d+\. .*$", numbered, re.MULTILINE)]
    return found


@pytest.mark.parametrize(("name", "item"), details(), ids=lambda text: text.split(".")[0])
def test_every_function_named_for_an_algorithm_exists(name: str, item: str) -> None:
    source = ROOT / "src" / "backflip"
    spans = re.findall(r"`([^`]+)`", item)
    paths = [span.partition(": ")[0] for span in spans if "/" in span or ".py" in span]
    assert [path for path in paths if not (source / path).exists()] == []
    files = [source / path for path in [*paths, f"algorithms/{name}.py"] if path.endswith(".py")]
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
