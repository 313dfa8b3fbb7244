"""Pages of a real server: contents, attacks, live updates.

The numbers in test names refer to the attack list in docs/pages.md.
"""

import csv
import io
import json
import math
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from packages.runshelf.tests.web.pages import (
    COMMAND,
    listening,
    page,
    quoted,
    serving,
    start,
    stream_of,
    until,
)
from packages.runshelf.tests.web.runs import begin, done, finish, log, print_to
from PIL import Image
from tests.attack_figures import Tried
from tests.server_client import Server

from runshelf.cli.main import main
from runshelf.snapshot.code_snapshot import Limits, take_snapshot, write_snapshot
from runshelf.store.home import shared
from runshelf.store.metrics import MetricsWriter
from runshelf.store.run import RunWriter
from runshelf.store.run_ids import short_id
from runshelf.web.app import Pages
from runshelf.web.reader import Reader
from runshelf.web.subjects import MOST_RUNS

pytestmark = pytest.mark.medium

LOSS = {"curves": {"loss": lambda x: 1 - x}}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with two groups of seeds and a failed run without metrics."""
    home = tmp_path_factory.mktemp("home")
    for seed in range(5):
        done(
            home, seed, group="slow", question="is slow enough?", config={"lr": 1e-4, "seed": seed}
        )
    for seed in range(2):
        done(home, seed, group="fast", config={"lr": 1e-2, "seed": seed}, name=f"fast {seed}")
    failed = begin(home, seed=None, env=None, command="run", argv=["python", "x.py"], config={})
    print_to(failed.folder, [("out", "hello"), ("err", "\x1b[31mOops\x1b[0m <b>")])
    finish(failed, "failed", exit_status=3)
    return home


@pytest.fixture(scope="module")
def server(home: Path) -> Generator[Server, None, None]:
    with serving(home) as server:
        yield server


def folder_of(home: Path, name: str) -> Path:
    """Return the folder of the run with this name."""
    found = (p.parent for p in home.glob("runs/*/run.json"))
    return next(f for f in found if json.loads((f / "run.json").read_text()).get("name") == name)


def failed_of(home: Path) -> Path:
    found = (p.parent for p in home.glob("runs/*/run.json"))
    return next(f for f in found if json.loads((f / "run.json").read_text())["command"] == "run")


# --- contents ------------------------------------------------------------------------------


@pytest.mark.slow
def test_home_without_running_runs_shows_recent_groups(server: Server) -> None:
    text = page(server, "/")
    assert "Nothing is running." in text
    assert "is slow enough?" in text
    assert text.index(">fast<") > 0


@pytest.mark.slow
def test_an_empty_home_shows_commands_to_start(tmp_path: Path) -> None:
    with serving(tmp_path) as empty:
        text = page(empty, "/")
    assert "There are no runs here yet." in text
    assert "runshelf run" in text


def test_the_address_determines_filter_order_and_columns(server: Server) -> None:
    text = page(server, "/", show="runs", filter="lr<1e-3", sort="lr", column="config.lr")
    assert text.count("<tr data-kind") == 5
    assert text.count("0.0001") == 5
    assert (
        '<input class="filter" id="filter" type="search" name="filter" value="lr&lt;1e-3"' in text
    )
    assert "aria-sort" not in text or "ascending" in text


def test_the_default_table_shows_groups(server: Server) -> None:
    text = page(server, "/")
    rows = re.findall(r'<tr data-kind="group" data-key="([^"]+)"', text)
    assert set(rows) >= {"slow", "fast"}
    assert "5 finished" in text


@pytest.mark.parametrize(
    ("filter", "words"),
    [
        ("lr<", "no value"),
        ("nosuchkey=1", "nosuchkey"),
        ('"open', ""),
        ("=1", "no key"),
        ("lrr=1", "lr"),
    ],
)
def test_an_invalid_filter_has_an_error_message(server: Server, filter: str, words: str) -> None:
    text = page(server, "/", filter=filter)
    error = re.search(r'id="filter-error"[^>]*>([^<]*)<', text)
    assert error
    assert error[1]
    assert words in error[1]


def test_a_group_shows_mean_interval_and_seeds(server: Server) -> None:
    text = page(server, "/group", name="slow")
    assert "5 of 5" in text
    assert "band: 95 % interval (Student t)" in text
    assert "n = 5" in text
    assert "5 seeds: differences may be chance" in text
    assert 'class="seed" d="M' in text


def test_two_seeds_have_a_red_badge(server: Server) -> None:
    assert "2 seeds: too few for a conclusion" in page(server, "/group", name="fast")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (
            {"centre": "iqm"},
            "interquartile mean over seeds, band: 95 % interval (percentile bootstrap",
        ),
        ({"smooth": "10"}, "moving mean over 10 % of the axis, thin line without it"),
        ({"x": "seconds"}, "wall-clock since the run began"),
        ({"x": "updates"}, '<text class="unit" x="100%" y="100%" dy="29">updates'),
        ({"from": "10000", "to": "20000"}, "Zoomed in on 10 k to 20 k."),
        ({"log": "1"}, 'name="log" value="1" checked'),
        ({"find": "no such"}, "No metric has <code>no such</code>"),
    ],
)
def test_the_address_determines_how_curves_are_drawn(
    server: Server, query: dict[str, str], words: str
) -> None:
    assert words in page(server, "/group", name="slow", **query)


def test_the_interval_in_the_table_is_students_t(server: Server, home: Path) -> None:
    """Compared with a computation from the files: t(4) is 2.776."""
    last = []
    for path in home.glob("runs/*/run.json"):
        if json.loads(path.read_text()).get("group") == "slow":
            lines = (path.parent / "metrics-train.jsonl").read_text().splitlines()
            last.append([json.loads(line)["episode_return_mean"] for line in lines])
    # 200 records fall into 160 buckets of the chart; the table has the last value itself.
    ends = [values[-1] for values in last]
    half = 2.776 * np.std(ends, ddof=1) / 5**0.5
    text = page(server, "/group", name="slow")
    shown = re.search(r"(\d[\d.]*) to (\d[\d.]*)</td>", text)
    assert shown
    assert float(shown[1]) == pytest.approx(np.mean(ends) - half, abs=0.6)
    assert float(shown[2]) == pytest.approx(np.mean(ends) + half, abs=0.6)


def test_a_failed_run_shows_exit_status_and_output(server: Server, home: Path) -> None:
    path = f"/runs/{failed_of(home).name}"
    text = page(server, path)
    assert "exit status 3" in text
    assert "python x.py" in text
    assert "Oops &lt;b&gt;" in text
    text = page(server, f"{path}/output")
    assert re.search(r'class="o-err">.*Oops &lt;b&gt;', text)
    assert "hello" in text


def test_every_tab_of_every_run_opens(server: Server, home: Path) -> None:
    folders = list(home.glob("runs/0*"))
    assert len(folders) > 3
    for folder in folders:
        for tab in ("", "/code", "/output", "/files", "/environment"):
            page(server, f"/runs/{folder.name}{tab}")


def test_comparison_shows_differences_first(server: Server) -> None:
    text = page(server, "/compare?group=slow&group=fast")
    differing = text.index("differs"), text.index("settings are the same")
    assert differing[0] < text.index("config") if "config" in text else True
    assert re.search(r'class="differs"><th scope="row">lr</th><td>0.0001</td><td>0.01</td>', text)
    assert differing[0] < differing[1]


@pytest.mark.slow
def test_comparison_names_the_last_identical_step(tmp_path: Path) -> None:
    for seed, change in ((0, 1000), (0, 70)):
        writer = begin(tmp_path, seed=seed)
        log(writer, 100, loss=lambda x, c=change: x if x * 99 < c else -1.0)
        finish(writer)
    runs = sorted(p.name for p in tmp_path.glob("runs/0*"))
    with serving(tmp_path) as server:
        text = page(server, f"/compare?run={runs[0]}&run={runs[1]}")
    assert f"up to step {70 * 256}, then loss differs" in text


def test_runs_of_one_name_have_their_ids_in_a_comparison(tmp_path: Path) -> None:
    runs = [done(tmp_path, points=2, name="base", config={"lr": lr}).name for lr in (0.1, 0.2)]
    with serving(tmp_path) as server:
        text = page(server, f"/compare?run={runs[0]}&run={runs[1]}")
        alone = page(server, f"/runs/{runs[0]}")
    for run in runs:
        assert f"base ({short_id(run)})" in text
        assert f"base ({short_id(run)})" not in alone


@pytest.mark.slow
def test_comparison_shows_enough_digits_to_distinguish_values(tmp_path: Path) -> None:
    runs = [done(tmp_path, points=2, config={"lr": lr, "b": 2.0}).name for lr in (0.1, 0.1 + 1e-9)]
    with serving(tmp_path) as server:
        text = page(server, f"/compare?run={runs[0]}&run={runs[1]}")
    assert "<td>0.1</td><td>0.100000001</td>" in text


@pytest.mark.slow
def test_runs_that_are_not_drawn_are_counted_on_every_page(tmp_path: Path) -> None:
    for n in range(MOST_RUNS + 1):
        done(tmp_path, n, points=2, group="many")
    done(tmp_path, points=2, group="few")
    note = f"many: only the newest {MOST_RUNS} of {MOST_RUNS + 1} runs are drawn"
    with serving(tmp_path) as server:
        group = page(server, "/group", name="many")
        assert f"{MOST_RUNS + 1} runs, the newest {MOST_RUNS} are shown" in group
        both = page(server, "/compare?group=many&group=few")
        assert "many: only the settings of its newest 20 runs are compared" in both
        chart = page(server, "/chart?metric=episode_return_mean&group=many")
        for text in (group, both, chart, page(server, "/report?group=many")):
            assert note in text
        assert "the newest" not in page(server, "/group", name="few")


@pytest.mark.slow
def test_pages_show_how_much_they_leave_out(tmp_path: Path) -> None:
    """Tags, settings, keys of pictures, repetitions of a run."""
    writer = begin(
        tmp_path, tags=tuple(f"t{n}" for n in range(23)), config={f"k{n}": n for n in range(1_100)}
    )
    path = picture_in(writer)
    with MetricsWriter(writer.folder, "train") as file:
        for n in range(30):
            file.write({"env_steps": n, "seed": 0, f"view{n}": {"image": path}})
    ulid = finish(writer).name
    for n in range(22):
        done(tmp_path, n, points=2, parent=ulid)
    with serving(tmp_path) as server:
        text = page(server, f"/runs/{ulid}")
    for words in ("and 3 more tags", "and 100 more", "6 pictures of other keys", ">2 more</a>"):
        assert words in text


@pytest.mark.slow
def test_invalid_lines_of_metrics_are_listed_and_counted(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    log(writer, 3)
    with (writer.folder / "metrics-train.jsonl").open("a") as file:
        file.write("no record\n" * 7)
    ulid = finish(writer).name
    one = done(tmp_path, points=3).name
    with serving(tmp_path) as server:
        text, without = page(server, f"/runs/{ulid}"), page(server, f"/runs/{one}")
    lines = ", ".join(f"line {n} of metrics-train.jsonl" for n in range(4, 9))
    assert f"7 lines of the metrics files are invalid and left out: {lines} and 2" in text
    assert "invalid and left out" not in without


@pytest.mark.slow
def test_a_lost_run_shows_the_output_of_its_program(tmp_path: Path) -> None:
    """Recorder and program are killed before any output was copied from the spool."""
    code = "import time; print('the last', 'words', flush=True); time.sleep(60)"
    command = [COMMAND, "run", "--home", str(tmp_path), "--", sys.executable, "-c", code]
    recorder = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    assert recorder.stdout is not None
    assert recorder.stdout.readline() == b"the last words\n"
    (folder,) = until(lambda: list(tmp_path.glob("runs/0*")))
    program = until(lambda: json.loads((folder / "heartbeat.json").read_text())["program"])["pid"]
    for pid in (recorder.pid, program):
        os.kill(pid, signal.SIGKILL)
    recorder.wait()
    recorder.stdout.close()
    (folder / "output.log").unlink(missing_ok=True)  # as if not copied yet
    with serving(tmp_path) as server:
        path = f"/runs/{folder.name}"
        until(lambda: "the last words" in page(server, path))
        assert ">lost<" in page(server, path).replace("</i>", ">")
        assert "the last words" in page(server, f"{path}/output")


@pytest.mark.slow
def test_the_result_comes_first_on_every_page(tmp_path: Path) -> None:
    writer = begin(tmp_path, seed=0, group="g")
    log(writer, 20, episode_return_mean=lambda x: 100 * x)
    with MetricsWriter(writer.folder, "evaluation") as file:
        file.write({"seed": 0, "env_steps": 20 * 256, "evaluation_return": 321.5})
    finish(writer)
    fresh = begin(tmp_path, seed=1, group="fresh", config={"seed": 1})
    with MetricsWriter(fresh.folder, "train") as file:
        file.write({"seed": 1, "env_steps": 1, "episodes": 0, "episode_return_mean": math.nan})
    with serving(tmp_path) as server:
        shown = '<b>321.5</b> <span class="soft">evaluation_return</span>'
        compared = page(server, "/compare?group=g&group=fresh")
        for text in (
            *(page(server, "/"), page(server, "/?show=runs"), page(server, "/group?name=g")),
            *(page(server, f"/runs/{writer.run.ulid}"), compared),
        ):
            assert shown in text
        assert '<td class="n soft" colspan="4">no values</td>' in compared
        assert "NaN" not in compared
        for text in (page(server, "/?show=runs"), page(server, f"/runs/{fresh.run.ulid}")):
            assert "no episode ended" in text
            assert "NaN" not in text
        assert main(["runs", "--metric", "episode_return_mean", "--home", str(tmp_path)]) == 0
        until(lambda: "321.5" not in page(server, "/?show=runs"))
        assert "<b>100</b>" in page(server, "/?show=runs")
    fresh.close()


def test_a_part_of_an_id_or_a_name_leads_to_the_run(server: Server, home: Path) -> None:
    folder = folder_of(home, "fast 1")
    short = folder.name[-8:]
    for name in (short, short.lower(), folder.name.lower(), quoted("fast 1")):
        for rest in ("", "/code", "/output?before=10"):
            response = server.get(f"/runs/{name}{rest}")
            assert (response.status, response.headers["location"]) == (
                307,
                f"/runs/{folder.name}{rest}",
            )
    assert server.get("/runs/latest").headers["location"] == f"/runs/{failed_of(home).name}"
    for path in (f"/compare?run={short}&group=slow", f"/chart?metric=loss&run={short}"):
        assert "fast 1" in page(server, path)
    assert "8 runs match `0`" in page(server, "/runs/0", 404)
    assert "no run `nothing` here" in page(server, "/runs/nothing", 404)


def test_pages_show_the_short_form_of_an_id(server: Server, home: Path) -> None:
    named, unnamed = folder_of(home, "fast 1").name, failed_of(home).name
    table, group = page(server, "/?show=runs"), page(server, "/group?name=fast")
    for ulid in (named, unnamed):
        text = page(server, f"/runs/{ulid}")
        for shown in (text, table):
            assert f">{ulid[-8:]}<" in shown
            assert f">{ulid}<" not in shown
    assert f">{named[-8:]}<" in group


@pytest.mark.parametrize("query", ["", "run=x", "group=slow", "&".join(["group=slow"] * 3)])
def test_a_comparison_needs_two_subjects(server: Server, query: str) -> None:
    page(server, f"/compare?{query}", 404)


def test_the_table_can_be_downloaded_as_csv(server: Server) -> None:
    text = page(server, "/table.csv?show=runs&column=config.lr")
    rows = list(csv.reader(io.StringIO(text)))
    assert len(rows) == 9
    assert {row[-1] for row in rows[1:]} >= {"0.0001", "0.01"}


@pytest.mark.slow
def test_the_code_page_shows_files_and_changes_since_the_parent(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    ulids: list[str] = []
    for text in ("a = 1\n", "a = 2\n"):
        (project / "train.py").write_text(text)
        (project / "same.py").write_text("same")
        parent = ulids[-1] if ulids else None
        writer = begin(home, parent=parent)
        write_snapshot(writer.folder, take_snapshot(home, project, None, Limits()), Limits())
        ulids.append(finish(writer).name)
    with serving(home) as server:
        text = page(server, f"/runs/{ulids[1]}/code", path="train.py")
        both = page(server, f"/compare?run={ulids[0]}&run={ulids[1]}")
        first = page(server, f"/runs/{ulids[0]}")
    assert "<li><code>a = 2</code></li>" in text
    for changed in (text, both):
        assert '<span class="del">-a = 1' in changed
        assert '<span class="add">+a = 2' in changed
    assert "1 file differs" in text
    assert f'repeated by <a href="/runs/{ulids[1]}"' in first


@pytest.mark.slow
def test_a_run_page_links_the_run_that_it_carries_on(tmp_path: Path) -> None:
    parent = finish(begin(tmp_path)).name
    config = {"learning_rate": 0.001, "continues": {"env_steps": 100}}
    child = finish(begin(tmp_path, parent=parent, config=config)).name
    repeat = finish(begin(tmp_path, parent=child, config=config)).name
    with serving(tmp_path) as server:
        pages = {ulid: page(server, f"/runs/{ulid}") for ulid in (parent, child, repeat)}
    assert f'carried on by <a href="/runs/{child}"' in pages[parent]
    assert f'carries on <a href="/runs/{parent}"' in pages[child]
    assert f'repeated by <a href="/runs/{repeat}"' in pages[child]
    assert f'repeats <a href="/runs/{child}"' in pages[repeat]


def picture_in(writer: RunWriter, digit: str = "ab") -> str:
    """Write a picture to a run's media; return its path as in records."""
    path = writer.folder / "media" / f"{digit * 32}.png"
    path.parent.mkdir(exist_ok=True)
    Image.new("RGB", (8, 8), "red").save(path)
    return f"media/{path.name}"


