"""Hostile values in received files: refused in a line, or counted, and the rest is kept."""

import contextlib
import json
import math
import os
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packages.runshelf.tests.attacks.commands import no_hang, problem_of
from packages.runshelf.tests.attacks.mutations import HOSTILE
from packages.runshelf.tests.web.runs import done
from tests.attack_figures import Tried

from runshelf.cli.main import main
from runshelf.errors import DamagedFile
from runshelf.interop.import_logs import import_path
from runshelf.received_json import DEEPEST, parse_json, parse_record
from runshelf.store.compacting import compact
from runshelf.store.metrics import MetricsWriter, read_metrics
from runshelf.store.packed import read_npz
from runshelf.store.run import NO_INFO, open_run
from runshelf.store.summary import summarise, write_summary

pytestmark = pytest.mark.attack


def depth(value: object) -> int:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth, items), default=0) if isinstance(value, dict | list) else 0


@pytest.mark.medium
@given(
    st.recursive(
        st.floats() | st.integers() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    )
)
def test_ordinary_json_is_parsed_as_usual(value: object) -> None:
    text = json.dumps(value)
    assert repr(parse_json(text)) == repr(json.loads(text))


@pytest.mark.medium
@given(st.binary() | st.text().map(lambda text: json.dumps([text])[:-1].encode()))
def test_any_bytes_are_a_value_or_an_error(data: bytes) -> None:
    for parse in (parse_json, parse_record):
        with contextlib.suppress(ValueError):
            parse(data)


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda text: text[:20])
def test_hostile_json_is_harmless(hostile: str, tried: Tried) -> None:
    try:
        value = parse_record(f'{{"x": {hostile}}}')
    except ValueError:
        return
    assert depth(value) <= DEEPEST
    json.dumps(value).encode()
    "".join(str(each) for each in value.values()).encode()
    if isinstance(value["x"], int):
        float(value["x"])
    tried(1, "hostile JSON values")


@pytest.mark.medium
@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda text: text[:20])
def test_a_hostile_line_spoils_no_other_line(tmp_path: Path, hostile: str, tried: Tried) -> None:
    lines = [f'{{"step": {n}, "loss": {n}}}' for n in range(40)]
    for at, key in ((3, "step"), (7, "loss"), (9, "time"), (11, "seed"), (13, "env_steps")):
        lines[at] = f'{{"step": {at}, "{key}": {hostile}, "other": 1}}'
    lines[20] = f'{{{json.dumps(hostile[:500])}: 1, "step": 1}}'
    (tmp_path / "metrics-log-1-a.jsonl").write_text("\n".join(lines) + "\n")
    with no_hang():
        read = read_metrics(tmp_path)
        assert len(read.records) + read.torn == 40
        assert sum(record.get("loss") == record.get("step") for record in read.records) >= 34
        assert summarise(tmp_path)["loss"].count >= 34
        compact(tmp_path)
        assert repr(read_metrics(tmp_path)) == repr(read)
    tried(6, "hostile values in lines of metrics")


@pytest.mark.medium
def test_60_000_keys_take_linear_time(tmp_path: Path, tried: Tried) -> None:
    keys = ", ".join(f'"k{n}": {n}' for n in range(60_000))
    (tmp_path / "metrics-log-1-a.jsonl").write_text(f"{{{keys}}}\n" * 2)
    with no_hang():
        assert len(read_metrics(tmp_path).records[0]) == 60_000
    tried(1, "lines of 60,000 keys")


LOGS: dict[str, Callable[[str], str]] = {
    "progress.csv": lambda cell: (
        f"time/total_timesteps,rollout/ep_rew_mean\n1,2\n{cell},3\n4,{cell}\n5,6\n"
    ),
    "monitor.csv": lambda cell: (
        f'#{{"t_start": {cell}, "env_id": {cell}}}\nr,l,t\n1,2,3\n'
        f"{cell},2,3\n1,{cell},3\n1,2,{cell}\n4,5,6\n"
    ),
}


