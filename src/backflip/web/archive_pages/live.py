"""What one open page is told: the runs that changed, new lines of output, charts that moved."""

import asyncio
import hashlib
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple, final

from backflip.archive.index.rows import RunRow
from backflip.archive.index.run_index import Index
from backflip.core.errors import BackflipError
from backflip.web.archive_pages import output
from backflip.web.archive_pages.changes import News
from backflip.web.archive_pages.figures import Figure, Subject, choose, figures
from backflip.web.archive_pages.home import read_now
from backflip.web.archive_pages.reader import Busy, Reader
from backflip.web.archive_pages.render import render
from backflip.web.archive_pages.run_page import NO_PICTURES, marks_of, pictures_of
from backflip.web.archive_pages.stream import HEARTBEAT_SECONDS, POLL_SECONDS, Pace, event
from backflip.web.archive_pages.subjects import of_group, of_run, row_of_run, runs_of_group
from backflip.web.archive_pages.table import ordered_states, quoted
from backflip.web.archive_pages.view import ChartView, chart_address, position

NOW_SECONDS = 5.0
_MOST_GROUPS = 20
# How often is looked whether a run that is over goes on again.
_LOOK_SECONDS = 10.0


@final
class Watched(NamedTuple):
    """What a page shows.

    Attributes:
        runs: ids of runs whose curves it shows.
        groups: names of groups whose curves it shows.
        home: whether it is the first page.
        view: how it draws curves; None if it draws none.
        output: whether it shows the end of the output of the only run.
    """

    runs: tuple[str, ...]
    groups: tuple[str, ...]
    home: bool
    view: ChartView | None
    output: bool