def marks_in(text: str) -> list[tuple[str, str, float]]:
    """Return link, label and position in per cent of the marks in a page's charts."""
    found = re.findall(r'<a class="mark" href="([^"]*)" aria-label="([^"]*)">.*?x="([^"]*)%"', text)
    return [(address, label, float(place)) for address, label, place in found]


@pytest.mark.slow
def test_pictures_are_marked_on_charts_at_their_step(tmp_path: Path) -> None:
    """Each chart along that axis has a triangle that links to the picture."""
    writer = begin(tmp_path)
    log(writer, 11, every=1000, loss=lambda x: x, returns=lambda x: x)
    path = picture_in(writer)
    Image.new("RGB", (8, 8), "red").save(writer.folder / "clips.png")
    with MetricsWriter(writer.folder, "eval") as file:
        file.write({"env_steps": 5000, "seed": 0, "view <b>": {"clip": path}})
    ulid = finish(writer).name
    with serving(tmp_path) as server:
        text, along_time = (page(server, f"/runs/{ulid}", x=x) for x in ("env_steps", "seconds"))
        large = page(server, f"/chart?run={ulid}&metric=loss")
        assert f"/runs/{ulid}/{path}" in text
        assert ">5000 env steps, seed 0</span>" in text
        assert "5000 env steps" in along_time
        for address in (f"/runs/{ulid}/{path}", f"/runs/{ulid}/file?path=clips.png"):
            response = server.get(address)
            assert response.headers["Content-Type"] == "image/png"
            assert "Content-Disposition" not in response.headers
            assert "sandbox" in response.headers["Content-Security-Policy"]
    marks = marks_in(text)
    assert marks_in(large) == [(f"/runs/{ulid}{where}", *said) for where, *said in marks[:1]]
    assert marks == [("#media-0", "view &lt;b&gt;, 5000 env steps, seed 0", 40.0)] * 2
    assert re.search(rf'<a href="/runs/{ulid}/{path}" id="media-0">', text)
    assert marks_in(along_time) == [], "the time of the picture is unknown"


