"""Tests of `runshelf import`: own names, exact values, and cautions."""

import io
import json
import math
import os
import re
from pathlib import Path

import pytest
from PIL import Image

from runshelf.cli.main import main
from runshelf.errors import DamagedFile, UsageError, UserFacingError
from runshelf.interop import csv_files, import_logs, log_folders
from runshelf.interop import import_tables as tables
from runshelf.interop.csv_files import read_csv
from runshelf.interop.event_files import scalar_event, version_event
from runshelf.interop.import_logs import import_path
from runshelf.interop.import_tables import import_tables
from runshelf.interop.log_survey import _parse
from runshelf.interop.metric_names import MEANINGS, REMARKS, library_of
from runshelf.interop.protobuf import field
from runshelf.interop.tfrecord import frame
from runshelf.store import logged_media, series
from runshelf.store.finding import list_runs
from runshelf.store.metrics import SEED, broken_lines, read_metrics
from runshelf.store.results import result_metric
from runshelf.store.run import RunInfo, open_run
from runshelf.store.state import state_of

PAGE = (Path(__file__).parents[4] / "docs" / "logging.md").read_text()


def imported(home, path, **asked):
    """Import, and return the imported runs and the printed lines."""
    said = []
    done = import_path(home, path, info=RunInfo(**asked), argv=["runshelf"], say=said.append)
    return done.runs, said


def the_run(home, path):
    ((one,), _) = imported(home, path)
    return open_run(one.folder)


def values(run):
    """All recorded values, without axes."""
    taken = {*series.AXES, SEED}
    return [
        {k: v for k, v in record.items() if k not in taken}
        for record in read_metrics(run.folder).records
    ]


def logdir(folder, *scalars, time=1.6e9, name="events.out.tfevents.1.host"):
    """An event file of (step, tag, value)."""
    folder.mkdir(parents=True, exist_ok=True)
    events = [scalar_event(time + n, s, [(tag, x)]) for n, (s, tag, x) in enumerate(scalars)]
    (folder / name).write_bytes(version_event(time) + b"".join(events))
    return folder


def text_event(tag, text):
    about = field(9, field(1, field(1, "text")))
    value = field(1, tag) + about + field(8, field(1, 7) + field(8, text))
    return frame(field(1, 1.6e9) + field(5, field(1, value)))


def image_bytes(kind, frames=1):
    file = io.BytesIO()
    pictures = [Image.new("RGB", (5, 4), (n * 40, 0, 0)) for n in range(frames)]
    more = {"save_all": True, "append_images": pictures[1:], "duration": 50} if frames > 1 else {}
    pictures[0].save(file, kind, **more)
    return file.getvalue()


def image_value(tag, data):
    return frame(field(5, field(1, field(1, tag) + field(4, field(4, data)))))


def test_each_folder_with_event_files_is_a_run(tmp_path):
    logs, home = tmp_path / "logs", tmp_path / "home"
    logdir(logs / "a", (0, "loss", 0.5), (1, "loss", 0.25))
    logdir(logs / "b" / "c", (0, "loss", 1.0))
    logdir(logs / "b" / "c", (1, "loss", 2.0), name="events.out.tfevents.2.host")
    (logs / "notes.txt").write_text("x")
    done, said = imported(home, logs, group="mine", tags=("old",))
    assert [one.source for one in done] == [logs / "a", logs / "b" / "c"]
    assert [one.values for one in done] == [2, 2]
    run = open_run(done[1].folder)
    assert [value["loss"] for value in values(run)] == [1.0, 2.0]
    assert (run.manifest["command"], run.manifest["group"]) == ("import", "mine")
    assert run.manifest["tags"] == ["old"]
    assert run.manifest["imported"]["from"] == str(logs / "b" / "c")
    assert run.manifest["created"].startswith("2020-09-13T12:26:40")
    assert state_of(run).name == "imported"
    assert run.manifest["git"] is None
    assert len(said) == 2
    assert list(run.folder.glob("*.npz")), "compacted at once"


