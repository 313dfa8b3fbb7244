"""The web application of the labelling page: its HTML and its JSON interface.

An answer is on disk before it is acknowledged. A refused request gets a 4xx status and a sentence,
and writes nothing.
"""

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator
from importlib import resources
from typing import Any, final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from backflip.labelling.page_state import listed_fields, opinion_fields, pair_fields, state_fields
from backflip.labelling.people_input import checked_name
from backflip.labelling.refused import Refused
from backflip.labelling.run_page import run_page_address
from backflip.labelling.service import LabelService
from backflip.preferences.films import FILMS, read_film
from runshelf.errors import DamagedFile, UserFacingError
from runshelf.web.serving.address import Endpoint
from runshelf.web.serving.json_fields import Fields, InvalidField, read_fields

MOST_STREAMS = 48
POLL_SECONDS = 0.25  # between two checks for a new state
HEARTBEAT_SECONDS = 15.0

_STATUS: dict[str, int] = {"unknown": 404, "answered": 409, "not yours": 403, "invalid": 422}
_FILM = re.compile(r"[0-9a-f]{64}\.webp")
_MEDIA_TYPES = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
_CACHE_FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}


@final
class LabellingApp:
    """The labelling page of one run.

    Args:
        service: gives access to the run's label queue.
        endpoint: where the server listens.
        who: default name of a labeller.

    Attributes:
        ending: set when the server is about to end: event streams send the last state and end.
        streams: number of open event streams.
    """

    def __init__(self, service: LabelService, endpoint: Endpoint, who: str) -> None:
        self._service = service
        self._endpoint = endpoint
        self._who = who
        self._static = _read_static()
        self._page = Environment(
            loader=PackageLoader("backflip.labelling"), autoescape=True, undefined=StrictUndefined
        ).get_template("label.html")
        self.ending = asyncio.Event()
        self.streams = 0

    def app(self) -> Starlette:
        """Return the application without the guard that checks tokens."""
        return Starlette(
            routes=[
                Route("/", self.page),
                Route("/static/{name}", self.static),
                Route("/films/{name}", self.film),
                Route("/api/state", self.state),
                Route("/api/events", self.events),
                Route("/api/take", self.take, methods=["POST"]),
                Route("/api/give_back", self.give_back, methods=["POST"]),
                Route("/api/answer", self.answer, methods=["POST"]),
                Route("/api/mark", self.mark, methods=["POST"]),
                Route("/api/undo", self.undo, methods=["POST"]),
                Route("/api/redo", self.redo, methods=["POST"]),
                Route("/api/correct", self.correct, methods=["POST"]),
                Route("/api/answers", self.answers),
                Route("/api/stay", self.stay, methods=["POST"]),
                Route("/api/leave", self.leave, methods=["POST"]),
                Route("/api/goal", self.goal, methods=["POST"]),
                Route("/api/enough", self.enough, methods=["POST"]),
            ],
            exception_handlers={
                HTTPException: _on_http_error,
                Refused: _on_refused,
                InvalidField: _on_invalid,
                UserFacingError: _on_failed,
                Exception: _on_unexpected,
            },
        )

    async def page(self, request: Request) -> Response:
        """Return the page's HTML."""
        state = await self._state(self._who)
        html = self._page.render(
            run=self._service.folder.name,
            env=state["status"]["env"],
            who=self._who,
            goal=state["goal"],
            kind=state["kind"],
            state=state,
            ask_name=not self._endpoint.loopback,
            token=self._endpoint.token("same-site"),
            modules=sorted(name for name in self._static if name.endswith(".js")),
        )
        return HTMLResponse(html)

    async def static(self, request: Request) -> Response:
        """Return a script, style sheet or picture of the page."""
        name = request.path_params["name"]
        if name not in self._static:
            raise HTTPException(404)
        return Response(self._static[name], media_type=_MEDIA_TYPES[name.rpartition(".")[2]])

    async def film(self, request: Request) -> Response:
        """Return a film. Its name is the hash of its content, so browsers may cache it."""
        name, folder = request.path_params["name"], self._service.folder / FILMS
        if not _FILM.fullmatch(name) or not (folder / name).is_file():
            raise HTTPException(404, "there is no such film")
        try:
            data = await asyncio.to_thread(read_film, folder, name)
        except DamagedFile as error:
            raise HTTPException(410, str(error)) from error
        return Response(data, media_type="image/webp", headers=_CACHE_FOREVER)

    async def state(self, request: Request) -> Response:
        """Return the state of labelling and training."""
        return JSONResponse(await self._state(self._labeller(request)))

    async def events(self, request: Request) -> Response:
        """Stream the state of labelling and training at every change (server-sent events)."""
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        if self.streams >= MOST_STREAMS:
            raise HTTPException(503, "too many pages are open: close some")
        stream = self._stream(self._labeller(request))
        return StreamingResponse(stream, media_type="text/event-stream")

    async def take(self, request: Request) -> Response:
        """Return the next pairs for a person."""
        fields = await _fields(request)
        who, without, place = fields.text("who"), fields.integers("without"), _place(fields)
        # `call`, not `write`: other pages need no update when someone takes pairs.
        pairs = await self._service.call(lambda queue: queue.take(who, without, place))
        return JSONResponse({"pairs": [pair_fields(pair) for pair in pairs]})

    async def answer(self, request: Request) -> Response:
        """Record an answer; return the label's id, the model's opinion and the tally."""
        fields = await _fields(request)
        query, who = fields.integer("query"), fields.text("who")
        answer = fields.text_or_items("answer")
        seconds, attempt = fields.number("seconds"), fields.text("attempt")
        done, tally = await self._service.write(
            lambda queue: (queue.answer(query, answer, who, seconds, attempt), queue.tally(who))
        )
        opinion = opinion_fields(done.opinion)
        return JSONResponse({"label": done.label, "opinion": opinion, "tally": tally._asdict()})

    async def mark(self, request: Request) -> Response:
        """Keep what a person has said of a set so far."""
        fields = await _fields(request)
        query, who, marks = fields.integer("query"), fields.text("who"), fields.items("marks")
        await self._service.call(lambda queue: queue.mark(query, marks, who))
        return JSONResponse({})

    async def give_back(self, request: Request) -> Response:
        """Return pairs that a person holds to the queue."""
        fields = await _fields(request)
        who, queries = fields.text("who"), fields.integers("queries")
        await self._service.write(lambda queue: queue.give_back(who, queries))
        return JSONResponse({})

    async def stay(self, request: Request) -> Response:
        """Record that a person is still at their page: they keep their pairs."""
        fields = await _fields(request)
        who, place = checked_name(fields.text("who")), _place(fields)
        await self._service.call(lambda queue: queue.leases.renew(who, place))
        return JSONResponse({})

    async def leave(self, request: Request) -> Response:
        """Record that a person closed their page: others may take their pairs."""
        fields = await _fields(request)
        who, place = checked_name(fields.text("who")), _place(fields)
        await self._service.call(lambda queue: queue.leases.end(who, place))
        return JSONResponse({})

    async def undo(self, request: Request) -> Response:
        """Undo a person's newest answer or correction; return its pair or the answer before."""
        fields = await _fields(request)
        who, attempt = fields.text("who"), fields.text("attempt")
        undone, tally = await self._service.write(
            lambda queue: (queue.undo(who, attempt), queue.tally(who))
        )
        pair = undone.prompt and pair_fields(undone.prompt)
        fields = {"query": undone.query, "pair": pair, "answer": undone.answer}
        return JSONResponse(fields | {"tally": tally._asdict()})

    async def redo(self, request: Request) -> Response:
        """Restore the answer or correction that a person undid last; return pair and answer."""
        fields = await _fields(request)
        who, attempt = fields.text("who"), fields.text("attempt")
        redone, tally = await self._service.write(
            lambda queue: (queue.redo(who, attempt), queue.tally(who))
        )
        return JSONResponse(redone._asdict() | {"tally": tally._asdict()})

    async def answers(self, request: Request) -> Response:
        """Return a part of the list of a person's answers, newest first."""
        who, before = self._labeller(request), request.query_params.get("before", "")
        if before and not (before.isascii() and before.isdecimal() and len(before) < 19):
            raise InvalidField("`before` must be a whole number")
        smaller = int(before) if before else None
        listed = await self._service.call(lambda queue: queue.own_answers(who, smaller))
        return JSONResponse({"answers": [listed_fields(one) for one in listed]})

    async def correct(self, request: Request) -> Response:
        """Replace a person's own answer by another one; return the new record's id."""
        fields = await _fields(request)
        label, answer, who = fields.integer("label"), fields.text("answer"), fields.text("who")
        attempt = fields.text("attempt")
        corrected, tally = await self._service.write(
            lambda queue: (queue.correct(label, answer, who, attempt), queue.tally(who))
        )
        return JSONResponse({"label": corrected, "tally": tally._asdict()})

    async def goal(self, request: Request) -> Response:
        """Record a new goal; return the stored text."""
        fields = await _fields(request)
        text, who = fields.text("text"), fields.text("who")
        kept = await self._service.write(lambda queue: queue.set_goal(text, who))
        return JSONResponse({"goal": kept})

    async def enough(self, request: Request) -> Response:
        """Record whether labelling is finished."""
        fields = await _fields(request)
        who, enough = fields.text("who"), fields.boolean("enough")
        await self._service.write(lambda queue: queue.finish_labelling(who, enough))
        return JSONResponse({"enough": enough})

    def _labeller(self, request: Request) -> str:
        return checked_name(request.query_params.get("who", self._who))

    async def _state(self, who: str) -> dict[str, Any]:
        folder, ending = self._service.folder, self.ending.is_set()
        state = await self._service.call(lambda queue: state_fields(queue, folder, who, ending))
        finished = state["status"]["doing"] == "finished" and self._endpoint.loopback
        address = await asyncio.to_thread(run_page_address, folder) if finished else ""
        return state | {"run_page": address}

    async def _stream(self, who: str) -> AsyncGenerator[str, None]:
        self.streams += 1
        try:
            sent, last = None, 0.0
            while not self.ending.is_set():
                version = await self._service.version()
                if version != sent:
                    sent, last = version, time.monotonic()
                    yield _event(await self._state(who))
                elif time.monotonic() - last > HEARTBEAT_SECONDS:
                    last = time.monotonic()
                    yield "event: beat\ndata:\n\n"
                await _wait(self.ending, POLL_SECONDS)
            yield _event(await self._state(who))
        finally:
            self.streams -= 1