@pytest.mark.slow
def test_a_clip_beyond_the_curve_extends_the_axis_and_close_clips_share_a_mark(
    tmp_path: Path,
) -> None:
    """For a script: along steps, and along the time since its first record."""
    writer = begin(tmp_path, seed=None, env=None, command="script", config={})
    path = picture_in(writer)
    with MetricsWriter(writer.folder, "log-1") as file:
        for step in range(11):
            file.write({"step": step, "time": 1000.0 + step, "loss": 1.0})
        for n in range(5):
            file.write({"step": 20, "time": 1005.0, f"view{n}": {"clip": path}})
    ulid = finish(writer).name
    with serving(tmp_path) as server:
        text, along_time = (page(server, f"/runs/{ulid}", x=x) for x in ("step", "time"))
    label = "view0, step 20; view1, step 20; view2, step 20 and 2 more"
    assert marks_in(text) == [("#media-0", label, 100.0)]
    ((_, label, place),) = marks_in(along_time)
    assert place == 50.0
    assert label.startswith("view0, step 20, after 5 s; ")


@pytest.mark.slow
def test_a_run_with_a_nan_loss_has_a_warning(tmp_path: Path) -> None:
    with begin(tmp_path, question="is it healthy?", config={"env_steps": 1000 * 256}) as writer:
        log(writer, 250, of=1000, loss=lambda x: float("nan"))
        with serving(tmp_path) as server:
            text = page(server, "/")
    assert "1 run is running, with warnings. Next run ends in less than a minute." in text
    assert "is it healthy?" in text
    assert "loss is not finite" in text
    assert "25 %" in text
    assert "less than a minute left" in text


