"""Attacks on the secret of a page: no file of a run has it, and no output that is kept."""

import hashlib
import hmac
import json
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from packages.backflip.tests.labelling.page.prepared_run import serving, start
from packages.runshelf.tests.web import pages
from tests.attack_figures import Tried

from backflip.preferences.labels import LabelStore
from runshelf.index.location import cache_folder
from runshelf.store.finding import list_runs

PURPOSES = ("address", "access", "same-site")
TEACH = """
import sys
from pathlib import Path
from backflip.teaching_api import teach
from backflip.labelling.people_source import LabellingSettings
settings = {
    "num_envs": 4, "rollout_length": 16, "epochs": 1, "minibatches": 2, "hidden": (8,), "phases": 6,
    "clip_length": 5, "clip_envs": 4, "random_envs": 8, "random_env_steps": 30,
}
teach(
    "Pendulum-v1", teacher="human", labels=16, env_steps=4 * 16 * 6, argv=["backflip"],
    settings=settings, home=Path(sys.argv[1]), report=lambda done: print(done, flush=True),
    labelling=LabellingSettings(host="0.0.0.0"),
)
"""


def secrets_of(served: Path) -> list[str]:
    """Return the secret of the server of a folder, and its tokens."""
    secret = json.loads((cache_folder(served) / "page.json").read_text())["secret"]
    return [secret, *tokens(secret)]


def tokens(secret: str) -> list[str]:
    key = bytes.fromhex(secret)
    return [hmac.new(key, word.encode(), hashlib.sha256).hexdigest() for word in PURPOSES]


def files_with(folder: Path, secrets: list[str]) -> list[Path]:
    """Return the files below a folder that contain a secret, as text or as bytes."""
    wanted = [secret.encode() for secret in secrets] + [bytes.fromhex(one) for one in secrets]
    found: list[Path] = []
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            found += [path for one in wanted if one in data]
    return found


@pytest.mark.attack
@pytest.mark.slow
def test_no_file_output_page_or_report_of_a_run_has_its_secret(
    tmp_path: Path, tried: Tried
) -> None:
    """A run that is taught beyond loopback: its folder, its output, and what is served of it."""
    command = [sys.executable, "-c", TEACH, str(tmp_path)]
    taught = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert taught.stdout is not None
    lines = [next(line for line in taught.stdout if "compare clips at" in line)]
    folder = tmp_path / "runs" / list_runs(tmp_path)[0]
    secrets = secrets_of(folder)
    assert f"cat {cache_folder(folder) / 'address'}" in lines[0]
    whole = (cache_folder(folder) / "address").read_text().strip()
    assert secrets[1] in whole
    assert stat.S_IMODE((cache_folder(folder) / "address").stat().st_mode) == 0o600
    time.sleep(2.0)  # it waits for answers, and says where
    taught.terminate()
    output = "".join(lines) + taught.communicate(timeout=60)[0]
    assert not any(secret in output for secret in secrets)
    assert files_with(tmp_path, secrets) == []
    with pages.serving(tmp_path) as server:
        ulid = folder.name
        for path in (f"/runs/{ulid}", f"/runs/{ulid}/output", f"/runs/{ulid}/files", "/"):
            text = pages.page(server, path)
            assert not any(secret in text for secret in secrets)
        report = server.get(f"/report?run={ulid}").body.decode()
        assert not any(secret in report for secret in secrets)
        assert server.get(f"/runs/{ulid}/file?path=page.json").status == 404
    tried(len(secrets), "secrets looked for in the files, output, pages and reports of a run")


@pytest.mark.attack
@pytest.mark.medium
def test_a_received_run_brings_no_secret(tmp_path: Path, folder: Path, tried: Tried) -> None:
    """Its sender knows the secret in its folder, and that of the server at the sender's."""
    with serving(folder):
        of_sender = secrets_of(folder)
    known = ["5e" * 32, of_sender[0]]
    for count, secret in enumerate(known):
        received = tmp_path.parent / f"{tmp_path.name}-received-{count}"
        shutil.copytree(folder, received)
        (received / "page.json").write_text(json.dumps({"port": 8765, "secret": secret}))
        with serving(received) as server:
            assert secrets_of(received)[0] not in known
            for token in (secret, *tokens(secret)):
                server.token = token
                assert server.post("/api/take", {"who": "me"}).status == 403
    tried(4 * len(known), "tokens of a received run's sender")


@pytest.mark.attack
@pytest.mark.slow
@pytest.mark.parametrize(
    "module", ["runshelf", pytest.param("backflip.labelling.page", marks=pytest.mark.slow)]
)
def test_the_output_of_a_recorded_server_has_no_token(
    tmp_path: Path, module: str, tried: Tried
) -> None:
    home, served = tmp_path / "home", tmp_path / "served"
    served.mkdir()
    LabelStore.open(served / "labels.sqlite").close()
    options = ["serve", "--no-open", "--home"] if module == "runshelf" else []
    command = [sys.executable, "-m", module, *options, str(served), "--host", "0.0.0.0"]
    recorded = subprocess.Popen(
        [sys.executable, "-m", "runshelf", "run", "--home", str(home), "--", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert recorded.stdout is not None
    output = next(line for line in recorded.stdout if "http://" in line)
    secrets = secrets_of(served)
    recorded.terminate()
    output += recorded.communicate(timeout=60)[0]
    assert str(cache_folder(served) / "address") in output
    assert not any(secret in output for secret in secrets)
    assert files_with(home, secrets) == []
    tried(len(secrets), "secrets looked for in the output of a recorded server")


@pytest.mark.medium
@pytest.mark.attack
def test_only_the_user_can_read_the_secret(folder: Path) -> None:
    server = start(folder, "--port", "0", "--host", "0.0.0.0")
    server.kill()
    private = cache_folder(folder)
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert stat.S_IMODE(private.parent.stat().st_mode) == 0o700
    files = list(private.iterdir())
    assert files
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert files_with(folder, secrets_of(folder)) == []