@pytest.mark.medium
@pytest.mark.parametrize("name", LOGS)
def test_hostile_logs_are_imported_without_their_bad_lines(
    tmp_path: Path, name: str, tried: Tried
) -> None:
    values = [*HOSTILE, "nan", '"', "\0", "\ud800", "=1+1", ",,,,,,,"]
    for number, hostile in enumerate(values):
        folder = tmp_path / f"logs-{number}"
        folder.mkdir()
        text = LOGS[name](hostile).encode("utf-8", "surrogatepass")
        (folder / name).write_bytes(text)
        with no_hang():
            (one,) = import_path(
                tmp_path, folder, info=NO_INFO, argv=["x"], say=lambda line: None
            ).runs
            assert one.values >= 2, hostile
            summarise(one.folder)
    assert problem_of(main, "runs", "--home", str(tmp_path)) == ""
    tried(len(values), f"hostile values in {name}")


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[Path]:
    """A folder that is removed at the end however deep it is."""
    folder = tmp_path / "logs"
    folder.mkdir()
    yield folder
    subprocess.run(["rm", "-rf", str(folder)], check=True)


@pytest.mark.slow
def test_a_folder_3_000_deep_is_left_out_of_an_import(
    tmp_path: Path, logs: Path, tried: Tried
) -> None:
    (logs / "progress.csv").write_text("time/total_timesteps,x\n1,2\n")
    deep(logs, 3_000)
    said: list[str] = []
    with no_hang():
        found = import_path(tmp_path, logs, info=NO_INFO, argv=["x"], say=said.append)
    assert len(found.runs) == 1
    assert [line for line in said if "folders deep" in line]
    tried(1, "folders 3,000 deep")


def deep(folder: Path, levels: int) -> None:
    """Make folders inside each other, deeper than a path can be long."""
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=at)
        inner = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)


def claiming(path: Path, shape: str, about: str) -> None:
    """Write columns whose array claims a shape, with the content of none."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    text = header.ljust(118) + "\n"
    array = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()
    with zipfile.ZipFile(path, "w") as file:
        for name in ("loss", "@lines", "@lines@rows"):
            file.writestr(f"{name}.npy", array)
        with file.open("@about.npy", "w") as member:
            np.lib.format.write_array(member, np.array(about))


@pytest.mark.parametrize(
    "shape", ["(1000000000000,)", "(1000000, 1000000)", "(2305843009213693952, 8)"]
)
def test_columns_that_claim_memory_are_refused_first(
    tmp_path: Path, shape: str, tried: Tried
) -> None:
    covers = {"bytes": 0, "sha256": ""}
    claiming(tmp_path / "a.npz", shape, json.dumps({"format": 2, "records": 1, "covers": covers}))
    with pytest.raises(DamagedFile, match="another size"):
        read_npz(tmp_path / "a.npz")
    tried(1, "columns that claim memory")


@pytest.mark.parametrize("records", [10**12, -1, "1", None, 1e400, [1]])
def test_a_number_of_records_that_cannot_be_is_refused(
    tmp_path: Path, records: object, tried: Tried
) -> None:
    with MetricsWriter(tmp_path, "x") as writer:
        for n in range(40):
            writer.write({"step": n, "loss": n})
    compact(tmp_path)
    path = tmp_path / "metrics-x.npz"
    with np.load(path) as file:
        arrays = dict(file)
    about = json.loads(str(arrays.pop("@about"))) | {"records": records}
    np.savez_compressed(path, **arrays, **{"@about": np.array(json.dumps(about))})
    with pytest.raises(DamagedFile):
        read_metrics(tmp_path)
    tried(1, "columns that claim memory")


@pytest.mark.medium
@pytest.mark.parametrize("field", ["last", "min", "max", "mean", "n"])
def test_a_hostile_summary_is_computed_again(tmp_path: Path, field: str, tried: Tried) -> None:
    run = done(tmp_path, points=20, curves={"loss": lambda x: x})
    write_summary(run)
    true = summarise(run)
    text = (run / "summary.json").read_text()
    fields = json.loads(text)
    for hostile in HOSTILE:
        fields["metrics"]["loss"][field] = "MARK"
        (run / "summary.json").write_text(json.dumps(fields).replace('"MARK"', hostile))
        found = summarise(run)["loss"]
        values = (found.last, found.minimum, found.maximum, found.mean, found.count)
        assert all(isinstance(value, int | float) for value in values), hostile
        assert math.isfinite(found.count)
    assert true["loss"].count == 20
    tried(len(HOSTILE), "hostile values in a summary")


def test_a_deep_manifest_is_refused_in_a_line(tmp_path: Path, tried: Tried) -> None:
    run = done(tmp_path, points=5)
    fields = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(
        json.dumps(fields | {"config": "MARK"}).replace('"MARK"', '{"a": ' * 500 + "1" + "}" * 500)
    )
    with pytest.raises(DamagedFile, match="not JSON"):
        open_run(run)
    assert problem_of(main, "show", run.name, "--home", str(tmp_path)) == ""
    tried(1, "manifests nested 500 deep")