def test_a_report_is_self_contained(server: Server, home: Path, tmp_path: Path) -> None:
    response = server.get("/report?group=slow&group=fast")
    assert "attachment" in response.headers["Content-Disposition"]
    path = tmp_path / "report.html"
    command = [COMMAND, "report", "slow", "fast", str(path), "--home", str(home)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    for text in (response.body.decode(), path.read_text()):
        assert "<svg" in text
        assert "<script" not in text
        assert "http" not in re.sub(r'http-equiv="Content-Security-Policy"', "", text)
        assert re.search(r"src=\"(?!data:)", text) is None
        assert "href" not in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["slow", "x.txt"], "must end in .html"),
        pytest.param(["no such", "x.html"], "there is no run `no such`", marks=pytest.mark.slow),
        pytest.param(["slow", "x.html", "--along", "miles"], "`--along`", marks=pytest.mark.slow),
    ],
)
def test_an_invalid_report_command_fails_with_one_line(
    home: Path, arguments: list[str], words: str
) -> None:
    command = [COMMAND, "report", *arguments, "--home", str(home)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert words in done.stderr


# --- attacks -------------------------------------------------------------------------------------

ODD = [
    *(
        "../",
        "..\\",
        "%2e%2e%2f",
        "%252e%252e%252f",
        ";",
        "#",
        "\0",
        "/etc/passwd",
        "C:",
        "::$DATA",
    ),
    *(".", "", "x" * 300, "😀", "\u202egnp", "a\r\nSet-Cookie: x=1", "é", "?", "&run=1"),
]


@pytest.mark.attack
@pytest.mark.parametrize("name", ODD)
def test_1_unusual_names_in_addresses_are_not_found(server: Server, name: str, home: Path) -> None:
    ulid = failed_of(home).name
    for path in (
        f"/runs/{quoted(name)}",
        f"/runs/{ulid}/media/{quoted(name)}",
        f"/runs/{ulid}/file?path={quoted(name)}",
        f"/runs/{ulid}/file?path={quoted(f'{name}/run.json')}",
        f"/group?name={quoted(name)}",
        f"/static/{quoted(name)}",
        f"/compare?run={quoted(name)}&group={quoted(name)}",
        f"/chart?metric={quoted(name)}&run={quoted(name)}",
    ):
        response = server.get(path)
        assert response.status in (307, 404), (path, response.status)
        assert b"root:" not in response.body
        assert "Set-Cookie" not in response.headers


@pytest.mark.attack
@pytest.mark.parametrize(
    "raw", ["/runs/../../etc/passwd", "/static/../guard.py", "/../x", "//evil/"]
)
def test_1_raw_paths_are_not_normalised(server: Server, raw: str) -> None:
    head = f"GET {raw} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(head.encode())
        response = b"".join(iter(lambda: connection.recv(65536), b""))
    assert response.startswith((b"HTTP/1.1 404", b"HTTP/1.1 307"))
    assert b"evil" not in response.split(b"\r\n\r\n")[0]


@pytest.mark.slow
@pytest.mark.attack
def test_1_groups_with_unusual_names_have_pages(tmp_path: Path) -> None:
    names = ["../../x", "a;b#c?d&e", "UPPER", "upper", "😀 \u202e", 'q"u\\o', " ", "a" * 300]
    for name in names:
        done(tmp_path, group=name, points=3)
    with serving(tmp_path) as server:
        for name in names:
            assert "1 finished" in page(server, "/group", name=name).replace(
                "</i>finished", "1 finished"
            )


@pytest.mark.attack
def test_2_links_and_paths_out_of_a_run_are_not_followed(tmp_path: Path) -> None:
    """Media, outputs, metrics, code and logs that are links or name paths outside the run."""
    home, secret = tmp_path / "home", tmp_path / "secret"
    secret.write_text("top secret\n" * 20)
    writer = begin(home)
    folder = writer.folder
    log(writer, 3)
    (folder / "media").mkdir()
    name = "cd" * 32 + ".png"
    (folder / "media" / name).symlink_to(secret)
    (folder / "outputs").symlink_to(tmp_path)
    (folder / "output.log").symlink_to(secret)
    (folder / "code.patch").symlink_to(secret)
    (folder / "curve.svg").symlink_to(secret)
    (folder / "status.json").symlink_to(secret)
    code = {
        "root": "/",
        "cwd": ".",
        "left_out": [],
        "files": [
            {"path": "a", "sha256": "../../../../secret", "bytes": 11, "mode": 420},
        ],
    }
    (folder / "code.json").write_text(json.dumps(code))
    with MetricsWriter(folder, "evil") as file:
        for path in ("../../../secret", str(secret), f"media/{name}", "media/../../../secret"):
            file.write({"env_steps": 1, "x": {"image": path}})
    ulid = finish(writer).name
    with serving(home) as server:
        for path in (
            f"/runs/{ulid}",
            f"/runs/{ulid}/code",
            f"/runs/{ulid}/code?path=a",
            f"/runs/{ulid}/output",
            f"/runs/{ulid}/files",
            f"/runs/{ulid}/media/{name}",
            *(
                f"/runs/{ulid}/file?path={name}"
                for name in (
                    "outputs/secret",
                    "output.log",
                    "code.patch",
                    "curve.svg",
                    "outputs",
                )
            ),
            f"/report?run={ulid}",
        ):
            assert b"top secret" not in server.get(path).body, path


@pytest.mark.slow
@pytest.mark.attack
def test_2_pipes_in_a_run_do_not_block_the_server(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    log(writer, 3)
    for name in ("output.log", "code.json", "code.patch", "status.json", "clips.png"):
        os.mkfifo(writer.folder / name)
    ulid = finish(writer).name
    with serving(tmp_path) as server:
        for path in (
            "",
            "/code",
            "/output",
            "/files",
            "/file?path=output.log",
            "/file?path=clips.png",
        ):
            assert server.get(f"/runs/{ulid}{path}").status in (200, 404)


@pytest.mark.slow
@pytest.mark.attack
def test_2_code_objects_and_lists_that_are_links_or_pipes_are_not_compared(
    tmp_path: Path,
) -> None:
    home, secret = tmp_path / "home", tmp_path / "secret"
    secret.write_text("top secret\n" * 20)
    objects = shared(home, "objects") / "sha256" / "aa"
    objects.mkdir(parents=True)
    (objects / ("aa" + "0" * 62)).symlink_to(secret)
    os.mkfifo(objects / ("aa" + "1" * 62))
    (shared(home, "objects") / "sha256" / "bb").symlink_to(tmp_path)
    (tmp_path / ("bb" + "0" * 62)).write_text("top secret\n" * 20)
    named = {"link": "aa" + "0" * 62, "pipe": "aa" + "1" * 62, "folder": "bb" + "0" * 62}
    entries = [
        {"path": path, "sha256": sha256, "bytes": 0 if path == "pipe" else 220, "mode": 420}
        for path, sha256 in named.items()
    ]
    ulids: list[str] = []
    for files in (entries, [], None):
        writer = begin(home)
        log(writer, 3)
        code = json.dumps({"root": "/", "cwd": ".", "left_out": [], "files": files})
        (tmp_path / f"list-{len(ulids)}").write_text(code)
        if files is None:
            (writer.folder / "code.json").symlink_to(tmp_path / "list-0")
        else:
            (writer.folder / "code.json").write_text(code)
        ulids.append(finish(writer).name)
    with serving(home) as server:
        text = page(server, f"/compare?run={ulids[0]}&run={ulids[1]}")
        assert text.count("is missing in the archive") == 3
        for path in (
            *(f"/runs/{ulids[0]}/code?path={name}" for name in named),
            f"/runs/{ulids[0]}/code?against={ulids[1]}",
            f"/report?run={ulids[0]}&run={ulids[1]}",
        ):
            assert "top secret" not in page(server, path) + text
        linked = page(server, f"/compare?run={ulids[1]}&run={ulids[2]}")
    assert "kept no more" not in linked
    assert "<h2>Code</h2>" not in linked


@pytest.mark.slow
@pytest.mark.attack
def test_2_a_wrong_summary_and_deeply_nested_settings_are_compared(tmp_path: Path) -> None:
    ulids: list[str] = []
    for lr in (1, 2):
        deep: object = lr
        for _ in range(60):
            deep = {"a": deep}
        folder = done(tmp_path, points=3, config={"deep": deep, "same": 1})
        sizes = {path.name: path.stat().st_size for path in folder.glob("metrics-*")}
        other = {"other": dict.fromkeys(("last", "min", "max", "mean", "n"), 1)}
        (folder / "summary.json").write_text(json.dumps({"files": sizes, "metrics": other}))
        ulids.append(folder.name)
    with serving(tmp_path) as server:
        text = page(server, f"/compare?run={ulids[0]}&run={ulids[1]}")
    assert "are identical" in text
    assert '<th scope="row">deep' + ".a" * 19 + "</th>" in text


@pytest.mark.attack
def test_5_files_of_a_run_are_downloads_and_never_pages(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    (writer.folder / "outputs").mkdir()
    evil = "<script>alert(1)</script>"
    names = ["a.html", "a.svg", "a.png", "a.xml", "a.pdf", 'q"\u202e;.html', "a.js"]
    for name in names:
        (writer.folder / "outputs" / name).write_text(evil)
    (writer.folder / "not.png").write_text(evil)
    (writer.folder / "curve.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg">{evil}</svg>'
    )
    ulid = finish(writer).name
    with serving(tmp_path) as server:
        for name in [*(f"outputs/{n}" for n in names), "not.png", "curve.svg", "run.json"]:
            response = server.get(f"/runs/{ulid}/file?path={quoted(name)}")
            assert response.status == 200, name
            assert response.headers["Content-Disposition"].startswith("attachment; ")
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            assert response.headers["Content-Security-Policy"].startswith(
                "sandbox; default-src 'none'"
            )
            kind = "image/svg+xml" if name == "curve.svg" else "application/octet-stream"
            assert response.headers["Content-Type"] == kind


@pytest.mark.attack
def test_6_no_code_that_reads_runs_can_execute_their_content() -> None:
    """The code of the pages contains neither pickle nor eval nor imports by name."""
    source = Path(__file__).parents[2] / "src" / "runshelf" / "web"
    text = "\n".join(path.read_text() for path in source.rglob("*.py"))
    for word in ("pickle", "eval(", "exec(", "__import__", "importlib.import_module", "shell=True"):
        assert word not in text
    assert "allow_pickle=True" not in text


INJECTIONS = [
    "lr=1' OR '1'='1",
    "lr=1;DROP TABLE runs",
    "' UNION SELECT * FROM runs--=1",
    '"a" OR 1=1',
    "__import__('os').system('id')",
    "lr~" + "(a+)+" * 20 + "$",
    "{{7*7}}",
    "x" * 8000,
    "-" * 500,
    "(" * 3000,
    "\\" * 3000,
    "%00=%00",
    "lr=" + "9" * 5000,
]


@pytest.mark.attack
@pytest.mark.parametrize("text", INJECTIONS)
def test_7_filters_and_sort_keys_are_data(server: Server, text: str) -> None:
    for query in (
        {"filter": text},
        {"sort": text},
        {"column": text},
        {"filter": "x", "sort": "-" + text},
    ):
        response = page(server, "/", show="runs", **query)
        assert response.count("<tr data-kind") in (0, 8)
        assert "sqlite" not in response.lower()
    assert page(server, "/", show="runs").count("<tr data-kind") == 8


@pytest.mark.attack
def test_8_the_server_listens_on_loopback_and_checks_the_host_header(server: Server) -> None:
    listeners = Path("/proc/net/tcp").read_text()
    assert f"0100007F:{server.port:04X} 00000000:0000 0A" in listeners
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1", "0.0.0.0", ""):
        for path in ("/", "/stream", "/table.csv", "/static/style.css", "/nowhere"):
            assert server.get(path, Host=host).status == 421


@pytest.mark.attack
@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "file://"])
def test_8_requests_from_other_origins_are_refused(server: Server, origin: str) -> None:
    for path in ("/", "/stream", "/report?group=slow"):
        response = server.get(path, Origin=origin)
        assert response.status == 403
        assert "Access-Control-Allow-Origin" not in response.headers


@pytest.mark.attack
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_8_all_writing_methods_are_refused(server: Server, method: str) -> None:
    for path in ("/", "/group?name=slow", "/stream", "/nowhere"):
        response = server.request(method, path, b"{}", Content_Type="application/json")
        assert response.status == 403


ROUTES = [
    "/notes",
    *(
        "/",
        "/table.csv",
        "/group?name=slow",
        "/compare?group=a&group=b",
        "/chart?group=slow&metric=x",
    ),
    *("/report?group=slow", "/stream"),
    *(
        "/static/style.css",
        "/static/icon.svg",
        "/nowhere",
        "/favicon.ico",
        "/robots.txt",
        "/health",
    ),
    *(f"/runs/{'0' * 26}{tab}" for tab in ("", "/code", "/output", "/files", "/environment")),
    *(f"/runs/{'0' * 26}{tab}" for tab in ("/file?path=run.json", "/media/x.png")),
]


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server, None, None]:
    """A server that listens on all addresses and therefore requires a login."""
    home = tmp_path_factory.mktemp("public")
    done(home, group="slow", points=3)
    with serving(home, "--host", "0.0.0.0") as server:
        yield server