async def _fields(request: Request) -> Fields:
    return read_fields(await request.body())


def _place(fields: Fields) -> str:
    """Return the page's id; empty for programs that send none."""
    return fields.text("place")[:64] if fields.has("place") else ""


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass


def _event(state: dict[str, Any]) -> str:
    # `retry`: milliseconds until the browser reconnects after a lost connection.
    return f"retry: 500\ndata: {json.dumps(state)}\n\n"


def _read_static() -> dict[str, bytes]:
    folder = resources.files("backflip.labelling") / "static"
    return {item.name: item.read_bytes() for item in folder.iterdir() if item.is_file()}


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    messages = {404: "there is nothing at this address", 405: "the method is not allowed"}
    plain = error.detail in ("Not Found", "Method Not Allowed")
    message = messages[error.status_code] if plain else error.detail
    return JSONResponse({"error": message}, error.status_code, error.headers)


async def _on_refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    fields = {"error": str(error), "problem": error.problem}
    return JSONResponse(fields, _STATUS[error.problem])


async def _on_invalid(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error), "problem": "invalid"}, _STATUS["invalid"])


async def _on_failed(request: Request, error: Exception) -> Response:
    # For example a full disk: the same request can succeed later.
    return JSONResponse({"error": " ".join(str(error).split())}, 503)


async def _on_unexpected(request: Request, error: Exception) -> Response:
    # The guard reports the error on the server's stderr.
    return JSONResponse({"error": "unexpected error in the server"}, 500)
