"""The routes of the archive's pages. All of them read; none writes."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from typing import Any, final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from runshelf.errors import UsageError, UserFacingError
from runshelf.index.rows import RunRow
from runshelf.store import opening
from runshelf.store.opening import NoFile
from runshelf.store.run import is_ulid
from runshelf.web import (
    code_page,
    downloads,
    run_files,
    home_page,
    manifest,
    output_page,
    run_page,
    runs_table,
)
from runshelf.web.charts import Mark
from runshelf.web.compare_page import compare
from runshelf.web.figures import choose, figures, places
from runshelf.web.live_updates import LiveUpdates, Watched
from runshelf.web.parameters import (
    SMOOTHINGS,
    ChartView,
    with_query,
    chart_address,
    chart_view,
    position,
    table_view,
)
from runshelf.web.reader import Busy, Reader
from runshelf.web.report import report
from runshelf.web.run_page import Gallery
from runshelf.web.subjects import (
    FEWEST,
    MOST,
    Runs,
    Subject,
    row_of_run,
    runs_of,
    subject_of,
)
from runshelf.web.templates import render, static_files, static_version

LONGEST_QUERY = 32 * 1024
_MOST_FIELDS = 200
MOST_STREAMS = 48
_KINDS = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
_MEDIA_NAME = re.compile(r"[0-9a-f]{64}\.(png|webp|jpg|jpeg|gif)")
_FOR_EVER = {"Cache-Control": "private, max-age=31536000, immutable"}
_HTTP = {404: "There is nothing at this address.", 405: "Nothing can be changed here."}

Chosen = tuple[tuple[str, str], ...]  # kind (`run` or `group`) and key of each subject


@final
class Pages:
    """The pages of one home.

    Args:
        reader: reads the home.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
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
                Route("/report", self.report),
                Route("/stream", self.stream),
                Route("/static/{version}/{name}", self.static),
                Route("/runs/{run}", self.run),
                Route("/runs/{run}/code", self.run_code),
                Route("/runs/{run}/output", self.run_output),
                Route("/runs/{run}/files", self.run_files),
                Route("/runs/{run}/environment", self.run_environment),
                Route("/runs/{run}/file", self.run_file),
                Route("/runs/{run}/media/{name}", self.run_media),
            ],
            exception_handlers={
                HTTPException: _http_error,
                NoFile: _no_file,
                UsageError: _usage_error,
                UserFacingError: _unavailable,
                Busy: _unavailable,
            },
        )

    # --- pages ---

    async def home(self, request: Request) -> Response:
        """What is running, and the table."""
        _check_size(request)
        view, keys = table_view(request.query_params), await self._reader.keys()
        live = await self._live(Watched())
        table = await self._reader.query_cached(
            view, lambda index: runs_table.read_table(index, view, keys)
        )
        known = await self._reader.summary()
        return await self._page(
            "home.html",
            lambda: {"summary": home_page.summarise(known)},
            table=table,
            view=view,
            live=live,
            csv=with_query("/table.csv", view.query(page=1)),
            most=runs_table.MOST_EXPORTED,
            reading=self._reader.reading,
            place=str(self._reader.home),
        )

    async def csv(self, request: Request) -> Response:
        """The table as a file for spreadsheets."""
        _check_size(request)
        view, keys = table_view(request.query_params), await self._reader.keys()
        text = await self._reader.query(lambda index: runs_table.csv_of(index, view, keys))
        return downloads.text_download(text, f"{view.show}.csv", "text/csv; charset=utf-8")

    async def group(self, request: Request) -> Response:
        """The curves of a group, then its runs."""
        _check_size(request)
        name, view = request.query_params.get("name", ""), chart_view(request.query_params)
        chosen: Chosen = (("group", name),)
        live = await self._live(Watched(chosen))
        (runs,) = await self._reader.query(lambda index: runs_of(index, chosen))
        states = [row.state for row in runs.rows]
        return await self._page(
            "group.html",
            lambda: self._charts(chosen, [subject_of("group", runs)], view),
            name=name,
            rows=runs.rows,
            left_out=runs.left_out,
            states_of=runs_table.ordered_states({state: states.count(state) for state in states}),
            question=next((row.question for row in runs.rows if row.question), ""),
            own=[("name", name)],
            path="/group",
            live=live,
        )

    async def compare(self, request: Request) -> Response:
        """Runs and groups side by side: what differs first."""
        _check_size(request)
        view, chosen = chart_view(request.query_params), _chosen(request, FEWEST, "compared")
        live = await self._live(Watched(chosen))
        found = await self._reader.query(lambda index: runs_of(index, chosen))
        subjects = _subjects(chosen, found)
        titles, rows = [subject.title for subject in subjects], [runs.rows for runs in found]
        return await self._page(
            "compare.html",
            lambda: {
                **self._charts(chosen, subjects, view),
                "comparison": compare(self._reader.home, titles, rows),
            },
            subjects=subjects,
            links=[_address(*one) for one in chosen],
            own=list(chosen),
            path="/compare",
            live=live,
        )

    async def chart(self, request: Request) -> Response:
        """One chart by itself, with every point of it as a table."""
        _check_size(request)
        view, metric = chart_view(request.query_params), request.query_params.get("metric", "")
        chosen = _chosen(request, 1, "drawn")
        found = await self._reader.query(lambda index: runs_of(index, chosen))
        subjects = _subjects(chosen, found)
        return await self._page(
            "chart.html",
            lambda: self._one_chart(subjects, metric, view),
            live="",
            metric=metric,
            subjects=subjects,
            own=[*chosen, ("metric", metric)],
            path="/chart",
            links=[_address(*one) for one in chosen],
        )

    async def run(self, request: Request) -> Response:
        """A run at a glance, with its curves."""
        _check_size(request)
        view, row = chart_view(request.query_params), await self._row(request)
        chosen: Chosen = (("run", row.ulid),)

        def read() -> dict[str, Any]:
            subjects = [subject_of("run", Runs([row]))]
            axis = choose(subjects, view, self._reader.cache).axis
            gallery = run_page.pictures_of(row.folder, axis)
            charts = self._charts(chosen, subjects, view, run_page.marks_of(gallery))
            broken = run_page.broken_of(row.folder, self._reader.cache)
            end = output_page.page_before(row.folder)
            return charts | {"gallery": gallery, "end": end, "broken": broken}

        live = await self._live(Watched(chosen))
        return await self._run_page(
            row, "", "run.html", read, own=[], path=f"/runs/{row.ulid}", live=live
        )

    async def run_code(self, request: Request) -> Response:
        """The archived code: the tree, one file, uncommitted changes, changes to another run."""
        _check_size(request)
        row = await self._row(request)
        path, against = request.query_params.get("path"), request.query_params.get("against")
        against = against or row.parent
        parent = await self._reader.query(lambda index: index.run(against) if against else None)
        home = self._reader.home
        return await self._run_page(
            row, "code", "run_code.html", lambda: code_page.read(home, row, path, parent)
        )

    async def run_output(self, request: Request) -> Response:
        """The output of a run, one page at a time, starting with the end."""
        _check_size(request)
        row = await self._row(request)
        before = position(request.query_params.get("before"))
        after = position(request.query_params.get("after"))
        is_end = before is None and after is None

        def read() -> dict[str, Any]:
            if after is not None:
                return {"page": output_page.page_after(row.folder, after)}
            return {"page": output_page.page_before(row.folder, before)}

        live = await self._live(Watched((("run", row.ulid),), output=True)) if is_end else ""
        return await self._run_page(
            row, "output", "run_output.html", read, is_end=is_end, live=live
        )

    async def run_files(self, request: Request) -> Response:
        """The files of a run, to be downloaded."""
        row = await self._row(request)

        def read() -> dict[str, Any]:
            found, more = run_files.listed(row.folder)
            return {"files": found, "more": more, "folder": str(row.folder)}

        return await self._run_page(row, "files", "run_files.html", read)

    async def run_environment(self, request: Request) -> Response:
        """Packages, hardware, and the git repository."""
        row = await self._row(request)
        return await self._run_page(row, "environment", "run_environment.html", dict)

    # --- files ---

    async def run_file(self, request: Request) -> Response:
        """A file of a run as a download; a picture of ours as a picture."""
        row, path = await self._row(request), request.query_params.get("path", "")
        opening.checked_parts(path)
        ending = path.rpartition(".")[2].lower()
        answer = downloads.download
        if "/" not in path and ending in run_page.IMAGES:
            answer = downloads.picture
        elif "/" not in path and ending == "svg":
            answer = downloads.drawing
        return await self._reader.read(lambda: answer(row.folder, path))

    async def run_media(self, request: Request) -> Response:
        """An image or a clip of a run."""
        row, name = await self._row(request), request.path_params["name"]
        if not _MEDIA_NAME.fullmatch(name):
            raise NoFile("not a picture")
        path = f"{run_page.MEDIA}/{name}"
        return await self._reader.read(lambda: downloads.picture(row.folder, path))

    async def report(self, request: Request) -> Response:
        """Runs and groups in one HTML file, to be saved."""
        _check_size(request)
        view, chosen = chart_view(request.query_params), _chosen(request, 1, "reported")
        found = await self._reader.query(lambda index: runs_of(index, chosen))
        kinds, reader = [kind for kind, _ in chosen], self._reader
        text = await reader.read(lambda: report(reader.home, found, kinds, view, reader.cache))
        return downloads.text_download(text, "runshelf-report.html", "text/html; charset=utf-8")

    async def static(self, request: Request) -> Response:
        """A script, a style sheet or the icon."""
        name, found = request.path_params["name"], static_files()
        if name not in found or request.path_params["version"] != static_version():
            raise HTTPException(404)
        kind = _KINDS[name.rpartition(".")[2]]
        return Response(found[name], media_type=kind, headers=_FOR_EVER)

    async def stream(self, request: Request) -> Response:
        """An event whenever what a page shows has changed."""
        _check_size(request)
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        if self.streams >= MOST_STREAMS:
            raise HTTPException(503, "too many pages are open: close some")
        query = request.query_params
        chosen = _chosen(request, 0, "watched")
        watched = Watched(chosen, query.get("output") == "1" and len(chosen) == 1)
        since = request.headers.get("last-event-id") or query.get("since", "")
        events = self._counted(LiveUpdates(self._reader, watched).events(since, self.ending))
        return StreamingResponse(events, media_type="text/event-stream")

    async def _counted(self, events: AsyncIterator[str]) -> AsyncIterator[str]:
        self.streams += 1
        try:
            async for event in events:
                yield event
        finally:
            self.streams -= 1

    # --- parts ---

    async def _page(
        self, template: str, read: Callable[[], dict[str, Any]], **context: Any
    ) -> Response:
        html = await self._reader.read(lambda: render(template, **context, **read()))
        return HTMLResponse(html.encode("utf-8", "replace"))

    async def _run_page(
        self,
        row: RunRow,
        tab: str,
        template: str,
        read: Callable[[], dict[str, Any]],
        *,
        live: str = "",
        **context: Any,
    ) -> Response:
        relatives = await self._reader.query(lambda index: run_page.relatives_of(index, row))

        def everything() -> dict[str, Any]:
            return {"head": run_page.read_head(row, relatives), **read()}

        context |= {"row": row, "tab": tab, "manifest": manifest, "live": live}
        return await self._page(template, everything, **context)

    def _charts(
        self,
        chosen: Chosen,
        subjects: list[Subject],
        view: ChartView,
        marks: tuple[Mark, ...] = (),
    ) -> dict[str, Any]:
        cache = self._reader.cache
        choice = choose(subjects, view, cache)
        drawn = figures(subjects, choice.shown, choice.axis, view, cache, marks)
        return {
            "choice": choice,
            "figures": drawn,
            "chart_addresses": {f.metric: chart_address(chosen, f.metric, view) for f in drawn},
            "view": view,
            "smoothings": SMOOTHINGS,
            "report": with_query("/report", [*chosen, *view.query(page=1)]),
        }

    def _one_chart(self, subjects: list[Subject], metric: str, view: ChartView) -> dict[str, Any]:
        cache = self._reader.cache
        choice = choose(subjects, view, cache)
        gallery, page = Gallery([], 0), f"/runs/{subjects[0].key}"
        if len(subjects) == 1 and subjects[0].kind == "run":
            gallery = run_page.pictures_of(subjects[0].parts[0].folder, choice.axis)
        marks = run_page.marks_of(gallery, page)
        (figure,) = figures(subjects, [metric], choice.axis, view, cache, marks)
        return {
            "figure": figure,
            "choice": choice,
            "view": view,
            "smoothings": SMOOTHINGS,
            "places": places(subjects, metric, choice.axis, view),
        }

    async def _live(self, watched: Watched) -> str:
        """Return the address of a page's stream, with the version that the page shows."""
        version = await LiveUpdates(self._reader, watched).version()
        output = [("output", "1")] if watched.output else []
        return with_query("/stream", [*watched.chosen, *output, ("since", version)])

    async def _row(self, request: Request) -> RunRow:
        run = request.path_params["run"]
        if not is_ulid(run):
            raise NoFile("not a run's id")
        return await self._reader.query(lambda index: row_of_run(index, run))


