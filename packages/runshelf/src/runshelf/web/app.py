"""The routes of the pages, and what applies to many of them."""

import asyncio
from typing import final
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from runshelf.index.rows import Outline
from runshelf.index.run_index import Index
from runshelf.store.run_ids import is_ulid
from runshelf.web.pages.error_pages import HANDLED, show_error
from runshelf.web.pages.file_handlers import FileHandlers
from runshelf.web.pages.page_handlers import PageHandlers
from runshelf.web.pages.run_tabs import RunTabs
from runshelf.web.parameters import check_size
from runshelf.web.reader import Reader
from runshelf.web.requested import Handler, requested_run, requested_subjects
from runshelf.web.serving.event_streams import EventStreams
from runshelf.web.serving.large_runs import LargeRuns, are_large
from runshelf.web.subjects import outlines_of, with_parents


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
        tabs: RunTabs | None = None,
        token: str = "",
    ) -> None:
        self._reader = reader
        self._large_runs = large_runs
        self._tabs = tabs or RunTabs(reader.home)
        self._token = token
        self.ending = asyncio.Event()

    def app(self) -> Starlette:
        """Return the application, without a guard."""
        pages = PageHandlers(self._reader, self._tabs, self._token)
        files = FileHandlers(self._reader)
        streams = EventStreams(self._reader, self.ending)
        handlers: dict[str, Handler] = {
            "/": pages.home,
            "/table.csv": files.csv,
            "/group": self._unless_large(pages.group),
            "/compare": self._unless_large(pages.compare),
            "/chart": self._unless_large(pages.chart),
            "/report": self._unless_large(files.report),
            "/notes": pages.notes,
            "/stream": streams.stream,
            "/static/{version}/{name}": files.static,
            "/runs/{run}": self._unless_large(pages.run),
            "/runs/{run}/code": self._unless_large(pages.run_code),
            "/runs/{run}/output": self._unless_large(pages.run_output),
            "/runs/{run}/files": self._unless_large(pages.run_files),
            "/runs/{run}/environment": self._unless_large(pages.run_environment),
            "/runs/{run}/file": files.run_file,
            "/runs/{run}/media/{name}": files.run_media,
        }
        handlers |= {f"/runs/{{run}}/{tab.name}": pages.tab(tab) for tab in self._tabs.tabs}
        for path in [path for path in handlers if path.startswith("/runs/")]:
            handlers[path] = self._with_whole_id(handlers[path])
        routes = [Route(path, _with_size_check(handler)) for path, handler in handlers.items()]
        if self._token:
            routes.append(Route("/notes", pages.write_note, methods=["POST"]))
        return Starlette(routes=routes, exception_handlers=dict.fromkeys(HANDLED, show_error))

    def _unless_large(self, handler: Handler) -> Handler:
        """Return a handler that leaves pages of large runs to their own process."""
        large_runs = self._large_runs
        if large_runs is None:
            return handler

        async def chosen(request: Request) -> Response:
            named = requested_subjects(request)

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
            row = await requested_run(self._reader, request)
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
