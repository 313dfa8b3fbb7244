"""The output of `runshelf show` (one run) and `runshelf diff` (two runs side by side)."""

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from runshelf.cli.tables import (
    moment_of,
    plain,
    print_table,
    result_text,
    size_of,
    value_of,
)
from runshelf.comparison.code import CodeDiff
from runshelf.comparison.metrics import MetricsDiff
from runshelf.comparison.runs import Change, Comparison
from runshelf.durations import duration
from runshelf.errors import UserFacingError
from runshelf.formatting import plural
from runshelf.index.entry import read_status
from runshelf.index.grouping import group_of_run
from runshelf.index.identity import IMPORT, source_of
from runshelf.received_json import list_of, mapping_of, parse_json
from runshelf.recorder.output_files import LIST
from runshelf.recorder.output_log import OUTPUT
from runshelf.recorder.output_reader import read_output, read_part
from runshelf.snapshot.code_snapshot import CODE, read_snapshot
from runshelf.store.metrics import BrokenLine, broken_lines
from runshelf.store.results import named_metric, read_result
from runshelf.store.run import Run
from runshelf.store.run_ids import short_id
from runshelf.store.summary import Summary, summarise
from runshelf.store.times import seconds_of
from runshelf.terminal_text import harmless, put

TAIL_LINES = 10
_TAIL_BYTES = 256 * 1024
_MOST_METRICS = 40
_MOST_FILES = 20
_MOST_CODE_LINES = 80
_LONGEST_CODE_LINE = 200  # characters
_MOST_CHANGES = 40
_LARGEST_LIST = 16 * 2**20
_MOST_BROKEN = 5
_MARGIN = 12


def about(run: Run) -> dict[str, Any]:
    """Return the JSON document of a run."""
    status = read_status(run)
    manifest = {name: value for name, value in run.manifest.items() if name != "ulid"}
    return {
        "run": run.ulid,
        **manifest,
        "folder": str(run.folder),
        "group": group_of_run(run),
        "state": status.state.name,
        "note": status.state.note,
        "since": status.state.since,
        "seconds": status.seconds,
        "cost": status.cost,
        "result": _result_fields(run),
        "events": run.events(),
        "metrics": {name: _fields(summary) for name, summary in summarise(run.folder).items()},
        "unreadable": [
            {"file": broken.path.name, "line": broken.line} for broken in broken_lines(run.folder)
        ],
        "outputs": _outputs(run.folder),
        "files": {path.name: path.lstat().st_size for path in _files(run.folder)},
        "output": [
            {"seconds": line.seconds, "stream": line.stream, "text": line.text}
            for line in _tail(run.folder)
        ],
    }


def print_run(run: Run) -> None:
    """Print a summary of a run, its question first."""
    for name, text in _facts(run):
        if text:
            put(f"{name:<{_MARGIN}}{text}")
    _print_output_tail(run.folder)
    _print_metrics(summarise(run.folder))
    _print_broken(broken_lines(run.folder))
    _print_outputs(_outputs(run.folder))
    files = [
        f"{harmless(path.name)} ({size_of(path.lstat().st_size)})" for path in _files(run.folder)
    ]
    put(f"\nfiles in {harmless(run.folder)}\n  {', '.join(files)}")


def print_output(run: Run) -> None:
    """Print the output of a run, its stderr on stderr."""
    for line in read_output(run.folder):
        stream = sys.stdout if line.stream.startswith("out") else sys.stderr
        put(harmless(line.text, tabs=True), file=stream, end="" if line.is_cut else "\n")


def print_code(run: Run) -> None:
    """Print the files of a run's snapshot and the files that were left out.

    Raises:
        UsageError: the run has no snapshot.
        DamagedFile: the list of files is damaged.
    """
    snapshot = read_snapshot(run.folder)
    for file in snapshot.files:
        target = f" -> {harmless(file.link)}" if file.link is not None else ""
        put(f"{size_of(file.bytes):>10}  {harmless(file.path)}{target}")
    for left in snapshot.left_out:
        size = size_of(left.bytes) if left.bytes is not None else ""
        put(f"{size:>10}  {harmless(left.path)} (left out: {harmless(left.why)})")


