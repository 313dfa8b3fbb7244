"""Pages in Chromium: keys, charts, live updates, hostile texts; no scripts and no other hosts."""

import csv
import io
import json
import re
import socket
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from packages.runshelf.tests.web.pages import serving
from packages.runshelf.tests.web.runs import begin, done, finish, log, print_to
from PIL import Image
from playwright.sync_api import Browser, Page, expect
from tests.attack_figures import Tried
from tests.server_client import Server

from runshelf.snapshot.code_snapshot import Limits, take_snapshot, write_snapshot
from runshelf.store.home import shared
from runshelf.store.metrics import MetricsWriter

pytestmark = pytest.mark.medium

Open = Callable[..., Page]
WATCH = """
const report = what => console.error('Security Policy: ' + what);
addEventListener('securitypolicyviolation', e => report(e.violatedDirective));
window.alert = window.confirm = window.prompt = () => report('a script ran');
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home") / ("long" * 20)  # pages show the path
    for seed in range(4):
        done(
            home, seed, group="slow", question="is slow enough?", config={"lr": 1e-4, "seed": seed}
        )
    for seed in range(3):
        done(home, seed, group="fast", config={"lr": 1e-2, "seed": seed})
    return home


@pytest.fixture(scope="module")
def server(home: Path) -> Generator[Server, None, None]:
    with serving(home) as server:
        yield server


@pytest.fixture
def visit(browser: Browser) -> Generator[Open, None, None]:
    """Return a function that opens an address.

    The test fails if a page contacts another host, violates the policy, or runs injected scripts.
    """
    contexts, problems = [], []

    def visit(address: str, **settings: Any) -> Page:
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 720}} | settings))
        contexts.append(context)
        context.add_init_script(WATCH)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(f"error {error}"))
        page.on("console", lambda m: problems.append(m.text) if "Policy" in m.text else None)
        page.on("dialog", lambda d: (problems.append(f"dialog {d.message}"), d.dismiss()))
        own = re.match(r"(https?://[^/]+/|file://)", address)
        assert own
        page.on(
            "request",
            lambda r: None if r.url.startswith((own[1], "data:")) else problems.append(r.url),
        )
        page.goto(address)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert problems == []


NAMES = "#rows tbody tr .title a span"
SUMMARY = "[data-part=summary]"


def rows(page: Page) -> list[str]:
    return page.locator(NAMES).all_inner_texts()


# --- keys and addresses --------------------------------------------------------------------------


def test_keys_move_select_and_compare_rows(server: Server, visit: Open) -> None:
    page = visit(server.address)
    assert page.locator("#compare").is_disabled()
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator("#compare")).to_have_text("Compare 2 selected")
    page.keyboard.press("k")
    assert page.locator("tr.current").count() == 1
    with page.expect_navigation():
        page.keyboard.press("d")
    assert "/compare?group=" in page.url
    expect(page.locator("h1")).to_have_text("Comparison")


@pytest.mark.slow
def test_a_typed_filter_is_in_the_address(server: Server, visit: Open) -> None:
    page = visit(server.address)
    page.keyboard.press("/")
    page.keyboard.type("lr<1e-3")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.url.endswith("/?filter=lr%3C1e-3")
    assert rows(page) == ["slow"]
    with page.expect_navigation():
        page.keyboard.press("g")
    assert "show=runs" in page.url
    assert "filter=lr%3C1e-3" in page.url
    assert len(rows(page)) == 4
    page.go_back()
    assert rows(page) == ["slow"]


@pytest.mark.slow
def test_keys_open_a_row_the_home_page_and_help(server: Server, visit: Open) -> None:
    page = visit(server.address)
    page.keyboard.press("j")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert "/group?name=" in page.url
    with page.expect_navigation():
        page.keyboard.press("h")
    assert page.url == server.address
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()


def test_tables_and_charts_work_without_javascript(server: Server, visit: Open) -> None:
    page = visit(server.address, java_script_enabled=False)
    page.fill("#filter", "lr>1e-3")
    page.click("text=Filter >> nth=0")
    expect(page.locator(NAMES)).to_have_text(["fast"])
    page.click("text=clear")
    page.check("#rows tbody tr:nth-child(1) input")
    page.check("#rows tbody tr:nth-child(2) input")
    page.click("#compare")
    expect(page.locator("h1")).to_have_text("Comparison")
    page.select_option("select[name=x]", "updates")
    page.click("text=Draw")
    expect(page).to_have_url(re.compile("x=updates"))
    expect(page.locator(".charts .chart .unit").first).to_have_text("updates")
    page.goto(server.address + "?show=runs")
    page.click("th >> text=took")
    expect(page).to_have_url(re.compile("sort=-seconds"))
    page.click("text=Columns")
    page.fill("input[name=column] >> nth=0", "config.lr")
    page.click("text=Show")
    expect(page.locator("#rows thead")).to_contain_text("lr")


# --- charts --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("javascript", [True, False])
def test_a_mark_on_a_chart_links_to_its_clip(tmp_path: Path, visit: Open, javascript: bool) -> None:
    writer = begin(tmp_path)
    log(writer, 11, every=1000, **{f"m{n}": lambda x: x for n in range(6)})
    path = writer.folder / "media" / f"{'ab' * 32}.png"
    path.parent.mkdir()
    Image.new("RGB", (300, 200), "red").save(path)
    with MetricsWriter(writer.folder, "eval") as file:
        for n in range(1, 10):
            file.write({"env_steps": 1000 * n, "view": {"clip": f"media/{path.name}"}})
    ulid = finish(writer).name
    with serving(tmp_path) as server:
        page = visit(f"{server.address}runs/{ulid}", java_script_enabled=javascript)
        expect(page.locator(".mark")).to_have_count(6 * 9)
        page.locator(".figure").nth(2).locator(".mark").nth(8).click()
        expect(page).to_have_url(re.compile("#media-8$"))
        clip = page.locator("#media-8")
        expect(clip).to_be_in_viewport()
        expect(clip).to_contain_text("9000 env steps")
        assert page.evaluate("document.querySelector('#media-8').matches(':target')")


@pytest.mark.slow
def test_a_clip_stays_in_view_while_the_pictures_beside_it_load(
    tmp_path: Path, visit: Open
) -> None:
    writer = begin(tmp_path)
    log(writer, 10, every=1000)
    (writer.folder / "media").mkdir()
    with MetricsWriter(writer.folder, "eval") as file:
        for n in range(1, 10):
            path = writer.folder / "media" / f"{n:064x}.png"
            Image.new("RGB", (500, 200), (20 * n, 0, 0)).save(path)
            file.write({"env_steps": 1000 * n, "view": {"clip": f"media/{path.name}"}})
    ulid = finish(writer).name
    with serving(tmp_path) as server:
        page, slow = visit(server.address), list[Any]()
        page.route("**/media/*", lambda route: slow.append(route))
        page.goto(f"{server.address}runs/{ulid}#media-8", wait_until="commit")
        expect(page.locator("#media-8")).to_be_in_viewport()
        page.wait_for_timeout(200)  # the pictures in view are asked for
        while slow:
            slow.pop().continue_()
            page.wait_for_timeout(100)
        expect(page.locator("#media-8")).to_be_in_viewport(ratio=0.9)


@pytest.mark.slow
def test_new_clips_of_a_running_run_appear_with_marks(tmp_path: Path, visit: Open) -> None:
    with begin(tmp_path) as writer:
        log(writer, 5, of=100)
        path = writer.folder / "media" / f"{'ab' * 32}.png"
        path.parent.mkdir()
        Image.new("RGB", (30, 20), "red").save(path)
        with serving(tmp_path) as server:
            page = visit(f"{server.address}runs/{writer.run.ulid}")
            expect(page.locator(".figure")).to_have_count(1)
            with MetricsWriter(writer.folder, "eval") as file:
                file.write({"env_steps": 512, "view": {"clip": f"media/{path.name}"}})
            expect(page.locator(".mark")).to_have_count(1)
            page.locator(".mark").click()
            expect(page.locator("#media-0")).to_contain_text("512 env steps")


@pytest.mark.slow
def test_pointing_at_a_chart_shows_crosshairs_and_seeds(server: Server, visit: Open) -> None:
    page = visit(server.address + "compare?group=slow&group=fast")
    page.goto(server.address + "group?name=slow")
    seed = page.locator(".figure >> nth=0 >> path.seed")
    assert seed.evaluate("e => getComputedStyle(e).opacity") == "0"
    page.hover(".chart >> nth=0")
    expect(page.locator(".reading >> nth=0")).to_contain_text(" at ")
    page.wait_for_function(
        "() => getComputedStyle(document.querySelector('path.seed')).opacity > 0.5"
    )
    crosses = page.locator(".cross")
    assert {c.get_attribute("visibility") for c in crosses.all()} == {"visible"}
    page.mouse.move(5, 5)
    expect(crosses.first).to_have_attribute("visibility", "hidden")


def test_the_crosshair_shows_the_value_of_the_curve(server: Server, visit: Open) -> None:
    """At the right edge it is the last point of the curve, a mean over a part of the axis."""
    page = visit(server.address + "group?name=slow")
    box = page.locator(".curves").first.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] - 1, box["y"] + 20)
    curves = json.loads(page.locator(".chart").first.get_attribute("data-curves") or "")
    last = curves["lines"][0]["y"][-1]
    expect(page.locator(".reading").first).to_contain_text(f"{last:.3g}")


@pytest.mark.slow
def test_dragging_zooms_in_and_double_click_zooms_out(server: Server, visit: Open) -> None:
    page = visit(server.address + "group?name=slow")
    box = page.locator(".curves").first.bounding_box()
    assert box
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 4, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, middle, steps=4)
    with page.expect_navigation():
        page.mouse.up()
    ends = [float(parse_qs(urlsplit(page.url).query)[name][0]) for name in ("from", "to")]
    width = 199 * 256  # of the axis, which begins at 256
    assert ends == pytest.approx([256 + width / 4, 256 + width / 2], rel=0.02)
    expect(page.locator(".figure .legend").first).to_contain_text("n = 4")
    assert page.locator(".tx").first.text_content() not in ("0", None)
    with page.expect_navigation():
        page.dblclick(".chart >> nth=0")
    assert "from=" not in page.url


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        pytest.param(390, "light", marks=pytest.mark.slow),
        (1280, "dark"),
        pytest.param(390, "dark", marks=pytest.mark.slow),
        pytest.param(1280, "light", marks=pytest.mark.slow),
    ],
)
def test_pages_fit_the_window_and_have_readable_contrast(
    server: Server, home: Path, visit: Open, scheme: str, width: int
) -> None:
    run = next(home.glob("runs/0*")).name
    page = visit(server.address, viewport={"width": width, "height": 844}, color_scheme=scheme)
    for path in (
        *("", "?show=runs", "group?name=slow", "compare?group=slow&group=fast"),
        *(f"runs/{run}{tab}" for tab in ("", "/code", "/output", "/files", "/environment")),
        *("chart?group=slow&metric=episode_return_mean", "nowhere"),
    ):
        page.goto(server.address + path)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        written = page.evaluate(COLOURS, ["h1", ".figure .legend"])
        assert written, path
        assert min(map(contrast, written)) > 4.5, path


# One call finds and reads the elements, since live updates may replace them in between.
COLOURS = """selectors => {
    const seen = e => getComputedStyle(e);
    const colours = element => {
        let under = element;
        while (seen(under).backgroundColor === 'rgba(0, 0, 0, 0)') under = under.parentElement;
        const both = [seen(element).color, seen(under).backgroundColor];
        return both.map(colour => colour.match(/\\d+/g).map(Number));
    };
    return selectors.map(s => document.querySelector(s)).filter(e => e).map(colours);
}"""


def contrast(colours: list[list[int]]) -> float:
    """Return the contrast ratio of WCAG 2."""
    light = []
    for colour in colours:
        parts = [v / 255 for v in colour[:3]]
        parts = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
        light.append(0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2])
    return (max(light) + 0.05) / (min(light) + 0.05)


# --- live updates --------------------------------------------------------------------------------


@pytest.mark.slow
def test_open_pages_show_the_end_of_a_run_without_reload(tmp_path: Path, visit: Open) -> None:
    writer = begin(tmp_path, group="g", question="will it end?")
    log(writer, 5)
    with serving(tmp_path) as server:
        table, run = visit(server.address), visit(f"{server.address}runs/{writer.run.ulid}")
        for page in (table, run):
            page.evaluate("window.same = true")
        expect(table.locator(SUMMARY)).to_contain_text("will it end?")
        expect(table.locator("#rows .states").first).to_have_text("running")
        finish(writer)
        expect(table.locator("#rows .states").first).to_have_text("finished")
        expect(run.locator("h1 .state")).to_have_text("finished")
        expect(table.locator(f"{SUMMARY} h1")).to_have_text("Nothing is running.")
        assert all(page.evaluate("window.same") for page in (table, run))


@pytest.mark.slow
def test_open_pages_show_new_lines_and_points(tmp_path: Path, visit: Open) -> None:
    with begin(tmp_path) as writer, serving(tmp_path) as server:
        log(writer, 5, of=50)
        run = visit(f"{server.address}runs/{writer.run.ulid}")
        output = visit(f"{server.address}runs/{writer.run.ulid}/output")
        before = run.locator("path.centre").get_attribute("d")
        print_to(writer.folder, [("out", "first"), ("err", "<b>second</b>")])
        log(writer, 5, first=5, of=50)
        expect(output.locator("#output")).to_contain_text("<b>second</b>")
        expect(run.locator("path.centre")).not_to_have_attribute("d", str(before))


@pytest.mark.slow
def test_a_banner_offers_new_runs_and_the_table_stays(tmp_path: Path, visit: Open) -> None:
    done(tmp_path, group="one", points=3)
    with serving(tmp_path) as server:
        page = visit(server.address)
        with begin(tmp_path, group="two") as going:
            log(going, 3)
            expect(page.locator(SUMMARY)).to_contain_text("two")
            done(tmp_path, group="three", points=3)
            expect(page.locator("#banner")).to_contain_text("2 new runs")
            assert rows(page) == ["one"]
            page.click("#banner a")
            expect(page.locator(NAMES)).to_have_count(3)
            assert set(rows(page)) == {"one", "two", "three"}


FLOOD = """async () => {
    // 120 changes one after the other, each with a different page.
    const nodes = () => {
        const walker = document.createTreeWalker(document, NodeFilter.SHOW_ALL);
        let count = 0;
        while (walker.nextNode()) count++;
        return count;
    };
    const first = document.documentElement.outerHTML;
    let asked = 0;
    window.fetch = async () => {
        asked++;
        const html = first.replaceAll('finished', 'changed' + asked)
            .replaceAll(/(class="centre" d="M)\\d+/g, '$1' + asked);
        return new Response(html);
    };
    const change = async (n) => {
        const event = new MessageEvent('change', {lastEventId: 'v' + n});
        window.sources.at(-1).dispatchEvent(event);
        while (asked <= n) await new Promise(requestAnimationFrame);
    };
    for (let n = 0; n < 20; n++) await change(n);
    const before = nodes();
    for (let n = 20; n < 120; n++) await change(n);
    return [before, nodes(), asked];
}"""
SOURCES = """window.sources = [];
const Real = window.EventSource;
window.EventSource = class extends Real {
    constructor(...a) { super(...a); window.sources.push(this); }
};"""


@pytest.mark.parametrize(
    "path",
    [
        "runs/{run}",
        *(
            pytest.param(path, marks=pytest.mark.slow)
            for path in ("", "?show=runs", "group?name=slow", "runs/{run}/output")
        ),
    ],
)
def test_many_live_updates_do_not_grow_the_page(
    server: Server, home: Path, browser: Browser, path: str
) -> None:
    run = next(home.glob("runs/0*")).name
    context = browser.new_context()
    context.add_init_script(SOURCES)
    page = context.new_page()
    page.goto(server.address + path.format(run=run))
    page.wait_for_function("() => window.sources.length === 1")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    before, after, fetched = page.evaluate(FLOOD)
    context.close()
    assert fetched == 120
    assert after <= before
    assert requests == []


CUT = """async () => {
    // The page asks for itself; the response ends within its text.
    let asked = 0;
    window.fetch = async () => {
        asked++;
        const start = control => control.error(new TypeError('cut'));
        return new Response(new ReadableStream({start}));
    };
    window.sources.at(-1).dispatchEvent(new MessageEvent('change', {lastEventId: 'v'}));
    while (!asked) await new Promise(requestAnimationFrame);
    await new Promise(done => setTimeout(done, 50));
    return document.querySelectorAll('[data-part]').length;
}"""


def test_an_update_that_is_cut_off_changes_nothing(server: Server, browser: Browser) -> None:
    context = browser.new_context()
    context.add_init_script(SOURCES)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(server.address)
    page.wait_for_function("() => window.sources.length === 1")
    parts = page.locator("[data-part]").count()
    assert page.evaluate(CUT) == parts > 0
    context.close()
    assert errors == []


def test_a_hidden_page_has_no_stream(server: Server, browser: Browser) -> None:
    context = browser.new_context()
    context.add_init_script(SOURCES)
    page = context.new_page()
    page.goto(server.address)
    page.wait_for_function("() => window.sources.at(-1)?.readyState === 1")
    hide = "value => { Object.defineProperty(document, 'hidden', {value, configurable: true});"
    hide += "document.dispatchEvent(new Event('visibilitychange')); }"
    page.evaluate(hide, True)
    assert page.evaluate("window.sources.at(-1).readyState") == 2
    page.evaluate(hide, False)
    page.wait_for_function(
        "() => window.sources.length === 2 && window.sources.at(-1).readyState === 1"
    )
    context.close()


@pytest.mark.slow
def test_open_pages_reconnect_to_a_restarted_server(tmp_path: Path, visit: Open) -> None:
    """The new server has another version of the page, so the page fetches itself."""
    done(tmp_path, group="one", points=3)
    with socket.socket() as free:  # the default port may be taken by servers of other tests
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with serving(tmp_path, "--port", port) as first:
        page = visit(first.address)
        page.wait_for_function("() => document.getElementById('connection').textContent === ''")
    done(tmp_path, group="two", points=3)
    with serving(tmp_path, "--port", port):
        expect(page.locator("#banner")).to_contain_text("1 new run")


# --- attack 4: scripts in texts of runs ----------------------------------------------------

PAYLOADS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "'-alert(1)-'",
    "</title><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</textarea></script><script>alert(1)</script>",
    "javascript:alert(1)",
    "<a href=javascript:alert(1)>click</a>",
    "{{7*7}}${7*7}<%=7*7%>",
    "<iframe src=//evil.example></iframe>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<style>@import '//evil.example'</style>",
    "\u202e<b onmouseover=alert(1)>x</b>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "\u2028<script>alert(1)</script>\u2029",
    '=HYPERLINK("http://evil.example","x")',
    "\x1b]8;;javascript:alert(1)\x1b\\click\x1b]8;;\x1b\\",
    "\x1b[31m<script>alert(1)</script>\x1b[0m",
]
ALL = " ".join(PAYLOADS)
TEXTS = 35  # of one run; each is the payload


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with runs in which every text is a payload."""
    home = tmp_path_factory.mktemp("hostile")
    project = tmp_path_factory.mktemp("<img src=x onerror=alert(1)>")
    (project / "<script>alert(1)<_script>.py").write_text("\n".join(PAYLOADS))
    limits = Limits()
    parent = None
    for n, payload in enumerate([*PAYLOADS, ALL]):
        writer = begin(
            home,
            seed=None,
            name=payload,
            group=payload,
            question=payload,
            tags=(payload, "<b>"),
            parent=parent,
            env=payload,
            algorithm=payload,
            command="run",
            argv=["python", payload],
            config={payload: payload, "lr": payload, "nested": {payload: [payload]}},
            manifest={
                "hardware": {
                    "cpu": payload,
                    "host": payload,
                    "cores": payload,
                    "gpus": [{"name": payload}],
                },
                "git": {"commit": payload, "branch": payload, "remote": payload, "dirty": True},
                "python": {
                    "executable": payload,
                    "version": payload,
                    "packages": {payload: payload},
                },
                "environment": {payload: payload},
                "masked": [payload],
                "lock_files": [{"path": payload, "sha256": payload}],
                "cwd": payload,
            },
        )
        with MetricsWriter(writer.folder, "train") as file:
            for step in range(3):
                media = {"image": f"media/{'ab' * 32}.png"}
                file.write(
                    {"env_steps": step, payload: step + n, "loss": 1.0 * n, f"p{payload}": media}
                )
        (writer.folder / "media").mkdir()
        Image.new("RGB", (4, 4), "red").save(writer.folder / "media" / f"{'ab' * 32}.png")
        (writer.folder / "outputs").mkdir()
        (writer.folder / "outputs" / payload.replace("/", "_")[:200]).write_text(payload)
        (writer.folder / "curve.svg").write_text(
            '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)">'
            "<script>alert(1)</script></svg>"
        )
        print_to(writer.folder, [("out", text) for text in PAYLOADS] + [("err", ALL)])
        (writer.folder / "code.patch").write_text(
            "".join(f"diff --git a/x b/x\n@@ -1 +1 @@\n-{p}\n+{p}\n" for p in PAYLOADS)
        )
        (project / "code.py").write_text(f"{payload}\n{n}")
        write_snapshot(writer.folder, take_snapshot(home, project, None, limits), limits)
        parent = finish(writer, "failed", error=payload).name
    return home


@pytest.mark.slow
@pytest.mark.attack
def test_4_texts_of_runs_execute_and_load_nothing(hostile: Path, visit: Open, tried: Tried) -> None:
    """Open every page of runs in which every text is a payload."""
    with serving(hostile) as server:
        page = visit(server.address)
        runs = sorted(path.name for path in hostile.glob("runs/0*"))
        groups = [f"group?name={quote(payload)}" for payload in (*PAYLOADS, ALL)]
        two = "&".join(f"group={quote(payload)}" for payload in PAYLOADS[:9])
        some = (
            *("", "?show=runs", f"?filter={quote(ALL)}", f"?column={quote(PAYLOADS[0])}"),
            *groups,
            f"compare?run={runs[0]}&run={runs[1]}",
            f"compare?{two}",
        )
        for path in some:
            page.goto(server.address + path)
            page.mouse.move(300, 350)
        for run in (*runs[:3], *runs[-3:]):
            for tab in ("", "/output", "/code", "/code?path=code.py", "/files", "/environment"):
                page.goto(f"{server.address}runs/{run}{tab}")
                assert page.locator("main script, main iframe, main link, main style").count() == 0
                assert page.locator("[onerror], [onload], [onmouseover]").count() == 0
                assert page.locator("a[href^=javascript]").count() == 0
        for payload in (*PAYLOADS, ALL):
            page.goto(f"{server.address}chart?run={runs[-1]}&metric={quote(payload)}")
    tried(len(runs) * TEXTS, "texts of runs with markup, opened in Chromium")


@pytest.mark.slow
@pytest.mark.attack
def test_4_a_drawing_is_shown_as_image_and_otherwise_downloaded(hostile: Path, visit: Open) -> None:
    with serving(hostile) as server:
        run = next(hostile.glob("runs/0*")).name
        page = visit(f"{server.address}runs/{run}")
        embedded = page.locator("img[src$='curve.svg']")
        expect(embedded).to_have_count(1)
        with page.expect_download() as download:
            page.evaluate(f"location.href = '/runs/{run}/file?path=curve.svg'")
        assert download.value.suggested_filename == "curve.svg"


@pytest.mark.attack
def test_4_a_saved_report_executes_and_loads_nothing(
    hostile: Path, tmp_path: Path, visit: Open
) -> None:
    runs = sorted(path.name for path in hostile.glob("runs/0*"))
    with serving(hostile) as server:
        for n, query in enumerate((f"run={runs[-1]}", f"run={runs[0]}&run={runs[-1]}")):
            path = tmp_path / f"{n}.html"
            path.write_bytes(server.get(f"/report?{query}").body)
    for n in range(2):
        page = visit(f"file://{tmp_path}/{n}.html")
        assert page.locator("svg .centre").count() > 0
        assert page.evaluate("getComputedStyle(document.body).margin") == "0px"
        assert page.locator("script, iframe, link").count() == 0


@pytest.mark.attack
def test_4_the_csv_table_contains_no_formulas(hostile: Path) -> None:
    with serving(hostile) as server:
        text = server.get("/table.csv?show=runs&column=config.lr").body.decode()
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert len(cells) > 100
    assert [cell for cell in cells if cell.startswith(("=", "+", "@", "\t", "\r"))] == []
    assert any(cell.startswith("'=HYPERLINK") for cell in cells)


@pytest.mark.slow
@pytest.mark.attack
def test_4_a_page_from_another_port_cannot_read_this_server(
    server: Server, tmp_path: Path, browser: Browser
) -> None:
    """Also attack 8: neither a response nor a stream."""
    done(tmp_path, points=3)
    with serving(tmp_path) as other:
        context = browser.new_context()
        page = context.new_page()
        page.goto(other.address)
        for what in (
            "fetch(u).then(a => a.text())",
            "new Promise((yes, no) => { const s = new EventSource(u + 'stream');"
            " s.onopen = yes; s.onerror = () => no(Error()); })",
        ):
            code = f"u => {what}.then(() => 'read', () => 'refused')"
            assert page.evaluate(code, server.address) == "refused"
        context.close()


@pytest.mark.slow
def test_pages_are_the_same_after_the_index_is_deleted(tmp_path: Path, visit: Open) -> None:
    done(tmp_path, group="kept", points=3)
    with serving(tmp_path) as server:
        assert rows(visit(server.address)) == ["kept"]
    kept = list(shared(tmp_path, "").glob("index.sqlite*"))
    assert kept
    for path in kept:
        path.unlink()
    with serving(tmp_path) as server:
        assert rows(visit(server.address)) == ["kept"]
