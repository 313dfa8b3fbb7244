"""A scripted person at the labelling page's interface, for tests that teach through it."""

import http.client
import json
import re
import secrets
import time
from pathlib import Path

import pytest

from backflip.preferences.labels import LabelStore


class Person:
    """Talks to the page of the run in `folder`; survives the server's absence."""

    def __init__(self, folder: Path, who: str = "me") -> None:
        self.folder, self.who, self.acknowledged = folder, who, {}
        self._token = ""

    def post(self, path, **fields):
        """Return status and JSON of what is said to a request."""
        body = json.dumps({"who": self.who, **fields})
        return self._request("POST", f"/api/{path}", body)

    def state(self):
        """Return how labelling and training stand."""
        return self._request("GET", f"/api/state?who={self.who}")[1]

    def better(self, query):
        """`left`, `right` or `tie`, by the true return."""
        with LabelStore.open(self.folder / "labels.sqlite") as store:
            left, right = (float(clip["reward"].sum()) for clip in store.clips(query))
        return "tie" if abs(left - right) < 1e-6 else "left" if left > right else "right"

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
        """Answer whatever is offered until `done()`."""
        while not done():
            try:
                pairs = self.post("take")[1].get("pairs", [])
                if pairs:
                    self.answer(pairs[0]["query"])
                time.sleep(pause if pairs else 0.1)
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.1)

    def _request(self, method, path, body=None):
        port = json.loads((self.folder / "page.json").read_text())["port"]
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
    """The class: `person(folder, who)` is somebody who knows the true return."""
    return Person