@pytest.mark.attack
@pytest.mark.parametrize("path", ROUTES)
def test_9_beyond_loopback_every_route_requires_the_cookie(public: Server, path: str) -> None:
    for method in ("GET", "HEAD", "POST"):
        assert public.request(method, path, b"" if method == "POST" else None).status == 401
    assert public.get(path, Cookie=f"runshelf_{public.port}=wrong").status == 401
    assert public.get(path, Host="evil.example").status == 421


@pytest.mark.attack
def test_9_the_tests_cover_all_routes() -> None:
    routes = [route.path for route in Pages(Reader(Path())).app().routes]
    covered = {re.sub(r"0{26}", "{run}", path.partition("?")[0]) for path in ROUTES}
    covered = {re.sub(r"/static/.*", "/static/{version}/{name}", path) for path in covered}
    covered = {path.replace("/media/x.png", "/media/{name}") for path in covered}
    assert set(routes) <= covered


@pytest.mark.attack
def test_9_the_printed_address_sets_the_cookie_without_open_redirect(public: Server) -> None:
    """Also attack 15: redirects to other sites."""
    parts = urlsplit(public.address)
    for more in ("", "&next=http://evil.example/", "&next=//evil.example"):
        entered = public.get(f"/?{parts.query}{more}")
        assert (entered.status, entered.headers["Location"]) == (303, "/")
    cookie = entered.headers["Set-Cookie"].partition(";")[0]
    assert "HttpOnly" in entered.headers["Set-Cookie"]
    assert "SameSite=strict" in entered.headers["Set-Cookie"]
    assert public.get("/", Cookie=cookie).status == 200
    assert public.get("/?token=wrong").status == 403