def print_packages(run: Run) -> None:
    """Print the packages of a run in the format of pip."""
    python = mapping_of(run.manifest.get("python"))
    packages = mapping_of(python.get("packages")) or mapping_of(run.manifest.get("versions"))
    for name, version in packages.items():
        put(f"{harmless(name)}=={harmless(version)}")


def comparison_fields(found: Comparison) -> dict[str, Any]:
    """Return the JSON document of a comparison."""
    fields = found._asdict()
    fields = {"run": fields.pop("one"), **fields}
    for name, value in fields.items():
        if isinstance(value, list):
            fields[name] = [change._asdict() for change in cast("list[Change]", value)]
    fields["code"] = found.code._asdict() | {"files": [f._asdict() for f in found.code.files]}
    metrics = [metric._asdict() for metric in found.metrics.metrics]
    fields["metrics"] = found.metrics._asdict() | {"metrics": metrics}
    return fields


def print_comparison(one: Run, other: Run, found: Comparison, *, all_code: bool) -> None:
    """Print the differences between two runs, configuration first."""
    for letter, run in (("A", one), ("B", other)):
        put(f"{letter} {run.short}  {harmless(run.manifest.get('name') or group_of_run(run))}")
    _print_changes("configuration", found.config)
    _print_changes("command", found.command)
    _print_code_diff(found.code, all_code=all_code)
    _print_changes("git", found.git)
    _print_changes("packages", found.packages)
    _print_changes("hardware", found.hardware)
    _print_metrics_diff(found.metrics)


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of the lines of `show`; lines with empty text are not shown."""
    manifest, status = run.manifest, read_status(run)
    state = status.state
    note = f" ({harmless(state.note)})" if state.note else ""
    took = f", {duration(status.seconds)}" if status.seconds is not None else ""
    since = seconds_of(state.since)
    yield "question", harmless(manifest.get("question") or "")
    yield "result", _result(run)
    yield "state", f"{state.name}{note}{took}" + (f", {moment_of(since)}" if since else "")
    yield "run", f"{run.short} ({run.ulid})"
    yield "name", harmless(manifest.get("name") or "")
    yield "group", harmless(group_of_run(run))
    yield "tags", ", ".join(map(harmless, list_of(manifest.get("tags"))))
    yield "parent", harmless(short_id(str(manifest.get("parent") or "")))
    yield "command", harmless(_command(manifest))
    yield "in", harmless(manifest.get("cwd") or "")
    yield "source", harmless(source_of(manifest) or "")
    yield "env", harmless(manifest.get("env") or "")
    yield "algorithm", harmless(manifest.get("algorithm") or "")
    yield "seeds", value_of(run.manifest["seeds"])
    yield "config", harmless(json.dumps(manifest["config"], ensure_ascii=False))[:2000]
    yield "cost", "" if status.cost is None else f"{status.cost:.2f}"
    yield "git", _git(mapping_of(manifest.get("git")))
    if manifest["command"] == IMPORT:
        unknown = "unknown: imported logs do not record it"
        yield from ((name, unknown) for name in ("code", "packages", "hardware"))
        return
    yield "code", _code(run)
    python, versions = (mapping_of(manifest.get(name)) for name in ("python", "versions"))
    yield "python", _python(python, versions)
    yield "hardware", _hardware(mapping_of(manifest.get("hardware")))
    yield "masked", ", ".join(map(harmless, list_of(manifest.get("masked"))))


def _result(run: Run) -> str:
    """Return the result; of several seeds the mean with its interval and the lowest value."""
    found = read_result(run.folder, named_metric(run.folder.parent.parent))
    if found is None:
        return ""
    spread = f", {plain(found.spread)}" if found.spread else ""
    value = result_text(found.result)
    return harmless(f"{found.result.metric} {value}{spread}")


def _result_fields(run: Run) -> dict[str, Any] | None:
    found = read_result(run.folder, named_metric(run.folder.parent.parent))
    if found is None:
        return None
    low, high = found.interval or (None, None)
    return asdict(found.result) | {"low_95": low, "high_95": high}


def _command(manifest: Mapping[str, Any]) -> str:
    return shlex.join(str(word) for word in list_of(manifest.get("argv")))


def _git(git: Mapping[str, Any]) -> str:
    if not git:
        return ""
    branch = f" on {git['branch']}" if git.get("branch") else ""
    unknown = ", perhaps with uncommitted changes" if git.get("dirty", False) is None else ""
    dirty = ", with uncommitted changes" if git.get("dirty") else unknown
    remote = f", {git['remote']}" if git.get("remote") else ""
    return harmless(f"{str(git.get('commit'))[:12]}{branch}{dirty}{remote}")


def _code(run: Run) -> str:
    if not (run.folder / CODE).exists():
        return ""
    try:
        snapshot = read_snapshot(run.folder)
    except UserFacingError as error:
        return harmless(error)
    size = size_of(sum(file.bytes for file in snapshot.files))
    left = f", {len(snapshot.left_out)} left out" if snapshot.left_out else ""
    return f"{plural(len(snapshot.files), 'file')}, {size}{left}; show --code lists them"


def _python(python: Mapping[str, Any], versions: Mapping[str, Any]) -> str:
    if not python:
        return harmless(versions.get("python") or "")
    packages = mapping_of(python.get("packages"))
    installed = plural(len(packages), "package")
    return harmless(f"{python.get('version')}, {installed}; show --packages lists them")


def _hardware(hardware: Mapping[str, Any]) -> str:
    memory = hardware.get("memory_bytes")
    parts = [
        str(hardware.get("cpu") or ""),
        _cores(hardware.get("cores")),
        size_of(memory) if isinstance(memory, int) else "",
        *(str(mapping_of(gpu).get("name") or "") for gpu in list_of(hardware.get("gpus"))),
        str(hardware.get("host") or ""),
    ]
    return harmless(", ".join(part for part in parts if part))


def _cores(cores: object) -> str:
    return plural(cores, "core") if isinstance(cores, int) and cores else ""


def _print_output_tail(folder: Path) -> None:
    lines = _tail(folder)
    if lines:
        put(f"\nlast lines of its output ({OUTPUT}; show --output prints all)")
    for line in lines:
        put(f"  {line.seconds:>9.1f} s  {harmless(line.text, tabs=True)[:500]}")


def _tail(folder: Path) -> list[Any]:
    """Return the last lines of a run's output."""
    _, size = read_part(folder, 0, 0)
    return read_output(folder, max(size - _TAIL_BYTES, 0))[-TAIL_LINES:]


