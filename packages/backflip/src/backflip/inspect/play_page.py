"""The page on which a person plays an environment: its HTML and its HTTP API.

The page drives the game: it sends an action when one is due and draws the answer. So the game
pauses while the page is hidden, and a slow connection slows it down without skipping steps.
"""

import asyncio
import base64
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from typing import Any, TypeVar, final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from backflip.inspect.game import Game
from runshelf.errors import UsageError, UserFacingError
from runshelf.web.serving.address import Endpoint
from runshelf.web.serving.json_fields import Fields, read_fields

VIEWS = {"both": ("person", "agent"), "person": ("person",), "agent": ("agent",)}
SHARED = ("api.js", "dom.js", "icon.svg")  # files of the labelling page used here
_KINDS = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}

T = TypeVar("T")


class AnotherPage(UsageError):
    """Another page has begun an episode since this page's last request."""


@final
class PlayPage:
    """The web application of one game.

    Only the browser page that began the current episode can act in it.

    Args:
        game: the game.
        thread: the single thread that calls the game.
        endpoint: the server's address.
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
        """Return the application, without the guard that checks tokens."""
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
                HTTPException: _http_error,
                AnotherPage: _another_page,
                UsageError: _invalid_request,
                UserFacingError: _game_failed,
                Exception: _unexpected_error,
            },
        )

    async def page(self, request: Request) -> Response:
        """The HTML page."""
        facts = await self._call(self._game.describe)
        html = self._page.render(env=facts["env"], token=self._endpoint.token("same-site"))
        return HTMLResponse(html)

    async def static(self, request: Request) -> Response:
        """A script, a style sheet or an image."""
        name = request.path_params["name"]
        if name not in self._static:
            raise HTTPException(404)
        return Response(self._static[name], media_type=_KINDS[name.rpartition(".")[2]])

    async def describe(self, request: Request) -> Response:
        """The facts of the game, with its key bindings."""
        return JSONResponse(await self._call(self._game.describe))

    async def begin(self, request: Request) -> Response:
        """Begin an episode, which then belongs to this page."""
        fields = read_fields(await request.body())
        player, view = fields.text("player"), self._view(fields)
        self._player = player
        return await self._answer(view, self._game.begin)

    async def act(self, request: Request) -> Response:
        """Take one env step."""
        fields = read_fields(await request.body())
        self._check(fields)
        action = fields.integer("action") if fields.has("action") else fields.numbers("actions")
        return await self._answer(self._view(fields), lambda: self._game.act(action))

    async def look(self, request: Request) -> Response:
        """Return the current state again, in another view."""
        fields = read_fields(await request.body())
        self._check(fields)
        return await self._answer(self._view(fields), dict)

    def _check(self, fields: Fields) -> None:
        if fields.text("player") != self._player:
            raise AnotherPage("this game is played in another window: begin an episode here")

    def _view(self, fields: Fields) -> str:
        view = fields.text("view")
        if view not in VIEWS:
            raise UsageError(f"`view` must be one of {', '.join(VIEWS)}")
        return view

    async def _answer(self, view: str, work: Callable[[], dict[str, Any]]) -> Response:
        """Return the result of `work` with the pictures of the requested view."""

        def play() -> dict[str, Any]:
            fields = work()
            shown = {which: self._game.picture(which) for which in VIEWS[view]}
            return fields | {name: base64.b64encode(data).decode() for name, data in shown.items()}

        return JSONResponse(await self._call(play))

    async def _call(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _read_static() -> dict[str, bytes]:
    folder = resources.files("backflip.inspect") / "static"
    shared = resources.files("backflip.labelling") / "static"
    own = {item.name: item.read_bytes() for item in folder.iterdir()}
    return own | {name: (shared / name).read_bytes() for name in SHARED}


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    messages = {404: "there is nothing at this address", 405: "this method is not allowed here"}
    plain = error.detail in ("Not Found", "Method Not Allowed")
    message = messages[error.status_code] if plain else error.detail
    return JSONResponse({"error": message}, error.status_code, error.headers)


async def _another_page(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error), "problem": "another page"}, 409)


async def _invalid_request(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error), "problem": "invalid"}, 422)


async def _game_failed(request: Request, error: Exception) -> Response:
    # Most likely the environment failed, so further env steps would fail too.
    message = " ".join(str(error).split())
    return JSONResponse({"error": message, "problem": "failed"}, 422)


async def _unexpected_error(request: Request, error: Exception) -> Response:
    # Starlette raises the error again; the guard prints it in the server's terminal.
    return JSONResponse({"error": "an unexpected error occurred on the server"}, 500)