@final
class Live:
    """Tells one page what changed."""

    def __init__(self, reader: Reader, watched: Watched, since: str) -> None:
        """Begin where a page stands.

        Args:
            reader: reads the home.
            watched: what the page shows.
            since: the position it was told last: of changes, and of the output behind a slash.
        """
        self._reader = reader
        self._watched = watched
        self._position, _, after = since.partition("/")
        self._after = position(after) or 0
        self._pace = Pace()
        self._sent: dict[str, str] = {}
        self._going = False

    async def events(self, ending: asyncio.Event) -> AsyncIterator[str]:
        """Yield events until the end."""
        yield "retry: 2000\n\n"
        last = time.monotonic()
        while not ending.is_set():
            try:
                told = [text async for text in self._news()]
            except (BackflipError, Busy):
                told = []
            for text in told:
                yield text
            if told:
                last = time.monotonic()
            elif time.monotonic() - last > HEARTBEAT_SECONDS:
                last = time.monotonic()
                yield "event: beat\ndata:\n\n"
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await ending.wait()
            except TimeoutError:
                pass

    async def _news(self) -> AsyncIterator[str]:
        news = self._reader.changes.since(self._position)
        if news.reset and self._position:
            self._position = news.position
            yield self._event("reset", {})
            return
        if news.position != self._position:
            self._position = news.position
            async for text in self._runs(news):
                yield text
        if self._watched.home and self._is_due("now", NOW_SECONDS):
            async for text in self._now():
                yield text
        if self._watched.output:
            async for text in self._output():
                yield text
        if self._watched.view is not None:
            async for text in self._charts():
                yield text

    def _event(self, name: str, data: Mapping[str, Any]) -> str:
        return event(name, data, f"{self._position}/{self._after}")

    def _is_due(self, what: str, seconds: float) -> bool:
        due = time.monotonic() >= float(self._sent.get(f"due {what}", "0"))
        if due:
            self._sent[f"due {what}"] = str(time.monotonic() + seconds)
        return due

    async def _runs(self, news: News) -> AsyncIterator[str]:
        """Tell how the runs stand that changed, as far as the page shows them."""
        runs = dict(news.runs)
        if not self._watched.home:
            mine = {*self._watched.runs}
            runs = {
                ulid: fields
                for ulid, fields in runs.items()
                if ulid in mine or fields["group"] in self._watched.groups
            }
            if not runs:
                return
            self._going = True  # or was, a moment ago
        names = sorted({str(fields["group"]) for fields in runs.values()})[:_MOST_GROUPS]
        groups = await self._reader.ask(lambda index: _states(index, names))
        yield self._event("runs", {"runs": runs, "groups": groups, "total": news.total})

    async def _now(self) -> AsyncIterator[str]:
        asked = await self._reader.asked_now()
        html = await self._reader.read(lambda: render("_now.html", now=read_now(asked)))
        if self._differs("now", _without_clocks(html)):
            yield self._event("now", {"html": html})

    async def _output(self) -> AsyncIterator[str]:
        row = await self._reader.ask(lambda index: row_of_run(index, self._watched.runs[0]))
        page = await self._reader.read(lambda: output.page_after(row.folder, self._after))
        if not page.lines:
            return
        skipped = page.size - page.end > 4 * output.MOST_BYTES
        if skipped:  # it prints faster than anybody reads: go on at the end
            page = await self._reader.read(lambda: output.page_before(row.folder))
        self._after = page.end
        html = await self._reader.read(lambda: render("_lines.html", lines=page.lines))
        yield self._event("output", {"html": html, "skipped": skipped, "size": page.size})

    async def _charts(self) -> AsyncIterator[str]:
        """Send the charts that have changed, not more often than they move by a pixel."""
        if not self._going and not self._is_due("look", _LOOK_SECONDS):
            return
        rows, subjects = await self._reader.ask(self._subjects)
        running = [row for row in rows if row.state == "running"]
        ended = self._going and not running
        self._going = bool(running)
        age = time.time() - min((row.created for row in running), default=time.time())
        if not (running or ended) or not self._pace.due(age, ended=ended):
            return
        told, pictures = await self._reader.read(lambda: self._drawn(rows, subjects))
        changed = {metric: html for metric, html in told if self._differs(f"chart {metric}", html)}
        data: dict[str, Any] = {"charts": [[m, html] for m, html in changed.items()]}
        if self._differs("pictures", pictures):
            data["pictures"] = pictures
        if changed:
            yield self._event("charts", data)

    def _subjects(self, index: Index) -> tuple[list[RunRow], list[Subject]]:
        groups = [runs_of_group(index, name) for name in self._watched.groups]
        runs = [row_of_run(index, ulid) for ulid in self._watched.runs]
        subjects = [*map(of_group, groups), *map(of_run, runs)]
        return [*(row for of in groups for row in of.rows), *runs], subjects

    def _drawn(
        self, rows: Sequence[RunRow], subjects: Sequence[Subject]
    ) -> tuple[list[tuple[str, str]], str]:
        """Return each metric with its chart, and the pictures of a run alone."""
        view = self._watched.view or ChartView()
        choice = choose(subjects, view, self._reader.shelf)
        is_run = [subject.kind for subject in subjects] == ["run"]
        gallery = pictures_of(rows[0].ulid, rows[0].folder, choice.axis) if is_run else NO_PICTURES
        marks = marks_of(gallery)
        found = figures(subjects, choice.shown, choice.axis, view, self._reader.shelf, marks)
        charts = [(figure.metric, self._chart(figure, view)) for figure in found]
        return charts, render("_pictures.html", gallery=gallery) if is_run else ""

    def _chart(self, figure: Figure, view: ChartView) -> str:
        runs, groups = self._watched.runs, self._watched.groups
        address = chart_address(runs, groups, figure.metric, view)
        return render("_figure.html", figure=figure, chart_address=address)

    def _differs(self, what: str, text: str) -> bool:
        """Return whether something is other than when last sent, and take it that it is sent."""
        digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
        differs = self._sent.get(what) != digest
        self._sent[what] = digest
        return differs


def _without_clocks(html: str) -> str:
    """Return the text without how long things have gone on: pages count that themselves."""
    return re.sub("</?time[^>]*>[^<]*", "", html)


def _states(index: Index, names: Sequence[str]) -> dict[str, list[tuple[str, int]]]:
    found: dict[str, list[tuple[str, int]]] = {}
    for name in names:
        rows = index.groups(f"group={quoted(name)}", limit=1).rows
        if rows:
            found[name] = ordered_states(rows[0].states)
    return found