@pytest.mark.attack
def test_13_ranges_are_not_served(server: Server, home: Path, tried: Tried) -> None:
    path = f"/runs/{failed_of(home).name}/file?path=run.json"
    whole = server.get(path)
    many = "bytes=" + ",".join(["0-0"] * 2000)
    odd = ("bytes=-", "bytes=9-1", "bytes=1-9999999999999999999", "lines=0-0", "0-0", "bytes=x-y")
    for ranges in ("bytes=0-0", "bytes=-1", many, *odd):
        response = server.get(path, Range=ranges)
        assert (response.status, response.body) == (200, whole.body)
    tried(3 + len(odd), "requests for ranges of a file")
    assert whole.headers["Accept-Ranges"] == "none"


@pytest.mark.attack
def test_13_too_large_forms_and_addresses_are_refused(server: Server) -> None:
    fields = "&".join(f"f{n}=1" for n in range(10_000))
    kind = "application/x-www-form-urlencoded"
    assert server.request("POST", "/", fields.encode(), Content_Type=kind).status == 403
    assert server.request("POST", "/", b"x" * 20_000_000, Content_Type=kind).status == 403
    assert server.get("/?" + "&".join(f"f{n}=" for n in range(1000))).status == 414
    assert server.get(f"/?{fields}").status in (400, 414, 431)
    assert server.get("/").status == 200


