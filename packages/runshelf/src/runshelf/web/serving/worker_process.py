"""A worker process of the server: started when it is first needed, and again if it has ended."""

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, final

from runshelf.errors import UserFacingError
from runshelf.web.serving.bounded_log import report
from runshelf.web.serving.worker_loop import Answer

MOST_WAITING = 16


class Busy(Exception):
    """Too many requests are waiting."""


@final
class _Running(NamedTuple):
    """A process, its stdout, and the connection to that."""

    process: "subprocess.Popen[bytes]"
    answers: asyncio.StreamReader
    answers_open: asyncio.ReadTransport


@final
class WorkerProcess:
    """One process that answers requests, one after the other.

    Args:
        program: the module to run; it calls `worker_loop.answer_requests`.
        home: its argument.
        purpose: what it does, for messages: `to read run folders`.
        seconds: the longest time until it says something or answers; then it is ended.
    """

    def __init__(self, program: str, home: Path, purpose: str, seconds: float) -> None:
        self._program, self._home = program, home
        self._purpose, self._seconds = purpose, seconds
        self._running: _Running | None = None
        self._lock = asyncio.Lock()
        self._waiting = 0

    async def ask(
        self, request: Mapping[str, Any], hear: Callable[[str], None] = lambda _: None
    ) -> Answer:
        """Return the answer to a request.

        Args:
            request: JSON values.
            hear: called with what the process says before it answers.

        Raises:
            Busy: too many requests are waiting.
            UserFacingError: the process gave no answer, or it refused.
        """
        if self._waiting >= MOST_WAITING:
            raise Busy(f"too many requests {self._purpose} at once: try again in a moment")
        self._waiting += 1
        try:
            async with self._lock:
                answer = await self._ask(request, hear)
        finally:
            self._waiting -= 1
        if "failed" in answer.fields:
            report(f"runshelf.web: unexpected {answer.fields['failed']}")
        if problem := answer.fields.get("refused") or answer.fields.get("failed"):
            raise UserFacingError(problem)
        return answer

    async def close(self) -> None:
        """End the process."""
        running, self._running = self._running, None
        if running is not None:
            running.process.kill()
            running.answers_open.close()  # not `communicate`: it would read what is closed here
            assert running.process.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # a request that was not read
                running.process.stdin.close()
            await asyncio.to_thread(running.process.wait)

    async def _ask(self, request: Mapping[str, Any], hear: Callable[[str], None]) -> Answer:
        try:
            return await self._answered(request, hear)
        except TimeoutError:
            problem = f"took longer than {self._seconds:.0f} s"
        except (OSError, EOFError, ValueError):
            problem = "ended"
        except asyncio.CancelledError:
            await self.close()  # its answer would be taken for that of the next request
            raise
        await self.close()
        raise UserFacingError(f"the process {self._purpose} {problem}: try again in a moment")

    async def _answered(self, request: Mapping[str, Any], hear: Callable[[str], None]) -> Answer:
        running = self._running = self._running or await _start(self._program, self._home)
        assert running.process.stdin is not None
        # The pipe has room for a request, and the process has answered all earlier ones.
        running.process.stdin.write(json.dumps(request).encode() + b"\n")
        running.process.stdin.flush()
        while True:
            async with asyncio.timeout(self._seconds):
                fields: dict[str, Any] = json.loads(await running.answers.readline())
                if "said" not in fields:
                    return Answer(fields, await running.answers.readexactly(fields["bytes"]))
            hear(fields["said"])


async def _start(program: str, home: Path) -> _Running:
    # -P: modules in the current folder must not shadow installed ones. In a new session Ctrl-C does
    # not reach the process; it ends with the server.
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", program, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    answers = asyncio.StreamReader()
    answers_open, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(answers), process.stdout
    )
    return _Running(process, answers, answers_open)
