"""Alerts: rules over runs, and real servers that receive them."""

import base64
import json
import os
import stat
import subprocess
import sys
import time
from datetime import datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from packages.runshelf.tests.web.runs import begin, done, finish, log
from packages.runshelf.tests.worklog.servers import mail_server, webhook

from runshelf.cli.main import main
from runshelf.errors import UsageError
from runshelf.index.run_index import open_index
from runshelf.recorder.budget import write_weekly
from runshelf.store.diagnosis import write_diagnosis
from runshelf.store.home import ALERTS, shared
from runshelf.store.metrics import MetricsWriter
from runshelf.worklog.alerts import channels
from runshelf.worklog.alerts.channels import Channel, NotSent, channel_of, send
from runshelf.worklog.alerts.rules import USUAL, rule_of
from runshelf.worklog.alerts.watching import Look, Quiet, Watch, follow, quiet_of


@pytest.fixture(autouse=True)
def _without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


def watch_of(home: Path, *rules: str, **settings: object) -> Watch:
    found = [rule_of(text) for text in rules]
    return Watch(home, [one for one in found if one], **settings)  # type: ignore[arg-type]


def look(home: Path, watch: Watch, now: float | None = None) -> Look:
    with open_index(home) as index:
        index.refresh()
        return watch.look(index, now)


def texts(home: Path, *rules: str) -> list[str]:
    return [alert.text.partition(": ")[2] for alert in look(home, watch_of(home, *rules)).new]


def write(folder: Path, *records: dict[str, object]) -> None:
    with MetricsWriter(folder, "train") as file:
        for record in records:
            file.write(record)


# --- rules ---


