"""The routes of the pages. All of them only read, but for the one that writes a note."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, final
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from runshelf.errors import UsageError, UserFacingError
from runshelf.index.rows import Outline, RunRow
from runshelf.index.run_index import Index
from runshelf.store import opening
from runshelf.store.opening import NoFile
from runshelf.store.run_ids import is_ulid
from runshelf.web import (
    chart_page,
    code_page,
    downloads,
    group_page,
    home_page,
    manifest,
    notes_page,
    output_page,
    run_files,
    run_page,
    run_tabs,
    runs_table,
)
from runshelf.web.compare_page import compare
from runshelf.web.error_pages import HANDLED, show_error
from runshelf.web.evidence import evidence_of, saved_comparison, sides_of
from runshelf.web.large_runs import LargeRuns, are_large
from runshelf.web.live_updates import LiveUpdates, Watched
from runshelf.web.metric_choice import choose
from runshelf.web.parameters import (
    Chosen,
    chart_view,
    check_size,
    chosen_subjects,
    position,
    table_view,
    with_query,
)
from runshelf.web.reader import Reader
from runshelf.web.report import report
from runshelf.web.subjects import (
    Runs,
    Subject,
    outlines_of,
    row_of_run,
    runs_of,
    subject_of,
    subjects_of,
    with_parents,
)
from runshelf.web.templates import render, static_files, static_version

Handler = Callable[[Request], Awaitable[Response]]

MOST_STREAMS = 48
_STATIC_TYPES = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
_HTML = "text/html; charset=utf-8"
_MEDIA_NAME = re.compile(r"[0-9a-f]{64}\.(png|webp|jpg|jpeg|gif)")
_IMMUTABLE = {"Cache-Control": "private, max-age=31536000, immutable"}


@final
class Pages:
    """The pages of one home.

    Args:
        reader: reads the home.
        large_runs: makes the pages of large runs; None to make them here.
        tabs: makes the tabs that the program adds to the pages of a run.
        token: what the guard wants to see in a request that writes a note; empty for pages that
            write nothing.
    """

    def __init__(
        self,
        reader: Reader,
        large_runs: LargeRuns | None = None,
        tabs: run_tabs.RunTabs | None = None,
        token: str = "",
    ) -> None:
        self._reader = reader
        self._large_runs = large_runs
        self._tabs = tabs or run_tabs.RunTabs(reader.home)
        self._token = token
        self.ending = asyncio.Event()
        self.streams = 0

    def app(self) -> Starlette:
        """Return the application, without a guard."""
        handlers: dict[str, Handler] = {
            "/": self.home,
            "/table.csv": self.csv,
            "/group": self._unless_large(self.group),
            "/compare": self._unless_large(self.compare),
            "/chart": self._unless_large(self.chart),
            "/report": self._unless_large(self.report),
            "/notes": self.notes,
            "/stream": self.stream,
            "/static/{version}/{name}": self.static,
            "/runs/{run}": self._unless_large(self.run),
            "/runs/{run}/code": self._unless_large(self.run_code),
            "/runs/{run}/output": self._unless_large(self.run_output),
            "/runs/{run}/files": self._unless_large(self.run_files),
            "/runs/{run}/environment": self._unless_large(self.run_environment),
            "/runs/{run}/file": self.run_file,
            "/runs/{run}/media/{name}": self.run_media,
        }
        handlers |= {f"/runs/{{run}}/{tab.name}": self._tab(tab) for tab in self._tabs.tabs}
        for path in [path for path in handlers if path.startswith("/runs/")]:
            handlers[path] = self._with_whole_id(handlers[path])
        routes = [Route(path, _with_size_check(handler)) for path, handler in handlers.items()]
        if self._token:
            routes.append(Route("/notes", self.write_note, methods=["POST"]))
        return Starlette(routes=routes, exception_handlers=dict.fromkeys(HANDLED, show_error))

    # --- pages ---

    async def home(self, request: Request) -> Response:
        """The home page: the summary and the table."""
        view, keys = table_view(request.query_params), await self._reader.keys()
        live = await self._live(Watched())
        table = await self._reader.query_cached(
            view, lambda index: runs_table.read_table(index, view, keys)
        )
        known = await self._reader.summary()
        return await self._page(
            "home.html",
            lambda: {"summary": home_page.summarise(self._reader.home, known)},
            table=table,
            view=view,
            live=live,
            csv=with_query("/table.csv", view.query(page=1)),
            most=runs_table.MOST_EXPORTED,
            reading=self._reader.reading,
            place=str(self._reader.home.absolute()),
        )

    async def csv(self, request: Request) -> Response:
        """The table as CSV."""
        view = table_view(request.query_params)
        text = await self._reader.query(lambda index: runs_table.csv_of(index, view))
        return downloads.text_download(text, f"{view.show}.csv", "text/csv; charset=utf-8")

    async def group(self, request: Request) -> Response:
        """A group: its curves and runs."""
        name, view = request.query_params.get("name", ""), chart_view(request.query_params)
        chosen: Chosen = (("group", name),)
        live = await self._live(Watched(chosen))
        (runs,) = await self._reader.query(lambda index: runs_of(index, chosen))
        others = await self._reader.query(
            lambda index: group_page.candidates(index, name, runs.rows[0])
        )
        states = [row.state for row in runs.rows]
        return await self._page(
            "group.html",
            lambda: {
                **chart_page.charts(chosen, [subject_of("group", runs)], view, self._reader.cache),
                "contents": group_page.contents(name, runs.rows, others),
            },
            name=name,
            rows=runs.rows,
            found=runs.result,
            left_out=runs.left_out,
            states_of=runs_table.ordered_states({state: states.count(state) for state in states}),
            question=next((row.question for row in runs.rows if row.question), ""),
            own=[("name", name)],
            path="/group",
            live=live,
        )

    async def compare(self, request: Request) -> Response:
        """A comparison of runs and groups: differences, then curves."""
        view, chosen = chart_view(request.query_params), chosen_subjects(request, 2, "compared")
        live = await self._live(Watched(chosen))
        found = await self._reader.query(lambda index: runs_of(index, chosen))
        subjects = _subjects(chosen, found)
        titles, rows = [subject.title for subject in subjects], [runs.rows for runs in found]
        return await self._page(
            "compare.html",
            lambda: {
                **chart_page.charts(chosen, subjects, view, self._reader.cache),
                "comparison": compare(
                    self._reader.home, titles, rows, [runs.result for runs in found]
                ),
                "evidence": evidence_of(self._reader.home, subjects, rows),
            },
            subjects=subjects,
            links=[_address(*subject) for subject in chosen],
            own=list(chosen),
            path="/compare",
            live=live,
        )

    async def chart(self, request: Request) -> Response:
        """One large chart with a table of its points."""
        view, metric = chart_view(request.query_params), request.query_params.get("metric", "")
        chosen = chosen_subjects(request, 1, "drawn")
        found = await self._reader.query(lambda index: runs_of(index, chosen))
        subjects = _subjects(chosen, found)
        return await self._page(
            "chart.html",
            lambda: chart_page.single_chart(subjects, metric, view, self._reader.cache),
            live="",
            metric=metric,
            subjects=subjects,
            own=[*chosen, ("metric", metric)],
            path="/chart",
            links=[_address(*subject) for subject in chosen],
        )

    async def run(self, request: Request) -> Response:
        """A run: curves, pictures, configuration, end of the output."""
        view, row = chart_view(request.query_params), await self._row(request)
        chosen: Chosen = (("run", row.ulid),)
        cache = self._reader.cache

        def read() -> dict[str, Any]:
            subjects = [subject_of("run", Runs([row]))]
            gallery = run_page.pictures_of(row.folder, choose(subjects, view, cache).axis)
            charts = chart_page.charts(chosen, subjects, view, cache, run_page.marks_of(gallery))
            broken = run_page.broken_of(row.folder, cache)
            end = output_page.page_before(row.folder)
            return charts | {"gallery": gallery, "end": end, "broken": broken}

        live = await self._live(Watched(chosen))
        return await self._run_page(
            row, "", "run.html", read, own=[], path=f"/runs/{row.ulid}", live=live
        )

    async def run_code(self, request: Request) -> Response:
        """The code of a run: files, uncommitted changes, changes since another run."""
        row = await self._row(request)
        path = request.query_params.get("path")
        against = request.query_params.get("against")

        def find(index: Index) -> RunRow | None:
            if against:
                return row_of_run(index, against)
            return index.run(row.parent) if row.parent else None

        parent = await self._reader.query(find)
        home = self._reader.home
        return await self._run_page(
            row, "code", "run_code.html", lambda: code_page.read(home, row, path, parent)
        )

    async def run_output(self, request: Request) -> Response:
        """One page of the output of a run; by default the last one."""
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
        """The files of a run, with links to download them."""
        row = await self._row(request)

        def read() -> dict[str, Any]:
            found, more = run_files.listed(row.folder)
            return {"files": found, "more": more, "folder": str(row.folder)}

        return await self._run_page(row, "files", "run_files.html", read)

    async def run_environment(self, request: Request) -> Response:
        """Hardware, packages and git repository of a run."""
        row = await self._row(request)
        return await self._run_page(row, "environment", "run_environment.html", dict)

    def _tab(self, tab: run_tabs.RunTab) -> Handler:
        """Return the handler of a tab that the program adds."""

        async def show(request: Request) -> Response:
            row = await self._row(request)
            made = await self._tabs.content(tab.name, row.folder)
            return await self._run_page(row, tab.name, "run_tab.html", lambda: {"content": made})

        return show

    async def notes(self, request: Request) -> Response:
        """The notes of all logs, or those about one run."""
        words, named = (request.query_params.get(name, "") for name in ("q", "run"))
        about = (await self._reader.query(lambda i: row_of_run(i, named))).ulid if named else ""
        ids = [row.ulid for row in (await self._reader.summary()).newest]
        home, runs = self._reader.home, [*ids, *([about] if about else [])]
        return await self._page(
            "notes.html",
            lambda: notes_page.contents(home, runs, words, about),
            words=words,
            about=about,
            token=self._token,
            live="",
        )

    async def write_note(self, request: Request) -> Response:
        """Write a note; the guard has checked the token of the request."""
        body = await request.body()
        try:
            note = await self._reader.read(lambda: notes_page.write(self._reader.home, body))
        except HTTPException as error:
            return JSONResponse({"error": error.detail}, error.status_code)
        except UserFacingError as error:
            status = 422 if isinstance(error, UsageError) else 503
            return JSONResponse({"error": " ".join(str(error).split())}, status)
        return JSONResponse({"id": note.id, "log": note.log}, 201)

    # --- files ---

    async def run_file(self, request: Request) -> Response:
        """A file of a run as a download; pictures at the top of its folder can be shown."""
        row, path = await self._row(request), request.query_params.get("path", "")
        opening.checked_parts(path)
        extension = path.rpartition(".")[2].lower()
        response = downloads.download
        if "/" not in path and extension in run_page.IMAGES:
            response = downloads.picture
        elif "/" not in path and extension == "svg":
            response = downloads.drawing
        return await self._reader.read(lambda: response(row.folder, path))

    async def run_media(self, request: Request) -> Response:
        """An image or a clip of a run."""
        row, name = await self._row(request), request.path_params["name"]
        if not _MEDIA_NAME.fullmatch(name):
            raise NoFile("not a picture")
        path = f"{run_page.MEDIA}/{name}"
        return await self._reader.read(lambda: downloads.picture(row.folder, path))

    async def report(self, request: Request) -> Response:
        """Runs and groups as one HTML file; several that can be compared, as a comparison."""
        view, chosen = chart_view(request.query_params), chosen_subjects(request, 1, "reported")
        found = await self._reader.query(lambda index: runs_of(index, chosen))
        kinds, reader = [kind for kind, _ in chosen], self._reader
        if len(chosen) > 1:
            sides = await reader.query(lambda index: sides_of(index, chosen))
            text = await reader.read(lambda: saved_comparison(reader.home, sides))
            if text is not None:
                return downloads.text_download(text, "runshelf-comparison.html", _HTML)
        text = await reader.read(lambda: report(reader.home, found, kinds, view, reader.cache))
        return downloads.text_download(text, "runshelf-report.html", _HTML)

    async def static(self, request: Request) -> Response:
        """A script, the style sheet or the icon."""
        name, found = request.path_params["name"], static_files()
        if name not in found or request.path_params["version"] != static_version():
            raise HTTPException(404)
        kind = _STATIC_TYPES[name.rpartition(".")[2]]
        return Response(found[name], media_type=kind, headers=_IMMUTABLE)

    async def stream(self, request: Request) -> Response:
        """A stream with an event for each change of a page."""
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        if self.streams >= MOST_STREAMS:
            raise HTTPException(503, "too many pages are open: close some")
        query = request.query_params
        chosen = chosen_subjects(request, 0, "watched")
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

    # --- shared by the pages ---

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

        def read_with_head() -> dict[str, Any]:
            return {"head": run_page.read_head(row, relatives), **read()}

        context |= {"row": row, "tab": tab, "manifest": manifest, "live": live}
        context["more_tabs"] = [(one.name, one.label) for one in self._tabs.tabs]
        return await self._page(template, read_with_head, **context)

    async def _live(self, watched: Watched) -> str:
        """Return the address of a page's stream, which contains the current version."""
        version = await LiveUpdates(self._reader, watched).version()
        output = [("output", "1")] if watched.output else []
        return with_query("/stream", [*watched.chosen, *output, ("since", version)])

    async def _row(self, request: Request) -> RunRow:
        run = request.path_params["run"]
        return await self._reader.query(lambda index: row_of_run(index, run))

    def _unless_large(self, handler: Handler) -> Handler:
        """Return a handler that leaves pages of large runs to their own process."""
        large_runs = self._large_runs
        if large_runs is None:
            return handler

        async def chosen(request: Request) -> Response:
            named = _named(request)

            def find(index: Index) -> list[Outline]:
                found = outlines_of(index, named)
                return with_parents(index, found) if len(found) == 1 else found

            outlines = await self._reader.query(find)
            if await self._reader.read(lambda: are_large(outlines)):
                return await large_runs.page(request)
            return await handler(request)

        return chosen

    def _with_whole_id(self, handler: Handler) -> Handler:
        """Return a handler that redirects from a part of a run's id, or its name, to the run."""

        async def redirected(request: Request) -> Response:
            if is_ulid(request.path_params["run"]):
                return await handler(request)
            row = await self._row(request)
            rest = request.url.path.removeprefix("/runs/").partition("/")[2]
            path = quote(f"/runs/{row.ulid}/{rest}".rstrip("/"))
            query = request.url.query
            return RedirectResponse(f"{path}?{query}" if query else path, 307)

        return redirected


def _with_size_check(handler: Handler) -> Handler:
    async def checked(request: Request) -> Response:
        check_size(request)
        return await handler(request)

    return checked


def _named(request: Request) -> Chosen:
    """Return the runs and groups that a page shows."""
    if "run" in request.path_params:
        against = (
            request.query_params.get("against") if request.url.path.endswith("/code") else None
        )
        return (("run", request.path_params["run"]), *([("run", against)] if against else []))
    if request.url.path == "/group":
        return (("group", request.query_params.get("name", "")),)
    return chosen_subjects(request, 0, "shown")


def _subjects(chosen: Chosen, found: list[Runs]) -> list[Subject]:
    return subjects_of([kind for kind, _ in chosen], found)


def _address(kind: str, key: str) -> str:
    return runs_table.group_address(key) if kind == "group" else f"/runs/{key}"