def _print_metrics(metrics: Mapping[str, Summary]) -> None:
    if not metrics:
        return
    names = sorted(metrics)[:_MOST_METRICS]
    rows = [_fields(metrics[name]) for name in names]
    numeric = {key: [_measured(row, key) for row in rows] for key in rows[0]}
    put()
    print_table({"metric": names} | numeric, right=list(numeric))
    _print_rest(len(metrics) - len(names))


def _measured(row: Mapping[str, float], key: str) -> object:
    return row[key] if row["n"] or key == "n" else "-"


def _print_rest(count: int, where: str = "--json has all") -> None:
    if count > 0:
        put(f"and {count} more; {where}")


def _print_broken(broken: Sequence[BrokenLine]) -> None:
    for one in broken[:_MOST_BROKEN]:
        kind = "metric record" if one.path.name.startswith("metrics-") else "record"
        put(f"skipped: line {one.line} of {harmless(one.path.name)} is not a {kind}")
    if len(broken) > _MOST_BROKEN:
        more = plural(len(broken) - _MOST_BROKEN, "more such line")
        put(f"skipped: {more}; --json lists all")


def _print_outputs(outputs: Sequence[Mapping[str, Any]]) -> None:
    if outputs:
        put(f"\n{plural(len(outputs), 'file')} in outputs/")
    for output in outputs[:_MOST_FILES]:
        size = output.get("bytes")
        shown = size_of(size) if isinstance(size, int) else ""
        sha256 = harmless(output.get("sha256") or "")[:12]
        put(f"{shown:>10}  {sha256}  {harmless(output.get('path'))}")
    _print_rest(len(outputs) - _MOST_FILES, f"{LIST} lists all")


