"""The page on which a person acts in an environment: its HTML, and what it asks the game for.

The page is the clock: it sends an action whenever one is due and draws what comes back. So nothing
moves while it is hidden, and a slow line makes a slow game, never a skipped step.
"""

import asyncio
import base64
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from typing import Any, Protocol, TypeVar, final, runtime_checkable

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from runshelf.errors import UsageError, UserFacingError
from runshelf.web.address import Endpoint
from runshelf.web.json_fields import Fields, read_fields

VIEWS = {"both": ("person", "agent"), "person": ("person",), "agent": ("agent",)}
SHARED = ("api.js", "dom.js", "icon.svg")  # of the labelling page's files
_KINDS = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}

T = TypeVar("T")


@runtime_checkable
class Game(Protocol):
    """What is played; it is called from one thread."""

    def describe(self) -> dict[str, Any]:
        """Return what a page needs to know once."""
        ...

    def begin(self) -> dict[str, Any]:
        """Begin the next episode; return what there is to see."""
        ...

    def act(self, action: Any) -> dict[str, Any]:
        """Take one env step; return what came of it."""
        ...

    def picture(self, which: str) -> bytes:
        """Return the present moment as a PNG: what the `agent` gets, or what a `person` sees."""
        ...


class AnotherPage(UsageError):
    """Another page has begun an episode since."""


@final
class Playing:
    """The page of one game. The page that began the last episode plays it; others are refused.

    Args:
        game: what is played.
        thread: the one thread it is asked in.
        endpoint: where the server listens.
    """

    def __init__(self, game: Game, thread: ThreadPoolExecutor, endpoint: Endpoint) -> None:
        self._game = game
        self._thread = thread
        self._endpoint = endpoint
        self._player = ""
        self._static = _read_static()
        self._page = Environment(
            loader=PackageLoader("backflip.inspect"), autoescape=True, undefined=StrictUndefined
        ).get_template("play.html")

    def app(self) -> Starlette:
        """Return the application, without a guard."""
        return Starlette(
            routes=[
                Route("/", self.page),
                Route("/static/{name}", self.static),
                Route("/api/game", self.describe),
                Route("/api/begin", self.begin, methods=["POST"]),
                Route("/api/act", self.act, methods=["POST"]),
                Route("/api/look", self.look, methods=["POST"]),
            ],
            exception_handlers={
                HTTPException: _say_http,
                AnotherPage: _say_another,
                UsageError: _say_refused,
                UserFacingError: _say_failed,
                Exception: _say_unexpected,
            },
        )

    async def page(self, request: Request) -> Response:
        """The page itself."""
        told = await self._ask(self._game.describe)
        html = self._page.render(env=told["env"], token=self._endpoint.token("same-site"))
        return HTMLResponse(html)

    async def static(self, request: Request) -> Response:
        """A script, a style sheet or a picture of the page."""
        name = request.path_params["name"]
        if name not in self._static:
            raise HTTPException(404)
        return Response(self._static[name], media_type=_KINDS[name.rpartition(".")[2]])

    async def describe(self, request: Request) -> Response:
        """What is played, and with which keys."""
        return JSONResponse(await self._ask(self._game.describe))

    async def begin(self, request: Request) -> Response:
        """A new episode, which from now on is this page's."""
        fields = read_fields(await request.body())
        player, view = fields.text("player"), self._view(fields)
        self._player = player
        return await self._answer(view, self._game.begin)

    async def act(self, request: Request) -> Response:
        """One env step."""
        fields = read_fields(await request.body())
        self._check(fields)
        action = fields.integer("action") if fields.has("action") else fields.numbers("actions")
        return await self._answer(self._view(fields), lambda: self._game.act(action))

    async def look(self, request: Request) -> Response:
        """The present moment once more, in another view."""
        fields = read_fields(await request.body())
        self._check(fields)
        return await self._answer(self._view(fields), dict)

    def _check(self, fields: Fields) -> None:
        if fields.text("player") != self._player:
            raise AnotherPage("this game is played in another window: begin an episode to go on")

    def _view(self, fields: Fields) -> str:
        view = fields.text("view")
        if view not in VIEWS:
            raise UsageError(f"`view` must be one of {', '.join(VIEWS)}")
        return view

    async def _answer(self, view: str, work: Callable[[], dict[str, Any]]) -> Response:
        """Return what `work` tells, with the pictures of the view asked for."""

        def play() -> dict[str, Any]:
            told = work()
            shown = {which: self._game.picture(which) for which in VIEWS[view]}
            return told | {name: base64.b64encode(data).decode() for name, data in shown.items()}

        return JSONResponse(await self._ask(play))

    async def _ask(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _read_static() -> dict[str, bytes]:
    folder = resources.files("backflip.inspect") / "static"
    shared = resources.files("backflip.labelling") / "static"
    own = {item.name: item.read_bytes() for item in folder.iterdir()}
    return own | {name: (shared / name).read_bytes() for name in SHARED}


async def _say_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = {404: "there is nothing at this address", 405: "this cannot be done with it"}
    plain = error.detail in ("Not Found", "Method Not Allowed")
    message = said[error.status_code] if plain else error.detail
    return JSONResponse({"error": message}, error.status_code, error.headers)


async def _say_another(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error), "problem": "another page"}, 409)


async def _say_refused(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error), "problem": "invalid"}, 422)


async def _say_failed(request: Request, error: Exception) -> Response:
    # The environment, most likely: the next env step will not be better.
    message = " ".join(str(error).split())
    return JSONResponse({"error": message, "problem": "failed"}, 422)


async def _say_unexpected(request: Request, error: Exception) -> Response:
    # The guard, to which the error goes on, tells whoever runs the server.
    return JSONResponse({"error": "something unexpected went wrong here"}, 500)
