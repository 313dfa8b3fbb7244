"""A scripted person who answers through the HTTP interface of the labelling page."""

import http.client
import json
import re
import secrets
import time
from pathlib import Path

import pytest

from backflip.labelling.prompts import asked
from backflip.preferences.labels import LabelStore
from runshelf.web.serving.address import saved_port


class Person:
    """A client of the page of the run in `folder`; it tolerates a missing server."""

    def __init__(self, folder: Path, who: str = "me") -> None:
        self.folder, self.who, self.acknowledged = folder, who, {}
        self._token = ""

    def post(self, path, **fields):
        """Post a request; return the status and the JSON."""
        body = json.dumps({"who": self.who, **fields})
        return self._request("POST", f"/api/{path}", body)

    def state(self):
        """Return the state of labelling and training."""
        return self._request("GET", f"/api/state?who={self.who}")[1]

    def better(self, query):
        """Return `left`, `right` or `tie`, by the true return."""
        with LabelStore.open(self.folder / "labels.sqlite") as store:
            left, right = (float(clip["reward"].sum()) for clip in store.clips(query))
        return "tie" if abs(left - right) < 1e-6 else "left" if left > right else "right"

    def said_of(self, pair):
        """Return the ranking or the ratings of a set, by the true returns of its clips."""
        with LabelStore.open(self.folder / "labels.sqlite") as store:
            with store.file.transaction() as connection:
                clips = asked(connection, pair["query"]).clips
            returns = [float(store.clip(clip)["reward"].sum()) for clip in clips]
        order = sorted(range(len(returns)), key=lambda place: -returns[place])
        if pair["kind"] == "rank":
            return order
        return [9 - order.index(place) for place in range(len(returns))]

    def answer(self, query, answer=None):
        """Answer a pair; return the status."""
        status, said = self.post(
            "answer",
            query=query,
            answer=answer or self.better(query),
            seconds=1.0,
            attempt=secrets.token_hex(8),
        )
        if status == 200:
            self.acknowledged[said["label"]] = query
        return status

    def answer_until(self, done, pause=0.0):
        """Answer pairs until `done()`."""
        while not done():
            try:
                pairs = self.post("take")[1].get("pairs", [])
                if pairs:
                    first = pairs[0]
                    said = None if first["kind"] == "compare" else self.said_of(first)
                    self.answer(first["query"], said)
                time.sleep(pause if pairs else 0.1)
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.1)

    def _request(self, method, path, body=None):
        port = saved_port(self.folder)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            if not self._token:
                connection.request("GET", "/")
                html = connection.getresponse().read().decode()
                self._token = re.search('name="token" content="([^"]+)"', html)[1]
            headers = {"Content-Type": "application/json", "X-Token": self._token}
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()


@pytest.fixture
def person():
    """The class `Person`, who answers by the true return."""
    return Person
