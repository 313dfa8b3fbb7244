"""Describes the machine and its GPUs."""

import os
import shutil
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from runshelf.store.run import hardware

TIMEOUT_SECONDS = 5.0


def machine() -> dict[str, Any]:
    """Return the manifest's `hardware`, with host name and GPUs."""
    rows = query_gpus(("name", "driver_version", "memory.total"))
    gpus = [{"name": n, "driver": d, "memory_bytes": _bytes(m)} for n, d, m in rows]
    return {**hardware(), "host": socket.gethostname(), "gpus": gpus}


def query_gpus(fields: Sequence[str]) -> list[list[str]]:
    """Return the fields of each GPU from `nvidia-smi`; an empty list without `nvidia-smi`."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    with suppress(OSError, subprocess.SubprocessError):
        output = subprocess.run(
            [program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=True,
            env={**os.environ, "LC_ALL": "C"},
        ).stdout.decode(errors="replace")
        rows = [[cell.strip() for cell in line.split(",")] for line in output.splitlines()]
        return [row for row in rows if len(row) == len(fields)]
    return []


def _bytes(mebibytes: str) -> int | None:
    return int(mebibytes) << 20 if mebibytes.isdecimal() else None
