"""A worker process of the server: started when it is first needed, and again if it has ended."""

import asyncio
import contextlib
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

from runshelf.errors import UserFacingError
from runshelf.web.bounded_log import report
from runshelf.web.worker_loop import Answer

MOST_WAITING = 16


class Busy(Exception):
    """Too many requests are waiting."""


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
        self._process: Process | None = None
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
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

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
        process = await self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(request).encode() + b"\n")
        while True:
            async with asyncio.timeout(self._seconds):
                await process.stdin.drain()
                fields: dict[str, Any] = json.loads(await process.stdout.readline())
                if "said" not in fields:
                    return Answer(fields, await process.stdout.readexactly(fields["bytes"]))
            hear(fields["said"])

    async def _running(self) -> Process:
        """Return the process, started if it does not run."""
        if self._process is None or self._process.returncode is not None:
            # -P: modules in the current folder must not shadow installed ones. In a new session
            # Ctrl-C does not reach the process; it ends with the server.
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", self._program, str(self._home)),
                stdin=PIPE,
                stdout=PIPE,
                start_new_session=True,
            )
        return self._process