# --- errors ---


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    plain = error.detail in ("Not Found", "Method Not Allowed")
    return _error_page(error.status_code, _HTTP[error.status_code] if plain else error.detail)


async def _no_file(request: Request, error: Exception) -> Response:
    return _error_page(404, f"There is no such file: {error}.")


async def _usage_error(request: Request, error: Exception) -> Response:
    return _error_page(404, str(error))


async def _unavailable(request: Request, error: Exception) -> Response:
    return _error_page(503, str(error))


def _error_page(status: int, message: str) -> Response:
    html = render("error.html", message=" ".join(message.split()), live="")
    return HTMLResponse(html.encode("utf-8", "replace"), status)


# --- addresses ---


def _check_size(request: Request) -> None:
    """Refuse addresses far longer than any of ours.

    Raises:
        HTTPException: 414.
    """
    query: bytes = request.scope["query_string"]
    if len(query) > LONGEST_QUERY or query.count(b"&") > _MOST_FIELDS:
        raise HTTPException(
            414, f"The address has more than {_MOST_FIELDS} fields, or is too long."
        )


def _chosen(request: Request, least: int, what: str) -> Chosen:
    """Return the runs and groups that an address names, in its order, each once.

    Raises:
        UsageError: there are too few or too many.
    """
    items = request.query_params.multi_items()
    found = tuple(dict.fromkeys(item for item in items if item[0] in ("run", "group")))
    if not least <= len(found) <= MOST:
        raise UsageError(
            f"{len(found)} runs or groups are named: expected {least} to {MOST} to be {what};"
            " add run=ID or group=NAME to the address"
        )
    return found


def _subjects(chosen: Chosen, found: list[Runs]) -> list[Subject]:
    return [subject_of(kind, runs) for (kind, _), runs in zip(chosen, found, strict=True)]


def _address(kind: str, key: str) -> str:
    return runs_table.group_address(key) if kind == "group" else f"/runs/{key}"