@pytest.mark.slow
@pytest.mark.attack
def test_13_a_run_with_thousands_of_metrics_has_a_page(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    with MetricsWriter(writer.folder, "train") as file:
        for step in range(2):
            file.write({"env_steps": step, **{f"m{n}": n + step for n in range(5_000)}})
    ulid = finish(writer).name
    with serving(tmp_path) as server:
        for path in ("/", f"/runs/{ulid}", f"/runs/{ulid}?find=m4999", "/?show=runs&column=m5"):
            text = page(server, path)
            assert len(text) < 400_000
        assert "m4999" in page(server, f"/runs/{ulid}?find=m4999")


@pytest.mark.slow
@pytest.mark.attack
def test_13_a_line_of_a_million_characters_has_a_page(tmp_path: Path) -> None:
    writer = begin(tmp_path, name="n" * 1_000_000, question="q" * 100_000)
    print_to(writer.folder, [("out", "x" * 65_000)] * 16)
    log(writer, 2)
    ulid = finish(writer).name
    with serving(tmp_path) as server:
        for path in ("/", "/?show=runs", f"/runs/{ulid}", f"/runs/{ulid}/output"):
            assert len(page(server, path)) < 400_000


@pytest.mark.attack
def test_13_the_number_of_streams_is_limited(server: Server) -> None:
    address = stream_of(page(server, "/"))
    head = f"GET {address} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()
    held = []
    for _ in range(60):
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=10)
        connection.sendall(head)
        held.append((connection, connection.recv(100).split(b" ")[1]))
    assert [status for _, status in held] == [b"200"] * 48 + [b"503"] * 12
    assert server.get("/").status == 200
    for connection, _ in held:
        connection.close()
    until(lambda: not busy(server, head))