def test_steps_times_and_values_are_exact(tmp_path):
    exact = [(7, "loss", 0.1), (3, "loss", math.nan), (3, "loss", math.inf), (2**40, "x", -0.0)]
    run = the_run(tmp_path, logdir(tmp_path / "a", *exact, time=1.6e9 + 1 / 3))
    records = read_metrics(run.folder).records
    assert [record["step"] for record in records] == [7, 3, 3, 2**40]
    assert records[0]["time"] == 1.6e9 + 1 / 3
    # The file has 32-bit numbers.
    assert repr([r.get("loss") for r in records]) == "[0.10000000149011612, nan, inf, None]"
    assert math.copysign(1, records[3]["x"]) == -1
    assert "env_steps" not in records[0], "the unit of these steps is unknown"


def test_the_same_files_are_imported_once(tmp_path):
    logs = logdir(tmp_path / "logs" / "a", (0, "loss", 0.5))
    first, _ = imported(tmp_path, logs)
    again, said = imported(tmp_path, logs)
    assert (again[0].run, again[0].is_new) == (first[0].run, False)
    assert "imported before" in said[0]
    moved = logs.rename(tmp_path / "elsewhere")
    assert not imported(tmp_path, moved)[0][0].is_new
    logdir(moved, (0, "loss", 0.5), (1, "loss", 0.4))
    grown, _ = imported(tmp_path, moved)
    assert grown[0].is_new
    assert len(list_runs(tmp_path)) == 2


