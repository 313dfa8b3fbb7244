"""The handlers of the pages. All of them only read, but for the one that writes a note."""

from collections.abc import Callable
from typing import Any, final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from runshelf.errors import UsageError, UserFacingError
from runshelf.index.rows import RunRow
from runshelf.index.run_index import Index
from runshelf.web import manifest, run_files
from runshelf.web.drawing.metric_choice import choose
from runshelf.web.pages import (
    chart_page,
    code_page,
    group_page,
    home_page,
    notes_page,
    output_page,
    run_page,
    runs_table,
)
from runshelf.web.pages.compare_page import compare
from runshelf.web.pages.evidence import evidence_of
from runshelf.web.pages.run_tabs import RunTab, RunTabs
from runshelf.web.parameters import (
    Chosen,
    chart_view,
    chosen_subjects,
    position,
    table_view,
    with_query,
)
from runshelf.web.reader import Reader
from runshelf.web.requested import Handler, requested_run
from runshelf.web.serving.live_updates import LiveUpdates, Watched
from runshelf.web.subjects import Runs, Subject, row_of_run, runs_of, subject_of, subjects_of
from runshelf.web.templates import render


@final
class PageHandlers:
    """The pages of one home.

    Args:
        reader: reads the home.
        tabs: makes the tabs that the program adds to the pages of a run.
        token: what the guard wants to see in a request that writes a note; empty for pages that
            write nothing.
    """

    def __init__(self, reader: Reader, tabs: RunTabs, token: str) -> None:
        self._reader, self._tabs, self._token = reader, tabs, token

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
        view, row = chart_view(request.query_params), await requested_run(self._reader, request)
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
        row = await requested_run(self._reader, request)
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
        row = await requested_run(self._reader, request)
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
        row = await requested_run(self._reader, request)

        def read() -> dict[str, Any]:
            found, more = run_files.listed(row.folder)
            return {"files": found, "more": more, "folder": str(row.folder)}

        return await self._run_page(row, "files", "run_files.html", read)

    async def run_environment(self, request: Request) -> Response:
        """Hardware, packages and git repository of a run."""
        row = await requested_run(self._reader, request)
        return await self._run_page(row, "environment", "run_environment.html", dict)

    def tab(self, tab: RunTab) -> Handler:
        """Return the handler of a tab that the program adds."""

        async def show(request: Request) -> Response:
            row = await requested_run(self._reader, request)
            made = await self._tabs.content(tab.name, row.folder)
            return await self._run_page(row, tab.name, "run_tab.html", lambda: {"content": made})

        return show

    async def notes(self, request: Request) -> Response:
        """The notes of all logs, or those about one run."""
        words, named = (request.query_params.get(name, "") for name in ("q", "run"))
        about = (await self._reader.query(lambda i: row_of_run(i, named))).ulid if named else ""
        ids = [row.ulid for row in (await self._reader.summary()).newest]
        home, runs = self._reader.home, [*ids, about] if about else ids
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


def _subjects(chosen: Chosen, found: list[Runs]) -> list[Subject]:
    return subjects_of([kind for kind, _ in chosen], found)


def _address(kind: str, key: str) -> str:
    return runs_table.group_address(key) if kind == "group" else f"/runs/{key}"