def busy(server: Server, head: bytes) -> bool:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(head)
        return connection.recv(100).split(b" ")[1] != b"200"


@pytest.mark.attack
def test_12_only_the_owner_can_read_the_secret(public: Server) -> None:
    (kept,) = (public.folder / ".cache" / "runshelf").glob("*/page.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    command = Path(f"/proc/{public.process.pid}/cmdline").read_text()
    token = urlsplit(public.address).query.partition("=")[2]
    assert token not in command
    assert json.loads(kept.read_text())["secret"] not in public.address


@pytest.mark.attack
def test_15_the_server_writes_only_the_index_to_the_home(tmp_path: Path) -> None:
    """Also with umask 0, other users cannot read the secret."""
    done(tmp_path, points=3)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    old = os.umask(0)
    try:
        server = start(tmp_path)
    finally:
        os.umask(old)
    page(server, "/")
    server.kill()
    new = [path for path in tmp_path.rglob("*") if path not in before]
    shown = [path for path in new if ".cache" not in path.parts and path.is_file()]
    kept = {shared(tmp_path, ".gitignore"), *shared(tmp_path, "").glob("index.sqlite*")}
    outside = [path for path in shown if path not in kept]
    assert outside == []
    for path in (p for p in new if ".cache" in p.parts and p.name == "page.json"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_errors_are_pages_without_tracebacks(server: Server) -> None:
    for path in ("/nowhere", "/runs/x", "/group?name=none", "/compare", "/chart"):
        text = page(server, path, 404)
        assert "<h1>" in text
        assert "Traceback" not in text


# --- live updates --------------------------------------------------------------------------------


def changes(server: Server, path: str) -> AbstractContextManager[Iterator[tuple[str, str, str]]]:
    """Open the event stream of a page."""
    return listening(server, stream_of(page(server, path)))


@pytest.mark.slow
def test_the_home_page_is_notified_when_a_run_ends(tmp_path: Path) -> None:
    writer = begin(tmp_path, group="g")
    log(writer, 5)
    with serving(tmp_path) as server:
        with changes(server, "/") as events:
            finish(writer, "failed", error="ValueError: x")
            until(lambda: next(events)[0] == "change" and ">failed<" in states_in(server))
        assert "Nothing is running." in page(server, "/")


def states_in(server: Server) -> str:
    return page(server, "/").replace("</i>", ">")


def test_the_output_page_is_notified_of_new_lines_and_can_reconnect(tmp_path: Path) -> None:
    with begin(tmp_path) as writer:
        print_to(writer.folder, [("out", "one")])
        path = f"/runs/{writer.run.ulid}/output"
        with serving(tmp_path) as server:
            stream = stream_of(page(server, path))
            with listening(server, stream) as events:
                print_to(writer.folder, [("out", "two")])
                name, _, version = next(events)
            assert (name, "two" in page(server, path)) == ("change", True)
            print_to(writer.folder, [("out", "three")])
            with listening(server, stream, Last_Event_ID=version) as events:
                assert next(events)[2] != version


@pytest.mark.parametrize(
    "path",
    [
        "/runs/{run}",
        pytest.param("/group?name=g", marks=pytest.mark.slow),
        pytest.param("/compare?run={run}&group=other", marks=pytest.mark.slow),
    ],
)
def test_a_page_with_curves_is_notified_of_new_points(tmp_path: Path, path: str) -> None:
    done(tmp_path, group="other", points=3)
    with begin(tmp_path, group="g") as writer:
        log(writer, 5, of=100)
        with serving(tmp_path) as server:
            where = path.format(run=writer.run.ulid)
            before = page(server, where)
            with changes(server, where) as events:
                log(writer, 5, first=5, of=100)
                assert next(events)[0] == "change"
            assert figure_in(page(server, where)) != figure_in(before)


def figure_in(text: str) -> str:
    found = re.search(r'class="centre" d="([^"]+)"', text)
    assert found
    return found[1]


def test_an_outdated_page_is_notified_immediately(server: Server) -> None:
    with listening(server, "/stream?since=other-7") as events:
        assert next(events)[0] == "change"


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/", "/group?name=slow"])
def test_an_unchanged_page_receives_only_heartbeats(server: Server, path: str) -> None:
    with changes(server, path) as events:
        begun = time.monotonic()
        name, data, _ = next(events)
    assert (name, data) == ("beat", "")
    assert time.monotonic() - begun > 10


@pytest.mark.slow
def test_a_running_run_without_new_records_receives_only_heartbeats(
    tmp_path: Path,
) -> None:
    with begin(tmp_path) as writer:
        log(writer, 5, of=100)
        with serving(tmp_path) as server, changes(server, f"/runs/{writer.run.ulid}") as events:
            assert [next(events)[0] for _ in range(2)] == ["beat", "beat"]