def test_a_killed_import_leaves_no_run_and_can_be_repeated(tmp_path, monkeypatch):
    logs = logdir(tmp_path / "logs", (0, "loss", 0.5))
    monkeypatch.setattr(import_logs._Writer, "write_all", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        imported(tmp_path, logs)
    monkeypatch.undo()
    assert list_runs(tmp_path) == []
    assert imported(tmp_path, logs)[0][0].is_new


def test_a_torn_file_is_imported_up_to_the_tear_and_reported(tmp_path):
    logs = logdir(tmp_path / "logs", *((n, "loss", n / 2) for n in range(5)))
    (path,) = logs.iterdir()
    path.write_bytes(path.read_bytes()[:-3])
    done, said = imported(tmp_path, logs)
    assert len(values(open_run(done[0].folder))) == 4
    assert "torn at byte" in said[0]
    assert any("torn" in note for note in open_run(done[0].folder).manifest["imported"]["notes"])


CLEANRL = [
    *((10 * n, "charts/SPS", 1000.0) for n in range(2)),
    *((10 * n, "losses/entropy", 0.5) for n in range(2)),
    *((10 * n, "losses/clipfrac", 0.25) for n in range(2)),
    *((10 * n, "losses/value_loss", 2.0) for n in range(2)),
    *((10 * n, "losses/old_approx_kl", -0.1) for n in range(2)),
    *((10 * n, "losses/approx_kl", 0.1) for n in range(2)),
    *((10 * n, "losses/explained_variance", math.nan) for n in range(2)),
]
RETURNS = [(n, "charts/episodic_return", float(n)) for n in (9, 22)]


def cleanrl(folder, *scalars):
    logdir(folder, *scalars)
    (path,) = folder.iterdir()
    table = "|param|value|\n|-|-|\n|env_id|CartPole-v1|\n|seed|3|\n|lr|0.00025|\n|track|False|"
    path.write_bytes(path.read_bytes() + text_event("hyperparameters/text_summary", table))
    return folder


def test_a_logdir_of_cleanrl(tmp_path):
    run = the_run(
        tmp_path, cleanrl(tmp_path / "CartPole-v1__ppo__3__1600000000", *RETURNS, *CLEANRL)
    )
    manifest = run.manifest
    assert (manifest["env"], manifest["algorithm"], run.seeds) == ("CartPole-v1", "ppo", [3])
    assert run.config["lr"] == 0.00025
    assert run.config["track"] is False
    assert manifest["imported"]["kind"] == "cleanrl"
    found = read_metrics(run.folder).records
    assert found[0] == {
        "step": 9,
        "time": 1.6e9,
        "env_steps": 9,
        "charts/episodic_return": 9.0,
        "episode_return": 9.0,
    }


def test_the_environment_of_an_atari_logdir(tmp_path):
    folder = tmp_path / "runs" / "ALE" / "Pong-v5__dqn_atari__1__1600000000"
    run = the_run(tmp_path, logdir(folder, (0, "charts/SPS", 1.0)))
    assert (run.manifest["env"], run.manifest["algorithm"]) == ("ALE/Pong-v5", "dqn_atari")


def test_cautions_about_names_of_cleanrl(tmp_path):
    run = the_run(tmp_path, cleanrl(tmp_path / "a__ppo__3__1", *RETURNS, *CLEANRL))
    cautions = run.manifest["imported"]["cautions"]
    names = {name for value in values(run) for name in value}
    # Entropy, KL and value loss are of one minibatch only, unlike ours.
    assert "entropy" not in names
    assert "approx_kl" not in names
    assert "value_loss" not in names
    for tag in ("entropy", "approx_kl", "old_approx_kl", "value_loss"):
        assert "last minibatch" in cautions[f"losses/{tag}"]
    assert "below 0" in cautions["losses/old_approx_kl"]
    # The clip fraction covers all minibatches, like ours.
    assert {"losses/clipfrac": 0.25, "clip_fraction": 0.25} in values(run)
    assert "contain the value itself" in cautions["losses/explained_variance"]
    # SPS is a cumulative average, not a rate.
    assert not any("per_second" in name for name in names)
    assert "average since learning began" in cautions["charts/SPS"]
    assert "time limits" in cautions[""]
    assert "no episode" not in cautions[""]


def test_a_cleanrl_log_without_episodes_is_reported(tmp_path):
    done, said = imported(tmp_path, cleanrl(tmp_path / "a__ppo__3__1", *CLEANRL))
    assert "no episode is logged" in said[0]
    assert "no episode" in open_run(done[0].folder).manifest["imported"]["cautions"][""]


SB3 = {
    "time/fps": 800,
    "time/total_timesteps": 2048,
    "time/time_elapsed": 2,
    "train/entropy_loss": -0.69,
    "train/approx_kl": 0.01,
    "train/clip_fraction": 0.1,
    "train/value_loss": 8.5,
    "train/explained_variance": math.nan,
    "train/std": 0.9,
    "rollout/ep_rew_mean": 21.5,
    "rollout/ep_len_mean": 21.5,
}


def progress(folder, rows):
    folder.mkdir(parents=True, exist_ok=True)
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [",".join(names), *(",".join(str(row.get(n, "")) for n in names) for row in rows)]
    (folder / "progress.csv").write_text("\n".join(lines) + "\n")
    return folder


def check_sb3(run):
    """Check every equivalent name and caution of Stable-Baselines3."""
    cautions = run.manifest["imported"]["cautions"]
    found = {name: value for record in values(run) for name, value in record.items()}
    assert found["entropy"] == -found["train/entropy_loss"]
    assert found["entropy"] == pytest.approx(0.69)
    assert found["clip_fraction"] == found["train/clip_fraction"]
    assert math.isnan(found["explained_variance"])
    assert not {"approx_kl", "value_loss", "episode_return", "episode_return_mean"} & set(found)
    assert not any("per_second" in name for name in found)
    assert "last epoch only" in cautions["train/approx_kl"]
    assert "twice" in cautions["train/value_loss"]
    assert "minus" in cautions["train/entropy_loss"]
    assert "reset_num_timesteps" in cautions["time/fps"]
    assert "100 episodes" in cautions["rollout/ep_rew_mean"]
    assert "exp(log_std)" in cautions["train/std"]
    assert "gradient" in cautions[""]
    assert run.manifest["imported"]["kind"] == "sb3"


def test_a_logdir_of_sb3(tmp_path):
    tags = {k: v for k, v in SB3.items() if k not in ("time/total_timesteps", "time/time_elapsed")}
    folder = logdir(tmp_path / "PPO_1", *((2048, tag, float(x)) for tag, x in tags.items()))
    run = the_run(tmp_path, folder)
    check_sb3(run)
    assert run.manifest["algorithm"] == "ppo"
    assert {record["env_steps"] for record in read_metrics(run.folder).records} == {2048}


def seconds_of(run):
    """Return how long a run took, by its last event."""
    return json.loads((run.folder / "events.jsonl").read_text().splitlines()[-1])["seconds"]


def test_a_progress_csv(tmp_path):
    rows = [{k: SB3[k] for k in ("time/fps", "time/total_timesteps")}, SB3, {**SB3, "note": "text"}]
    run = the_run(tmp_path, progress(tmp_path / "a", rows))
    check_sb3(run)
    records = read_metrics(run.folder).records
    assert [(r["env_steps"], r["step"]) for r in records] == [(2048, 2048)] * 3
    assert records[1]["seconds"] == 2
    assert records[2]["note"] == "text"
    assert "train/std" not in records[0], "an empty cell has no value"
    assert type(records[1]["time/fps"]) is int
    assert records[1]["rollout/ep_rew_mean"] == 21.5
    assert seconds_of(run) == 2, "time/time_elapsed of the last row"


def spinup(folder, *, epochs=3):
    """Write what Spinning Up does: a table with tabs, and the settings beside it."""
    folder.mkdir(parents=True)
    names = ("Epoch", "AverageEpRet", "TotalEnvInteracts", "KL", "Time")
    rows = [(at, 10.5 * at, 4000 * (at + 1), 0.01, 2.5 * at) for at in range(3)]
    lines = ["\t".join(map(str, cells)) for cells in (names, *rows)]
    (folder / "progress.txt").write_text("\n".join([*lines, ""]))
    settings = {"epochs": epochs, "steps_per_epoch": 4000, "seed": 7, "gamma": 0.98}
    (folder / "config.json").write_text(json.dumps(settings))
    return folder


def test_a_progress_txt_of_spinning_up(tmp_path):
    folder = spinup(tmp_path / "ppo_s7")
    run = the_run(tmp_path, folder)
    assert run.manifest["imported"]["kind"] == "spinup"
    assert (run.manifest["seeds"], run.manifest["config"]["gamma"]) == ([7], 0.98)
    assert state_of(run).name == "finished", "12,000 of 12,000 env steps"
    assert seconds_of(run) == 5.0
    records = read_metrics(run.folder).records
    assert [(r["env_steps"], r["step"]) for r in records] == [(x, x) for x in (4000, 8000, 12000)]
    assert [record["AverageEpRet"] for record in records] == [0, 10.5, 21]
    assert the_run(tmp_path / "alone", folder / "progress.txt").manifest["config"]["gamma"] == 0.98


def test_a_log_of_spinning_up_that_ends_early(tmp_path):
    assert state_of(the_run(tmp_path, spinup(tmp_path / "a", epochs=9))).name == "stopped"


def test_a_progress_txt_of_another_program_is_no_log(tmp_path):
    spinup(tmp_path / "logs" / "a")
    (tmp_path / "logs" / "progress.txt").write_text("day\tdone\n1\tlittle\n")
    (tmp_path / "logs" / "b").mkdir()
    os.mkfifo(tmp_path / "logs" / "b" / "progress.txt")  # reading it would never end
    done, said = imported(tmp_path, tmp_path / "logs")
    assert [one.source.name for one in done] == ["a"]
    assert "not a regular file" in said[0]
    with pytest.raises(UsageError, match=r"progress\.txt"):
        imported(tmp_path, tmp_path / "logs" / "progress.txt")


def test_values_in_event_files_are_not_taken_from_progress_csv_again(tmp_path):
    folder = progress(tmp_path / "PPO_1", [SB3])
    logdir(folder, (2048, "time/fps", 800.0), (2048, "train/std", 0.5))
    run = the_run(tmp_path, folder)
    found = [name for value in values(run) for name in value]
    assert found.count("time/fps") == found.count("train/std") == 1
    assert found.count("rollout/ep_rew_mean") == 1


def test_broken_rows_are_reported(tmp_path):
    folder = progress(tmp_path / "a", [SB3, SB3])
    path = folder / "progress.csv"
    path.write_text(path.read_text() + "1,2,3,4,5,6,7,8,9,10,11,12,13\n800,20")
    done, said = imported(tmp_path, folder)
    assert "1 broken line (4) and its last line (5), which has no newline" in said[0]
    assert len(read_metrics(done[0].folder).records) == 2


def test_an_empty_csv_is_refused(tmp_path):
    (tmp_path / "progress.csv").write_text("a,b")
    with pytest.raises(DamagedFile, match="no line of column names"):
        imported(tmp_path / "home", tmp_path)


def test_a_bad_file_is_skipped_and_reported(tmp_path, capsys):
    logs, home = tmp_path / "logs", ["--home", str(tmp_path / "home")]
    logdir(logs / "a", (0, "loss", 1.0))
    for name, content in (
        ("a/monitor.csv", b""),
        ("b/monitor.csv", b""),
        ("b/x.monitor.csv", b"junk\n1,2,3\n"),
        ("b/progress.csv", b""),
        ("b/events.out.tfevents.1", b""),
        ("b/events.out.tfevents.2", b"junk" * 99),
    ):
        (logs / name).parent.mkdir(exist_ok=True)
        (logs / name).write_bytes(content)
    (logs / "c").mkdir()
    (logs / "c" / "monitor.csv").write_text(MONITOR)
    assert main(["import", str(logs), "--json", *home]) == 0
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert [run["kind"] for run in found["runs"]] == ["tensorboard", "monitor"]
    assert [Path(file["file"]).relative_to(logs).as_posix() for file in found["skipped"]] == [
        *("a/monitor.csv", "b/events.out.tfevents.1", "b/events.out.tfevents.2"),
        *("b/monitor.csv", "b/progress.csv", "b/x.monitor.csv"),
    ]
    for file in found["skipped"]:
        assert f"skipped: {file['why']}" in told.err
        assert file["file"] in file["why"]
    assert main(["import", str(logs / "b"), *home]) == 1
    assert "nothing in" in capsys.readouterr().err
    assert len(list_runs(tmp_path / "home")) == 2


def test_logs_of_unknown_libraries(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "progress.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "progress.csv").write_text("x,y\n")
    logdir(tmp_path / "c")
    done, said = imported(tmp_path / "home", tmp_path)
    assert [(one.kind, one.values) for one in done] == [("csv", 2), ("csv", 0), ("tensorboard", 0)]
    assert ["no values found" in line for line in said] == [False, True, True]


def test_malformed_rows_are_counted_and_reported(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "monitor.csv").write_text(MONITOR + "bad,x,y\n3,4\n4,abc,1\n9.0,9,2.5\n")
    done, said = imported(tmp_path / "home", tmp_path)
    assert "3 broken lines (5, 6, 7)" in said[0]
    assert len(read_metrics(done[0].folder).records) == 3


MONITOR = '#{"t_start": 1600000000.5, "env_id": "CartPole-v1"}\nr,l,t\n20.0,20,0.5\n15.5,15,1.25\n'


def test_a_monitor_csv(tmp_path):
    (tmp_path / "monitor.csv").write_text(MONITOR)
    run = the_run(tmp_path / "home", tmp_path)
    assert run.manifest["env"] == "CartPole-v1"
    assert run.manifest["created"].startswith("2020-09-13T12:26:41")
    assert read_metrics(run.folder).records[1] == {
        "step": 2,
        "episodes": 2,
        "env_steps": 35,
        "time": 1600000001.75,
        "seconds": 1.25,
        "r": 15.5,
        "l": 15,
        "t": 1.25,
        "episode_return": 15.5,
        "episode_length": 15,
    }
    assert "normalised by the order" in run.manifest["imported"]["cautions"]["r"]


def test_several_monitors_have_no_common_env_steps(tmp_path):
    for n in range(2):
        (tmp_path / f"{n}.monitor.csv").write_text(MONITOR)
    run = the_run(tmp_path / "home", tmp_path)
    assert len(read_metrics(run.folder).records) == 4
    assert "env_steps" not in series.axes(run.folder)


def test_names_are_never_interpreted(tmp_path):
    tags = ["../../etc/passwd", "<script>alert(1)</script>", "a\0b", "a\nb", "", "é\u202e", "step"]
    run = the_run(tmp_path / "home", logdir(tmp_path / "logs", *((1, tag, 0.5) for tag in tags)))
    names = [name for value in values(run) for name in value]
    assert names == [*tags[:-1], "logged/step"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "logs"]
    assert set(series.metric_names(run.folder)) == set(names)


def test_images_and_animations_are_encoded_again(tmp_path):
    logs = tmp_path / "logs"
    logdir(logs, (0, "loss", 1.0))
    (path,) = logs.iterdir()
    events = [
        image_value("png", image_bytes("PNG")),
        image_value("jpeg", image_bytes("JPEG")),
        image_value("film", image_bytes("GIF", frames=3)),
        image_value("evil", b"<svg onload=alert(1)>"),
        image_value("bomb", image_bytes("PNG")[:40]),
        image_value("other", image_bytes("BMP")),
    ]
    path.write_bytes(path.read_bytes() + b"".join(events))
    done, said = imported(tmp_path / "home", logs)
    found = logged_media.media(done[0].folder)
    assert [(m.key, m.kind) for m in found] == [
        ("png", "image"),
        ("jpeg", "image"),
        ("film", "clip"),
    ]
    with Image.open(found[2].path) as film:
        film.seek(1)
        film.load()
        assert (film.n_frames, film.info["duration"]) == (3, 50)
    assert all(re.fullmatch(r"[0-9a-f]{64}\.(png|webp)", media.path.name) for media in found)
    assert "cannot be read" in said[0]


def test_a_picture_with_too_many_pixels_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(import_logs, "LARGEST_PICTURE", 10)
    logs = logdir(tmp_path / "logs", (0, "loss", 1.0))
    (path,) = logs.iterdir()
    path.write_bytes(path.read_bytes() + image_value("big", image_bytes("PNG")))
    done, said = imported(tmp_path / "home", logs)
    assert logged_media.media(done[0].folder) == []
    assert "an image that cannot be read" in said[0]


def test_links_are_not_followed(tmp_path):
    secret = logdir(tmp_path / "secret", (0, "loss", 1.0))
    logs = logdir(tmp_path / "logs", (0, "loss", 0.5))
    (logs / "folder").symlink_to(secret)
    (logs / "monitor.csv").symlink_to(secret / "events.out.tfevents.1.host")
    os.mkfifo(logs / "x.tfevents.1")
    done, said = imported(tmp_path / "home", logs)
    assert len(done) == 1
    assert sum("not a regular file" in line for line in said) == 2


def test_too_many_logs_are_refused(tmp_path, monkeypatch):
    for n in range(5):
        logdir(tmp_path / "logs" / str(n), (0, "loss", 1.0))
    monkeypatch.setattr(log_folders, "MOST_FILES", 4)
    with pytest.raises(UsageError, match="import its subfolders"):
        imported(tmp_path / "home", tmp_path / "logs")


@pytest.mark.parametrize("what", ["absent", "empty", "other.txt"])
def test_nothing_to_import_is_refused(tmp_path, what):
    path = tmp_path / what
    if what == "empty":
        path.mkdir()
    if what == "other.txt":
        path.write_text("x")
    with pytest.raises(UsageError, match=r"does not exist|nothing to import"):
        imported(tmp_path / "home", path)


def test_a_single_file_can_be_imported(tmp_path):
    logs = logdir(tmp_path / "logs", (0, "loss", 1.0))
    progress(logs, [SB3])
    done, _ = imported(tmp_path / "home", logs / "progress.csv")
    assert done[0].kind == "sb3"


def test_the_command(tmp_path, capsys):
    logdir(tmp_path / "logs" / "a\x1b[31m", (0, "loss", 1.0))
    home = ["--home", str(tmp_path / "home")]
    assert main(["import", str(tmp_path / "logs"), "--tag", "x", "--json", *home]) == 0
    (told,) = json.loads(capsys.readouterr().out)["runs"]
    assert (told["new"], told["kind"], told["values"]) == (True, "tensorboard", 1)
    assert main(["import", str(tmp_path / "logs"), *home]) == 0
    out = capsys.readouterr().out
    assert "imported before" in out
    assert "\x1b" not in out


def test_the_tables_of_docs_logging_are_those_of_the_code(tmp_path):
    """Compares every name, equivalent and caution."""
    for library, title in (
        ("sb3", "Stable-Baselines3"),
        ("cleanrl", "CleanRL"),
        ("rllib", "RLlib"),
        ("monitor", "monitor.csv"),
        ("rsl_rl", "rsl_rl"),
        ("skrl", "skrl"),
        ("rl_games", "rl_games"),
        ("spinup", "Spinning Up"),
        ("tianshou", "Tianshou"),
        ("ml-agents", "Unity ML-Agents"),
        ("sample_factory", "Sample Factory"),
        ("torchrl", "TorchRL"),
        ("dopamine", "Dopamine"),
    ):
        part = re.split(r"^### ", PAGE, flags=re.MULTILINE)
        text = next(p for p in part if p.startswith(title))
        rows = [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in text.splitlines()
            if line.startswith("| `")
        ]
        assert rows == [
            [
                f"`{name}`",
                f"`{meaning.ours}`" + (", negated" if meaning.factor < 0 else "")
                if meaning.ours
                else "",
                f"`{meaning.like}`" if meaning.like else "",
                meaning.caution,
            ]
            for name, meaning in MEANINGS[library].items()
        ]
        assert REMARKS.get(library, "") in text


@pytest.mark.parametrize(
    "tag", ["Perf/total_fps", "Reward / Total reward (mean)", "performance/step_inference_fps"]
)
def test_steps_that_may_be_none_of_the_environment_are_not_stored_as_such(tmp_path, tag):
    run = the_run(tmp_path / "home", logdir(tmp_path / "logs", (3, tag, 1.0), (4, tag, 2.0)))
    assert run.manifest["imported"]["kind"] in ("rsl_rl", "skrl", "rl_games")
    assert "env_steps" not in series.axes(run.folder)


@pytest.mark.parametrize(("column", "axis"), [("loss", "env_steps"), ("Perf/total_fps", "step")])
def test_the_steps_of_a_table_are_those_of_its_library(tmp_path, column, axis):
    path = tmp_path / "a.csv"
    path.write_text(f"global_step,{column}\n3,1.5\n4,2.5\n")
    (ulid,) = import_tables(tmp_path / "home", path, argv=[], say=print)
    records = read_metrics(tmp_path / "home" / "runs" / ulid).records
    assert [record[axis] for record in records] == [3, 4]


def test_a_table_that_may_not_be_read_does_not_stop_the_others(tmp_path, monkeypatch):
    def read(path):  # root, who runs the tests, may read everything
        if path.name == "a.csv":
            raise UserFacingError(f"cannot read or write `{path}`: Permission denied")
        return read_csv(path)

    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("env_steps,loss\n3,1.5\n")
    monkeypatch.setattr(tables, "read_csv", read)
    said = []
    assert len(import_tables(tmp_path / "home", tmp_path, argv=[], say=said.append)) == 1
    assert len(said) == 1
    assert "a.csv`: Permission denied" in said[0]


def test_each_library_is_recognised_by_names_that_no_other_logs():
    for library, meanings in MEANINGS.items():
        names = {*meanings}
        if library != "monitor":
            assert library_of(names) == library
        others = {name for other, all_of in MEANINGS.items() if other != library for name in all_of}
        assert library_of(names & others) in ("", library)


def test_imported_metrics_are_compacted(tmp_path):
    run = the_run(tmp_path / "home", logdir(tmp_path / "logs", *((n, "a", 1.0) for n in range(99))))
    assert not list(run.folder.glob("metrics-*.jsonl"))
    assert broken_lines(run.folder) == []


@pytest.mark.parametrize("library", MEANINGS)
def test_the_result_of_an_imported_run_is_a_return(library):
    meanings = MEANINGS[library]
    best = result_metric(dict.fromkeys(meanings, 3))
    assert meanings[best].like in ("episode_return_mean", "evaluation_return")


def test_a_folder_of_hyperparameters_is_no_run(tmp_path):
    data = version_event(1.6e9) + scalar_event(1.6e9, 1, [("loss", 1.0)])
    for folder in ("run", "run/1732945000.5", "1732945000.5", "other/1732945000.25"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "events.out.tfevents.1.host").write_bytes(data)
    found = log_folders.find_log_folders(tmp_path, print)
    names = {str(one.folder.relative_to(tmp_path)) for one in found}
    assert names == {"run", "1732945000.5", "other/1732945000.25"}


@pytest.mark.parametrize(
    ("cell", "value"), [("1_0", "1_0"), ("１２", "１２"), ("1e3", 1000.0), ("-5", -5), ("x", "x")]
)
def test_only_what_other_programs_read_as_a_number_is_one(cell, value):
    assert csv_files._value(cell) == value


def test_digits_that_are_no_numbers_in_the_name_of_a_folder_are_no_seed(tmp_path):
    assert _parse(tmp_path / "CartPole-v1__ppo__²__1700000000").seed is None
    assert _parse(tmp_path / "CartPole-v1__ppo__3__1700000000").seed == 3
