"""The routes of the archive's pages. All of them read; none writes."""

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from backflip.archive import opening
from backflip.archive.index.rows import Keys, RunRow
from backflip.archive.index.run_index import Index
from backflip.archive.opening import NoFile
from backflip.archive.run import is_ulid
from backflip.core.errors import BackflipError, UsageError
from backflip.web.archive_pages import code, downloads, facts, files, home, output, run_page, table
from backflip.web.archive_pages.charts import Mark
from backflip.web.archive_pages.colours import colour_of
from backflip.web.archive_pages.compare import compare
from backflip.web.archive_pages.export import report
from backflip.web.archive_pages.figures import Subject, choose, figures
from backflip.web.archive_pages.interactive import (
    INSTALL,
    MOST_SEEDS,
    interactive_fields,
    plotly_script,
)
from backflip.web.archive_pages.live import Live, Watched
from backflip.web.archive_pages.reader import Busy, Reader
from backflip.web.archive_pages.render import render, static_files, static_version
from backflip.web.archive_pages.run_page import RunFacts
from backflip.web.archive_pages.stream import MOST_STREAMS, EventStream
from backflip.web.archive_pages.subjects import (
    FEWEST,
    MOST,
    Runs,
    of_group,
    of_run,
    row_of_run,
    runs_of_group,
)
from backflip.web.archive_pages.view import (
    SMOOTHINGS,
    ChartView,
    addressed,
    chart_address,
    chart_view,
    position,
    subject_query,
    table_view,
)

T = TypeVar("T")

LONGEST_QUERY = 32 * 1024
_MOST_FIELDS = 200
_KEYS_SECONDS = 5.0
_KINDS = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
_MEDIA_NAME = re.compile(r"[0-9a-f]{64}\.(png|webp|jpg|jpeg|gif)")
_FOR_EVER = {"Cache-Control": "private, max-age=31536000, immutable"}
_AN_HOUR = {"Cache-Control": "private, max-age=3600"}
TABS = ("", "code", "output", "files", "environment")


