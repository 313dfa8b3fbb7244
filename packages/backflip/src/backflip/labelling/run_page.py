"""The address of the page of a run, if a server of all runs is running on this machine."""

import http.client
from pathlib import Path

from runshelf.web.serving.address import LOOPBACK, saved_port

_SECONDS = 0.5  # to answer


def run_page_address(run_folder: Path) -> str:
    """Return the URL of the page of the run in `run_folder`; empty if no server shows it."""
    port = saved_port(run_folder.absolute().parent.parent)
    if port is None:
        return ""
    path = f"/runs/{run_folder.name}"
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=_SECONDS)
    try:
        connection.request("HEAD", path)
        served = connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        connection.close()
    return f"http://{LOOPBACK}:{port}{path}" if served else ""
