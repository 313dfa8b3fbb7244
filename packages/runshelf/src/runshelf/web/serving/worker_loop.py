"""What every worker process of the server does: answers one request after the other over pipes.

A request is one line of JSON on stdin. An answer is one line of JSON on stdout, and as many bytes
as its `bytes` says; lines with `said` may come before. The process ends when its stdin does, so
also when the server is killed.
"""

import json
import os
import queue
import resource
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, final

from runshelf.errors import UserFacingError

LARGEST_MEMORY = 4 * 2**30

Say = Callable[[str], None]


@final
class Answer(NamedTuple):
    """The answer to a request.

    Attributes:
        fields: JSON values.
        body: bytes besides these.
    """

    fields: Mapping[str, Any]
    body: bytes = b""


Handle = Callable[[Mapping[str, Any], Say], Answer]


def answer_requests(handle: Handle) -> None:
    """Answer the requests of the server until it ends.

    Args:
        handle: answers one request; it may say how far it is.
    """
    _limit_memory()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is not an answer
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def work() -> None:
        while True:
            answer = _answer(handle, json.loads(requests.get()), lambda text: send(said=text))
            send(answer.body, **answer.fields, bytes=len(answer.body))

    def send(body: bytes = b"", **fields: Any) -> None:
        try:
            answers.write(json.dumps(fields).encode() + b"\n" + body)
            answers.flush()
        except BrokenPipeError:
            os._exit(0)  # the server was killed; `sys.exit` would end this thread alone

    threading.Thread(target=work, daemon=True).start()
    for line in sys.stdin.buffer:
        requests.put(line)
    os._exit(0)  # whatever is being read


def _answer(handle: Handle, request: Mapping[str, Any], say: Say) -> Answer:
    try:
        return handle(request, say)
    except UserFacingError as error:
        return Answer({"refused": str(error)})
    except MemoryError:
        return Answer({"refused": f"it takes more than {LARGEST_MEMORY >> 30} GiB of memory"})
    except Exception as error:  # noqa: BLE001  (the server says it; the next request may succeed)
        return Answer({"failed": f"{type(error).__name__}: {error}"})


def _limit_memory() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = LARGEST_MEMORY if most == resource.RLIM_INFINITY else min(LARGEST_MEMORY, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, most))
