"""The doctor takes what a premortem expected as the prior of its causes."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from packages.runshelf.tests.web.runs import begin, finish, log

from backflip.doctor.causes import CAUSES
from backflip.doctor.diagnosis import LEAST_EXPECTED, MOST_EXPECTED, diagnose, priors
from backflip.doctor.reading.own_runs import logs_of_run
from backflip.doctor.report import in_words, to_json
from backflip.doctor.summary import doctors_word
from runshelf.store.diagnosis import read_diagnosis
from runshelf.store.run import open_run
from runshelf.worklog.premortems import Risk, read_premortem, write_premortem


def test_an_expected_cause_has_the_probability_that_was_given() -> None:
    plain = dict(zip((c.id for c in CAUSES), priors(CAUSES, {}), strict=True))
    total = sum(cause.prior for cause in CAUSES)
    assert plain == pytest.approx({cause.id: cause.prior / total for cause in CAUSES})
    found = dict(zip(plain, priors(CAUSES, {"machine": 0.3, "logging": 0.2}), strict=True))
    assert (found["machine"], found["logging"]) == pytest.approx((0.3, 0.2))
    left = 1.0 - plain["machine"] - plain["logging"]
    assert found["labels"] == pytest.approx(0.5 * plain["labels"] / left)
    assert sum(found.values()) == pytest.approx(1.0)


def test_probabilities_that_add_up_to_too_much_leave_room_for_others() -> None:
    found = dict(
        zip((c.id for c in CAUSES), priors(CAUSES, {"machine": 0.9, "logging": 0.9}), strict=True)
    )
    assert found["machine"] == found["logging"] == pytest.approx(MOST_EXPECTED / 2)
    never = priors(CAUSES, {"machine": 0.0})
    assert min(never) > 0
    assert never[[c.id for c in CAUSES].index("machine")] == pytest.approx(LEAST_EXPECTED)


def broken_run(home: Path, *risks: Risk) -> Path:
    """Return the folder of a run whose policy collapses, with a premortem."""
    writer = begin(home, config={"settings": {"env_steps": 51_200}})
    if risks:
        write_premortem(writer.run, 0.5, risks)
    curves = {
        "entropy": lambda x: max(0.69 * (1 - 3 * x), 1e-6),
        "approx_kl": lambda x: 0.5,
        "episode_return_mean": lambda x: 9.0,
        "explained_variance": lambda x: -0.5,
    }
    log(writer, 200, **curves)
    return finish(writer)


def test_the_premortem_of_a_run_moves_the_ranking_and_is_said(tmp_path: Path) -> None:
    (before,) = logs_of_run(open_run(broken_run(tmp_path / "a")))
    risks = [Risk("Steps too large: the rate", 0.6), Risk("something else", 0.2)]
    (after,) = logs_of_run(open_run(broken_run(tmp_path / "b", *risks)))
    assert after.expected == {"steps-too-large": 0.6}

    def share(log: object) -> float:
        causes = {one.cause.id: one.probability for one in diagnose(log).causes}  # type: ignore[arg-type]
        return causes["steps-too-large"]

    assert share(after) > share(before)
    assert "prior of your premortem: steps-too-large 60%" in in_words(diagnose(after))
    assert "premortem" not in in_words(diagnose(before))
    assert to_json([diagnose(after)])["diagnoses"][0]["premortem"] == {"steps-too-large": 0.6}


def test_a_premortem_written_after_the_end_is_no_prior(tmp_path: Path) -> None:
    run = open_run(broken_run(tmp_path))
    write_premortem(run, 0.5, [Risk("steps-too-large", 0.6)])
    assert [log.expected for log in logs_of_run(run)] == [{}]


def test_findings_at_the_end_are_written_for_now(tmp_path: Path) -> None:
    folder = broken_run(tmp_path)
    word, kept = doctors_word(folder), read_diagnosis(folder)
    assert word
    assert kept
    assert (kept.findings, kept.in_words) == (word["findings"], word["in_words"])


ASK = """
import sys
from pathlib import Path
from backflip.cli.progress_display import Display
from backflip.training.progress import Progress
folder, eta = Path(sys.argv[1]), float(sys.argv[2])
with Display(asks=sys.stdin.isatty()) as display:
    for phase in range(3):
        display(Progress(phase, 9, 100, 1.0, eta, {}, folder=folder))
print("went on")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("eta", "answers", "failure"),
    [(7200.0, b"70%\n\n", 0.3), (7200.0, b"\n", None), (60.0, b"70%\n\n", None)],
)
def test_a_long_run_asks_once_on_a_terminal(
    tmp_path: Path, eta: float, answers: bytes, failure: float | None
) -> None:
    writer = begin(tmp_path)
    terminal, inner = pty.openpty()
    command = [sys.executable, "-c", ASK, str(writer.folder), str(eta)]
    child = subprocess.Popen(command, stdin=inner, stdout=inner, stderr=inner)
    os.close(inner)
    os.write(terminal, answers)
    shown = b""
    while True:
        try:
            shown += os.read(terminal, 4096)
        except OSError:
            break
    os.close(terminal)
    child.wait(timeout=60)
    assert b"went on" in shown
    assert shown.count(b"How surprised") == (eta > 3600)
    found = read_premortem(writer.run)
    assert (found.failure if found else None) == (failure and pytest.approx(failure))
    writer.close()


@pytest.mark.medium
def test_a_long_run_without_a_terminal_asks_nothing(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    command = [sys.executable, "-c", ASK, str(writer.folder), "7200"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert "went on" in done.stdout
    assert "How surprised" not in done.stderr
    writer.close()


def test_priors_are_probabilities_for_any_expectation() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        named = rng.choice([c.id for c in CAUSES], size=rng.integers(0, 6), replace=False)
        found = priors(CAUSES, {id: float(rng.random()) for id in named})
        assert found.sum() == pytest.approx(1.0)
        assert (found > 0).all()