@final
class Pages:
    """The pages of one home.

    Args:
        reader: reads it.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._keys: tuple[float, Keys] = (-1e9, table.NO_KEYS)
        self.ending = asyncio.Event()
        self.streams = 0

    def app(self) -> Starlette:
        """Return the application, without a guard."""
        return Starlette(
            routes=[
                Route("/", self.home),
                Route("/table.csv", self.csv),
                Route("/group", self.group),
                Route("/compare", self.compare),
                Route("/chart", self.chart),
                Route("/chart.json", self.chart_json),
                Route("/report", self.report),
                Route("/stream", self.stream),
                Route("/plotly.js", self.plotly),
                Route("/static/{version}/{name}", self.static),
                Route("/runs/{ulid}", self.run),
                Route("/runs/{ulid}/code", self.run_code),
                Route("/runs/{ulid}/output", self.run_output),
                Route("/runs/{ulid}/files", self.run_files),
                Route("/runs/{ulid}/environment", self.run_environment),
                Route("/runs/{ulid}/file", self.run_file),
                Route("/runs/{ulid}/media/{name}", self.run_media),
            ],
            exception_handlers={
                HTTPException: self._say_http,
                NoFile: self._say_no_file,
                UsageError: self._say_usage,
                BackflipError: self._say_failed,
                Busy: self._say_busy,
            },
        )

    # --- pages ---

    async def home(self, request: Request) -> Response:
        """What runs now, and the table."""
        _check_size(request)
        view, keys = table_view(request.query_params), await self._known_keys()
        position = self._reader.changes.position
        shown = await self._reader.ask_once(view, lambda index: table.read_table(index, view, keys))
        asked = await self._reader.asked_now()
        return await self._page(
            "home.html",
            lambda: {"now": home.read_now(asked)},
            table=shown,
            view=view,
            live=addressed("/stream", [("home", "1"), ("since", position)]),
            csv=addressed("/table.csv", view.query(page=1)),
            most=table.MOST_EXPORTED,
            reading=self._reader.reading,
            place=str(self._reader.home),
        )

    async def csv(self, request: Request) -> Response:
        """The table as a file for spreadsheets."""
        _check_size(request)
        view, keys = table_view(request.query_params), await self._known_keys()
        text = await self._reader.ask(lambda index: table.csv_of(index, view, keys))
        return downloads.saved(text, f"{view.show}.csv", "text/csv; charset=utf-8")

    async def group(self, request: Request) -> Response:
        """The curves of a group, then its runs."""
        _check_size(request)
        name, view = request.query_params.get("name", ""), chart_view(request.query_params)
        since = self._reader.changes.position
        runs = await self._reader.ask(lambda index: runs_of_group(index, name))
        return await self._page(
            "group.html",
            lambda: {**self._charts([of_group(runs)], view, (), (name,)), **_of_group(runs)},
            name=name,
            own=[("name", name)],
            path="/group",
            live=self._live(since, view, groups=(name,)),
        )

    async def compare(self, request: Request) -> Response:
        """Runs and groups side by side: what differs first."""
        _check_size(request)
        view = chart_view(request.query_params)
        since = self._reader.changes.position
        chosen = _chosen(request)
        if not FEWEST <= len(chosen) <= MOST:
            raise UsageError(
                f"{len(chosen)} runs or groups are selected: {FEWEST} to {MOST} can be compared"
            )
        found = await self._reader.ask(lambda index: _runs(index, chosen))
        subjects = _subjects(chosen, found)
        runs, groups = _split(chosen)
        return await self._page(
            "compare.html",
            lambda: {
                **self._charts(subjects, view, runs, groups),
                "comparison": compare(
                    self._reader.home, [s.title for s in subjects], [of.rows for of in found]
                ),
                "subjects": subjects,
                "links": [_address(kind, key) for kind, key in chosen],
            },
            own=subject_query(runs, groups),
            path="/compare",
            live=self._live(since, view, runs, groups),
        )

    async def chart(self, request: Request) -> Response:
        """One chart by itself, with every place of it as a table."""
        _check_size(request)
        view, metric = chart_view(request.query_params), request.query_params.get("metric", "")
        chosen = _chosen(request)
        found = await self._reader.ask(lambda index: _runs(index, chosen))
        runs, groups = _split(chosen)
        own = [*subject_query(runs, groups), ("metric", metric)]
        interactive = request.query_params.get("interactive") == "1"
        return await self._page(
            "chart.html",
            lambda: self._one_chart(_subjects(chosen, found), metric, view),
            live="",
            metric=metric,
            own=own,
            path="/chart",
            links=[_address(kind, key) for kind, key in chosen],
            interactive=interactive,
            has_plotly=plotly_script() is not None,
            install=INSTALL,
            most_seeds=MOST_SEEDS,
            data=addressed("/chart.json", own + view.query()),
            here=addressed("/chart", own + view.query()),
        )

    async def chart_json(self, request: Request) -> Response:
        """What the interactive chart draws."""
        _check_size(request)
        view, metric = chart_view(request.query_params), request.query_params.get("metric", "")
        chosen = _chosen(request)
        found = await self._reader.ask(lambda index: _runs(index, chosen))
        subjects = _subjects(chosen, found)

        def read() -> dict[str, Any]:
            choice = choose(subjects, view, self._reader.shelf)
            return interactive_fields(subjects, metric, choice.axis, view)

        return JSONResponse(await self._reader.read(read))

    async def run(self, request: Request) -> Response:
        """A run at a glance, with its curves."""
        _check_size(request)
        view = chart_view(request.query_params)
        since = self._reader.changes.position
        row = await self._row(request)

        def read() -> dict[str, Any]:
            choice = choose([of_run(row)], view, self._reader.shelf)
            gallery = run_page.pictures_of(row.ulid, row.folder, choice.axis)
            marks = run_page.marks_of(gallery)
            charts = self._charts([of_run(row)], view, (row.ulid,), (), marks)
            broken = run_page.broken_of(row.folder, self._reader.shelf)
            end = output.page_before(row.folder)
            return charts | {"gallery": gallery, "end": end, "broken": broken}

        return await self._run_page(
            request,
            row,
            "run.html",
            read,
            own=[],
            path=f"/runs/{row.ulid}",
            live=self._live(since, view, (row.ulid,)),
        )

    async def run_code(self, request: Request) -> Response:
        """The archived code: the tree, one file, uncommitted changes, changes against another."""
        _check_size(request)
        row = await self._row(request)
        path, against = request.query_params.get("path"), request.query_params.get("against")
        against = against or row.parent
        parent = await self._reader.ask(lambda index: index.run(against) if against else None)
        read = partial(_code_fields, self._reader.home, row, path, parent)
        return await self._run_page(request, row, "run_code.html", read, live="")

    async def run_output(self, request: Request) -> Response:
        """What a run printed, a page at a time, its end first."""
        _check_size(request)
        since = self._reader.changes.position
        row = await self._row(request)
        before = position(request.query_params.get("before"))
        after = position(request.query_params.get("after"))

        live = self._live(since, None, (row.ulid,))

        def read() -> dict[str, Any]:
            if after is not None:
                return {"page": output.page_after(row.folder, after), "is_end": False, "live": ""}
            shown = output.page_before(row.folder, before)
            follows = before is None
            return {
                "page": shown,
                "is_end": follows,
                "live": f"{live}/{shown.end}" if follows else "",
            }

        return await self._run_page(request, row, "run_output.html", read)

    async def run_files(self, request: Request) -> Response:
        """The files of a run, to be downloaded."""
        row = await self._row(request)

        def read() -> dict[str, Any]:
            found, more = files.listed(row.folder)
            return {"files": found, "more": more, "folder": str(row.folder)}

        return await self._run_page(request, row, "run_files.html", read, live="")

    async def run_environment(self, request: Request) -> Response:
        """Packages, hardware, and where the code came from."""
        row = await self._row(request)
        return await self._run_page(request, row, "run_environment.html", dict, live="")

    # --- files ---

    async def run_file(self, request: Request) -> Response:
        """A file of a run as a download; one of our pictures as a picture."""
        row, path = await self._row(request), request.query_params.get("path", "")
        opening.checked_parts(path)
        ending = path.rpartition(".")[2].lower()
        if ending in run_page.IMAGES and "/" not in path:
            return await self._reader.read(lambda: downloads.picture(row.folder, path))
        if ending == "svg" and "/" not in path:
            return await self._reader.read(lambda: downloads.drawing(row.folder, path))
        return await self._reader.read(lambda: downloads.download(row.folder, path))

    async def run_media(self, request: Request) -> Response:
        """An image or a clip of a run."""
        row, name = await self._row(request), request.path_params["name"]
        if not _MEDIA_NAME.fullmatch(name):
            raise NoFile("not a picture")
        path = f"{run_page.MEDIA}/{name}"
        return await self._reader.read(lambda: downloads.picture(row.folder, path))

    async def report(self, request: Request) -> Response:
        """A run, a group or a comparison as one file to be kept."""
        _check_size(request)
        view, chosen = chart_view(request.query_params), _chosen(request)
        if not 1 <= len(chosen) <= MOST:
            raise UsageError(f"{len(chosen)} runs or groups are named: 1 to {MOST} can be reported")
        found = await self._reader.ask(lambda index: _runs(index, chosen))
        kinds = [kind for kind, _ in chosen]
        text = await self._reader.read(
            lambda: report(self._reader.home, found, kinds, view, self._reader.shelf)
        )
        return downloads.saved(text, "backflip-report.html", "text/html; charset=utf-8")

    async def static(self, request: Request) -> Response:
        """A script, a style sheet or the icon."""
        name, found = request.path_params["name"], static_files()
        if name not in found or request.path_params["version"] != static_version():
            raise HTTPException(404)
        kind = _KINDS[name.rpartition(".")[2]]
        return Response(found[name], media_type=kind, headers=_FOR_EVER)

    async def plotly(self, request: Request) -> Response:
        """Plotly.js out of its wheel."""
        path = plotly_script()
        if path is None:
            raise HTTPException(404, f"Plotly is not installed: {INSTALL}")
        data = await self._reader.read(path.read_bytes)
        return Response(data, media_type="text/javascript", headers=_AN_HOUR)

    # --- news ---

    async def stream(self, request: Request) -> Response:
        """What changed, as it changes."""
        _check_size(request)
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        if self.streams >= MOST_STREAMS:
            raise HTTPException(503, "too many pages are open: close some")
        query = request.query_params
        runs, groups = _split(_chosen(request))
        watched = Watched(
            runs=runs,
            groups=groups,
            home=query.get("home") == "1",
            view=chart_view(query) if query.get("draw") == "1" else None,
            output=query.get("output") == "1" and len(runs) == 1,
        )
        since = request.headers.get("last-event-id") or query.get("since", "")
        return EventStream(Live(self._reader, watched, since).events(self.ending), self._counted)

    def _counted(self, change: int) -> None:
        self.streams += change

    # --- parts ---

    async def _page(
        self, template: str, read: Callable[[], dict[str, Any]], **context: Any
    ) -> Response:
        html = await self._reader.read(lambda: render(template, **context, **read()))
        return HTMLResponse(html.encode("utf-8", "replace"))

    async def _run_page(
        self,
        request: Request,
        row: RunRow,
        template: str,
        read: Callable[[], dict[str, Any]],
        **context: Any,
    ) -> Response:
        relatives = await self._reader.ask(lambda index: run_page.relatives_of(index, row))

        def everything() -> dict[str, Any]:
            of_run_: RunFacts = run_page.read_facts(row, relatives)
            return {"of": of_run_, "facts": facts, **read()}

        tab = request.url.path.rpartition("/")[2]
        return await self._page(
            template, everything, row=row, tab=tab if tab in TABS else "", **context
        )

    def _charts(
        self,
        subjects: Sequence[Subject],
        view: ChartView,
        runs: Sequence[str],
        groups: Sequence[str],
        marks: tuple[Mark, ...] = (),
    ) -> dict[str, Any]:
        shelf = self._reader.shelf
        choice = choose(subjects, view, shelf)
        drawn = figures(subjects, choice.shown, choice.axis, view, shelf, marks)
        addresses = {
            figure.metric: chart_address(runs, groups, figure.metric, view) for figure in drawn
        }
        return {
            "choice": choice,
            "figures": drawn,
            "chart_addresses": addresses,
            "view": view,
            "smoothings": SMOOTHINGS,
            "report": addressed("/report", subject_query(runs, groups) + view.query(page=1)),
        }

    def _one_chart(
        self, subjects: Sequence[Subject], metric: str, view: ChartView
    ) -> dict[str, Any]:
        if not subjects:
            raise UsageError("no run or group is named: add run=ID or group=NAME to the address")
        shelf = self._reader.shelf
        choice = choose(subjects, view, shelf)
        marks = _marks_of_run(subjects[0], choice.axis) if len(subjects) == 1 else ()
        (figure,) = figures(subjects, [metric], choice.axis, view, shelf, marks)
        return {
            "figure": figure,
            "choice": choice,
            "view": view,
            "smoothings": SMOOTHINGS,
            "places": interactive_fields(subjects, metric, choice.axis, view)["lines"],
            "subjects": subjects,
        }

    def _live(
        self,
        since: str,
        view: ChartView | None,
        runs: Sequence[str] = (),
        groups: Sequence[str] = (),
    ) -> str:
        drawing = [("draw", "1"), *view.query()] if view is not None else [("output", "1")]
        return addressed("/stream", [*subject_query(runs, groups), *drawing, ("since", since)])

    async def _row(self, request: Request) -> RunRow:
        ulid = request.path_params["ulid"]
        if not is_ulid(ulid):
            raise NoFile("not a run's id")
        return await self._reader.ask(lambda index: row_of_run(index, ulid))

    async def _known_keys(self) -> Keys:
        read_at, keys = self._keys
        if time.monotonic() - read_at > _KEYS_SECONDS:
            keys = await self._reader.ask(lambda index: index.keys())
            self._keys = (time.monotonic(), keys)
        return keys

    # --- what went wrong ---

    async def _say_http(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        said = {404: "There is nothing at this address.", 405: "Nothing can be changed here."}
        plain = error.detail in ("Not Found", "Method Not Allowed")
        message = said[error.status_code] if plain else error.detail
        return await self._wrong(error.status_code, message)

    async def _say_no_file(self, request: Request, error: Exception) -> Response:
        return await self._wrong(404, f"There is no such file: {error}.")

    async def _say_usage(self, request: Request, error: Exception) -> Response:
        return await self._wrong(404, str(error))

    async def _say_failed(self, request: Request, error: Exception) -> Response:
        return await self._wrong(503, str(error))

    async def _say_busy(self, request: Request, error: Exception) -> Response:
        return await self._wrong(503, str(error))

    async def _wrong(self, status: int, message: str) -> Response:
        html = render("wrong.html", message=" ".join(message.split()), live="")
        return HTMLResponse(html.encode("utf-8", "replace"), status)


def _check_size(request: Request) -> None:
    """Refuse addresses that nobody types and no page of ours makes.

    Raises:
        HTTPException: 414.
    """
    query: bytes = request.scope["query_string"]
    if len(query) > LONGEST_QUERY or query.count(b"&") > _MOST_FIELDS:
        raise HTTPException(
            414, f"The address has more than {_MOST_FIELDS} fields, or is too long."
        )


def _chosen(request: Request) -> list[tuple[str, str]]:
    """Return the runs and groups that an address names, in its order, each once."""
    named = [item for item in request.query_params.multi_items() if item[0] in ("run", "group")]
    return list(dict.fromkeys(named))[: MOST + 1]


def _split(chosen: Sequence[tuple[str, str]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    runs = tuple(key for kind, key in chosen if kind == "run")
    return runs, tuple(key for kind, key in chosen if kind == "group")


def _runs(index: Index, chosen: Sequence[tuple[str, str]]) -> list[Runs]:
    return [
        runs_of_group(index, key) if kind == "group" else Runs([row_of_run(index, key)])
        for kind, key in chosen
    ]


def _subjects(chosen: Sequence[tuple[str, str]], found: Sequence[Runs]) -> list[Subject]:
    return [
        of_group(runs) if kind == "group" else of_run(runs.rows[0])
        for (kind, _), runs in zip(chosen, found, strict=True)
    ]


def _marks_of_run(subject: Subject, axis: str) -> tuple[Mark, ...]:
    """Return the pictures of a run as marks that lead to its page; of a group none."""
    if subject.kind != "run":
        return ()
    gallery = run_page.pictures_of(subject.key, subject.parts[0].folder, axis)
    return run_page.marks_of(gallery, f"/runs/{subject.key}")


def _address(kind: str, key: str) -> str:
    return table.group_address(key) if kind == "group" else f"/runs/{key}"


def _of_group(runs: Runs) -> dict[str, Any]:
    rows = runs.rows
    states = [row.state for row in rows]
    return {
        "rows": rows,
        "left_out": runs.left_out,
        "counts": table.ordered_states({state: states.count(state) for state in states}),
        "question": next((row.question for row in rows if row.question), ""),
        "colour": colour_of(rows[0].group),
        "run_title": table.run_title,
    }


def _code_fields(
    home_: Path, row: RunRow, path: str | None, parent: RunRow | None
) -> dict[str, Any]:
    snapshot = code.snapshot_of(row.folder)
    file = next((f for f in snapshot.files if f.path == path), None) if snapshot else None
    text: list[str] = []
    problem = "" if path is None or file else "There is no such file in the snapshot."
    if file is not None:
        try:
            text = code.text_of(home_, file)
        except NoFile as error:
            problem = f"This file is {error}."
    differs = parent is not None and snapshot is not None and code.has_code(parent.folder)
    difference = code.difference(home_, parent.folder, row.folder) if parent and differs else None
    patch, cut = code.patch_of(row.folder)
    return {
        "snapshot": snapshot,
        "path": path,
        "text": text,
        "problem": problem,
        "patch": patch,
        "patch_cut": cut,
        "parent": parent,
        "difference": difference,
    }