def _outputs(folder: Path) -> list[dict[str, Any]]:
    path = folder / LIST
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _LARGEST_LIST:
            return []
        return [dict(mapping_of(entry)) for entry in list_of(parse_json(path.read_bytes()))]
    except (OSError, ValueError):
        return []


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.is_dir())


def _print_changes(title: str, changes: Sequence[Change]) -> None:
    if not changes:
        put(f"\n{title}: the same")
        return
    put(f"\n{title}")
    shown = changes[:_MOST_CHANGES]
    columns: dict[str, Sequence[object]] = {
        "": [change.key for change in shown],
        "A": [_cell(change.one) for change in shown],
        "B": [_cell(change.other) for change in shown],
    }
    print_table(columns, beside=("A", "B"))
    _print_rest(len(changes) - len(shown))


def _cell(value: object) -> str:
    """Return one side of a change, exactly: values may differ in the last digit only."""
    if value is None:
        return "-"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _print_code_diff(code: CodeDiff, *, all_code: bool) -> None:
    if code.note:
        put(f"\ncode: cannot be compared: {harmless(code.note)}")
        return
    if not code.files:
        put(f"\ncode: the same, {plural(code.same, 'file')}")
        return
    differ = "differs" if len(code.files) == 1 else "differ"
    put(f"\ncode: {plural(len(code.files), 'file')} {differ}, {code.same} the same")
    lines: list[str] = []
    for file in code.files:
        if file.note:
            lines.append(f"{file.change}: {harmless(file.path)}: {harmless(file.note)}")
        lines += [harmless(line, tabs=True) for line in file.lines]
    shown = lines if all_code else [_cut(line) for line in lines[:_MOST_CODE_LINES]]
    put("\n".join(f"  {line}" for line in shown))
    _print_rest(len(lines) - len(shown), "--code shows all lines")


def _cut(line: str) -> str:
    """Return a line of code without the end of a very long one, as data have them."""
    rest = len(line) - _LONGEST_CODE_LINE
    return line if rest <= 0 else f"{line[:_LONGEST_CODE_LINE]}… and {rest:,} characters"


def _print_metrics_diff(metrics: MetricsDiff) -> None:
    for which, names in zip("AB", metrics.only, strict=True):
        if names:
            put(f"\nmetrics of {which} only: {harmless(', '.join(names[:10]))}", end="")
            put(f" and {len(names) - 10} more" if len(names) > 10 else "")
    if not metrics.metrics:
        put("\nmetrics: none in common")
        return
    put(f"\nmetrics: {_identical(metrics)}")
    differing = [m for m in metrics.metrics if m.differs or m.counts[0] != m.counts[1]]
    shown = differing[:_MOST_METRICS]
    if shown:
        columns: dict[str, Sequence[object]] = {
            "": [metric.name for metric in shown],
            "same until": [_step(metric.identical_until) for metric in shown],
            "A last": [metric.last[0] for metric in shown],
            "B last": [metric.last[1] for metric in shown],
            "A mean": [metric.mean[0] for metric in shown],
            "B mean": [metric.mean[1] for metric in shown],
            "A n": [metric.counts[0] for metric in shown],
            "B n": [metric.counts[1] for metric in shown],
        }
        print_table(columns, right=list(columns)[1:])
    _print_rest(len(differing) - len(shown))
    if metrics.of_machine:
        put(f"  not compared: {metrics.of_machine} metrics of the machine and of speed")


def _identical(metrics: MetricsDiff) -> str:
    """Return a text with the last step at which the metrics of two runs were identical."""
    if metrics.never_differed:
        return f"identical at all steps, up to step {_step(metrics.identical_until)}"
    if metrics.identical_until is None:
        return "they differ from the start"
    others = len(metrics.from_the_start)
    but = f", but for {others} that differ from the start" if others else ""
    return f"identical up to step {_step(metrics.identical_until)}{but}"


def _step(step: float | None) -> str:
    return "-" if step is None else f"{step:,.0f}" if step == int(step) else f"{step:g}"


def _fields(summary: Summary) -> dict[str, float]:
    return {
        "last": summary.last,
        "min": summary.minimum,
        "max": summary.maximum,
        "mean": summary.mean,
        "n": summary.count,
    }