def test_a_limit_holds_only_after_so_many_env_steps(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    rule = "return < 10 after 100000 env_steps"
    write(writer.folder, {"env_steps": 99_999, "episode_return_mean": 3.0})
    assert texts(tmp_path, rule) == []
    write(writer.folder, {"env_steps": 1e5, "episode_return_mean": 12.0})
    assert texts(tmp_path, rule) == []
    write(writer.folder, {"env_steps": 1.2e5, "episode_return_mean": 9.5})
    assert texts(tmp_path, rule) == ["return < 10 after 100000 env_steps: 9.5"]
    assert texts(tmp_path, rule) == []  # told once
    writer.close()


def test_a_limit_names_the_worst_of_the_seeds_that_break_it(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    write(writer.folder, *({"seed": s, "loss": x} for s, x in ((0, 1.0), (1, 30.0), (2, 20.0))))
    write(writer.folder, {"seed": 2, "loss": 5.0})
    assert texts(tmp_path, "loss >= 5") == ["loss >= 5: 30 in 2 of 3 seeds, seed 1"]
    writer.close()


def test_nan_of_a_loss_but_not_of_a_mean_of_no_episodes(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    write(writer.folder, {"episode_return_mean": float("nan"), "loss": 1.0})
    assert texts(tmp_path, "nan") == []
    write(writer.folder, {"value_loss": float("inf")})
    assert texts(tmp_path, "nan") == ["value_loss is not finite"]
    writer.close()


@pytest.mark.medium
def test_a_stall_is_told_once_each_time(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    write(writer.folder, {"loss": 1.0})
    path = writer.folder / "metrics-train.jsonl"
    for ago, told in ((30, 0), (660, 1), (660, 1), (30, 0), (900, 1)):
        os.utime(path, (1, round(time.time()) - ago))
        found = texts(tmp_path, "stall 10m")
        assert len(found) == told or ago == 660  # the second 660 may be another second
    os.utime(path, (1, 1_700_000_000.25))
    assert len(texts(tmp_path, "stall 10m")) == 1
    assert texts(tmp_path, "stall 10m") == []
    (writer.folder / "output.log").write_text("0.1\tout\t2\thi\n")
    assert texts(tmp_path, "stall 1m") == []
    writer.close()


def test_ends_failures_findings_and_the_budget(tmp_path: Path) -> None:
    done(tmp_path, points=3, name="fine")
    failed = begin(tmp_path, cost_per_hour=10.0)
    write_diagnosis(failed.folder, {"PI-KL-HIGH": 1}, "doctor: PI-KL-HIGH")
    finish(failed, "failed", error="ValueError: bad", seconds=3600.0)
    write_weekly(tmp_path, 5.0)
    found = sorted(alert.text for alert in look(tmp_path, watch_of(tmp_path, *USUAL)).new)
    assert len(found) == 3
    assert any("(fine): finished after" in text for text in found)
    assert any("failed, ValueError: bad" in text for text in found)
    assert any("doctor: PI-KL-HIGH" in text for text in found)
    with_budget = watch_of(tmp_path, about_budget=True)
    assert [alert.key.startswith("budget") for alert in look(tmp_path, with_budget).new] in (
        [True],
        [],  # in the first hour of a week, an hour of the run lies before it
    )
    assert look(tmp_path, with_budget).new == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("finsh", "is not a rule"),
        ("faliure", "did you mean `failure`"),
        ("loss >", "is not a rule"),
        ("loss > x", "is not a rule"),
        ("loss > 1__0", "is not a rule"),
        ("loss > 1_.5", "is not a rule"),
        ("loss > 1 after 10 steps", "no axis `steps`"),
        ("stall soon", "is not a rule"),
        ("", "is not a rule"),
        ("x" * 10_000, "is not a rule"),
    ],
)
def test_what_is_no_rule_is_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        rule_of(text)


# --- quiet hours, repeats, secrets ---


def test_quiet_hours_hold_alerts_back_until_they_end(tmp_path: Path) -> None:
    done(tmp_path, points=3)
    sent: list[list[str]] = []
    channel = Channel("test", lambda lines: sent.append(list(lines)))
    now = datetime.now().replace(hour=23, minute=30).timestamp()
    quiet = quiet_of("22:00-07:00")
    held = look(tmp_path, watch_of(tmp_path, "end", quiet=quiet, channels=[channel]), now)
    assert (held.new, held.held, sent) == ([], 1, [])
    # Another process, in the morning, and the run is older than a day by then.
    again = watch_of(tmp_path, "end", quiet=quiet, channels=[channel])
    assert look(tmp_path, again, now).held == 1
    found = look(tmp_path, again, now + 10 * 3600)
    assert [len(found.new), found.held, len(sent)] == [1, 0, 1]
    assert look(tmp_path, again, now + 11 * 3600).new == []


@pytest.mark.parametrize(
    ("clock", "over_midnight", "by_day"),
    [
        ("21:59", 0, 0),
        ("22:00", 1, 0),
        ("00:00", 1, 0),
        ("06:59", 1, 0),
        ("07:00", 0, 0),
        ("12:30", 0, 1),
    ],
)
def test_quiet_hours_by_hand(clock: str, over_midnight: int, by_day: int) -> None:
    at = datetime.fromisoformat(f"2026-11-26 {clock}").timestamp()
    assert Quiet(22 * 60, 7 * 60).holds(at) == over_midnight
    assert Quiet(12 * 60, 13 * 60).holds(at) == by_day


@pytest.mark.parametrize("text", ["", "22-7", "24:00-07:00", "22:60-07:00", "22:00-22:00", "a"])
def test_what_is_no_span_of_the_day_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--quiet"):
        quiet_of(text)


def test_no_secret_and_no_control_character_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", "k3y-0123456789abcdef")
    writer = begin(tmp_path, name="evil\x1b[31m\n.\r\nname")
    error = "login failed: k3y-0123456789abcdef, sk-abcdefghijklmnop1234567 \x07"
    finish(writer, "failed", error=error)
    with webhook() as hook:
        channel = channel_of(f"http://127.0.0.1:{hook.port}/", {})
        assert channel
        look(tmp_path, watch_of(tmp_path, "failure", channels=[channel]))
    sent = json.dumps(hook.messages) + shared(tmp_path, ALERTS).read_text()
    assert "login failed" in sent
    for part in ("k3y-0123456789abcdef", "sk-abcdefghijklmnop", "\\u001b", "\\u0007", "\\n"):
        assert part not in json.dumps(hook.messages)
    assert "k3y-0123456789abcdef" not in sent


# --- ways ---


def test_a_webhook_gets_the_text(tmp_path: Path) -> None:
    with webhook() as hook:
        channel = channel_of(f"http://127.0.0.1:{hook.port}/hook", {})
        assert channel
        send(channel, ["one", "two"])
    assert hook.messages == [{"text": "one\ntwo", "content": "one\ntwo"}]


@pytest.mark.medium
def test_a_webhook_that_hangs_or_drips_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "SECONDS", 5.0)
    monkeypatch.setattr(channels, "DEADLINE", 0.3)

    def hang(_: BaseHTTPRequestHandler) -> None:
        time.sleep(3)

    def drip(handler: BaseHTTPRequestHandler) -> None:
        for letter in b"HTTP/1.1 200 OK":
            handler.wfile.write(bytes([letter]))
            time.sleep(0.1)

    for answer in (hang, drip):
        with webhook(answer) as hook:
            channel = channel_of(f"http://127.0.0.1:{hook.port}/T0KEN", {})
            assert channel
            with pytest.raises(NotSent, match=r"webhook 127\.0\.0\.1 did not answer within 0.3 s"):
                send(channel, ["x"])


def test_a_webhook_never_leads_elsewhere_and_its_address_is_never_said() -> None:
    with webhook() as other:

        def elsewhere(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(302)
            handler.send_header("Location", f"http://127.0.0.1:{other.port}/")
            handler.end_headers()

        def fail(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(500, "T0KEN")
            handler.end_headers()

        for answer in (elsewhere, fail, lambda handler: handler.wfile.write(b"T0KEN\r\n")):
            with webhook(answer) as hook:
                where = {"HOOK": f"http://127.0.0.1:{hook.port}/T0KEN"}
                channel = channel_of("env:HOOK", where)
                assert channel
                with pytest.raises(NotSent) as error:
                    send(channel, ["x"])
                assert "T0KEN" not in str(error.value)
                assert "env:HOOK" in str(error.value)
    assert other.messages == []
    channel = channel_of("http://127.0.0.1:1/T0KEN", {})
    assert channel
    with pytest.raises(NotSent, match="refused"):
        send(channel, ["x"])


def test_mail_arrives_and_a_subject_cannot_add_headers() -> None:
    with mail_server() as server:
        channel = channel_of(f"smtp://127.0.0.1:{server.port}?to=me@here&from=bot@here", {})
        assert channel
        send(channel, ["run\nBcc: evil@there", "second"])
    ((said, message),) = server.messages
    assert "mail FROM:<bot@here>" in said[1]
    assert [line for line in said if line.startswith("rcpt")] == ["rcpt TO:<me@here>"]
    head, _, body = message.partition("\n\n")
    assert "Bcc" not in [line.partition(":")[0] for line in head.splitlines()]
    assert "second" in body


def test_mail_logs_in_with_the_password_of_the_environment() -> None:
    with mail_server(login=True) as server:
        environ = {"RUNSHELF_SMTP_PASSWORD": "pa55-word"}
        channel = channel_of(f"smtp://me%40here@127.0.0.1:{server.port}?to=me@here", environ)
        assert channel
        send(channel, ["x"])
    ((said, _),) = server.messages
    (auth,) = [line for line in said if line.startswith("AUTH")]
    assert base64.b64decode(auth.split(" ")[2]) == b"\0me@here\0pa55-word"


def test_mail_that_is_refused_is_said() -> None:
    with mail_server(refuses=True) as server:
        channel = channel_of(f"smtp://127.0.0.1:{server.port}?to=me@here", {})
        assert channel
        with pytest.raises(NotSent, match="mail by 127"):
            send(channel, ["x"])


def test_a_command_gets_the_text_as_one_argument_and_no_shell(tmp_path: Path) -> None:
    program = tmp_path / "say it"
    program.write_text(f'#!/bin/sh\nprintf "%s|" "$@" > "{tmp_path}/out"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    channel = channel_of(f"command:'{program}' --flag", {})
    assert channel
    send(channel, ["$(touch evil); `id`", "b"])
    assert (tmp_path / "out").read_text() == "--flag|$(touch evil); `id`\nb|"
    assert not (tmp_path / "evil").exists()


def test_a_command_that_hangs_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "SECONDS", 0.3)
    channel = channel_of(f"command:sh -c 'sleep 60 & echo $! > {tmp_path}/pid; wait'", {})
    assert channel
    with pytest.raises(NotSent, match="did not end"):
        send(channel, ["x"])
    pid = int((tmp_path / "pid").read_text())
    for _ in range(100):
        state = Path(f"/proc/{pid}/stat")
        if not state.exists() or state.read_text().split()[2] == "Z":
            break
        time.sleep(0.05)
    else:
        pytest.fail("the child is still there")


def test_the_desktop_is_told_by_notify_send(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="neither notify-send nor osascript"):
        channel_of("desktop", {})
    for name in ("osascript", "notify-send"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\nprintf "%s|" "$@" > "{tmp_path}/{name}.out"\n')
        program.chmod(0o755)
        channel = channel_of("desktop", {})
        assert channel
        send(channel, ["--help", "b"])
        assert (tmp_path / f"{name}.out").read_text().endswith("--help\nb|")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("pigeon", "is not a channel"),
        ("smtp://me:secret@host?to=a@b", "has a password"),
        ("smtp://host", "needs a recipient"),
        ("smtp://host?to=nobody", "needs a recipient"),
        ("https://", "no host"),
        ("http://host:port/", "no host"),
        ("env:NOT_THERE", "is not set"),
        ("env:BAD", "is not a channel"),
        ("command:", "no program"),
        ("command:no-such-program-here", "no program"),
        ("command:'open", "open quote"),
    ],
)
def test_what_is_not_a_channel_is_refused_without_its_secret(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as error:
        channel_of(text, {"BAD": "T0KEN"})
    assert "secret" not in str(error.value)
    assert "T0KEN" not in str(error.value)


def test_a_way_that_fails_is_tried_again_and_given_up(tmp_path: Path) -> None:
    done(tmp_path, points=3)
    tries: list[list[str]] = []

    def fail(lines: object) -> None:
        tries.append(list(lines))  # type: ignore[call-overload]
        raise NotSent("no")

    watch = watch_of(tmp_path, "end", channels=[Channel("test", fail)])
    problems = [look(tmp_path, watch).problems for _ in range(5)]
    assert [len(found) for found in problems] == [1, 1, 1, 0, 0]
    assert problems[2] == ["not sent by test: no; gave up"]
    assert tries[0] == tries[1] == tries[2]


def test_what_a_channel_could_not_send_outlives_the_process(tmp_path: Path) -> None:
    first = done(tmp_path, points=3).name
    tries: list[list[str]] = []

    def send(lines: object) -> None:
        tries.append(list(lines))  # type: ignore[call-overload]
        if len(tries) in (1, 3, 4, 5):
            raise NotSent("no")

    def next_process() -> Look:
        others = Channel("test", lambda lines: None, key="other")
        watch = watch_of(tmp_path, "end", channels=[Channel("test", send, key="a"), others])
        return look(tmp_path, watch)

    assert next_process().problems == ["not sent by test: no"]
    again = next_process()
    assert (again.new, again.problems) == ([], [])
    assert [first[-8:] in text for (text,) in tries] == [True, True]
    assert next_process() == Look([], 0, [], is_over=False)
    assert len(tries) == 2, "sent once"
    done(tmp_path, points=3)
    found = [next_process().problems for _ in range(4)]
    assert [len(problems) for problems in found] == [1, 1, 1, 0]
    assert found[2] == ["not sent by test: no; gave up"]


def test_channels_of_one_name_have_different_keys_without_their_address() -> None:
    one, two = (channel_of(f"https://example.org/T0KEN-{n}", {}) for n in (1, 2))
    assert one
    assert two
    assert one.name == two.name
    assert one.key != two.key
    assert "T0KEN" not in one.key


# --- following ---


def test_following_ends_with_the_run_and_tells_everything_once(tmp_path: Path) -> None:
    writer, looks = begin(tmp_path), list[Look]()
    log(writer, 3, loss=lambda x: 1e6)

    def report(found: Look) -> None:
        looks.append(found)
        if len(looks) == 2:
            finish(writer)

    watch = watch_of(tmp_path, "loss > 100", "end", runs=[writer.run.ulid])
    with open_index(tmp_path) as index:
        follow(watch, index, report, pause=0.01)
    assert [[a.text.partition(": ")[2][:8] for a in one.new] for one in looks] == [
        ["loss > 1"],
        [],
        ["finished"],
    ]


def test_following_goes_on_until_the_last_alert_is_sent_or_given_up(tmp_path: Path) -> None:
    ulid = done(tmp_path, points=3).name

    def fail(_: object) -> None:
        raise NotSent("no")

    looks = list[Look]()
    watch = watch_of(tmp_path, "end", runs=[ulid], channels=[Channel("test", fail)])
    with open_index(tmp_path) as index:
        follow(watch, index, looks.append, pause=0.01)
    assert [len(one.problems) for one in looks] == [1, 1, 1]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done(tmp_path, points=3, name="x")
    with webhook() as hook:
        words = ["alerts", "--home", str(tmp_path), "--to", f"http://127.0.0.1:{hook.port}/"]
        assert main([*words, "--json"]) == 0
        (alert,) = json.loads(capsys.readouterr().out)["alerts"]
        assert "finished" in alert["text"]
        assert main(words) == 0
        assert capsys.readouterr().out == "nothing new\n"
    assert len(hook.messages) == 1
    done(tmp_path, points=3)
    assert main([*words[:3], "--to", "http://127.0.0.1:1/"]) == 1
    out, err = capsys.readouterr()
    assert "finished" in out
    assert "not sent by webhook 127.0.0.1" in err


@pytest.mark.medium
def test_ctrl_c_ends_following_with_success(tmp_path: Path) -> None:
    done(tmp_path, points=3)
    command = [sys.executable, "-m", "runshelf", "alerts", "--follow", "--home", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert "finished" in process.stdout.readline()
    process.send_signal(2)
    process.communicate(timeout=60)
    assert process.returncode == 0
