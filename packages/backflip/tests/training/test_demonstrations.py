"""`teach --demonstrations`: clips of a demonstration are preferred to the agent's clips."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packages.backflip.tests.training.test_recorded_clips import SETTINGS, TEACH, refused

import backflip
from backflip.core.checkpoint import CHECKPOINT, load_arrays
from backflip.inspect.game import Game
from backflip.preferences.exchange import import_labels, labels_of_run
from backflip.preferences.label_file import LABELS
from backflip.preferences.label_records import DEMONSTRATION
from backflip.preferences.labels import LabelStore
from backflip.preferences.program_source import NoTeacher, ProgramAnswers
from backflip.teaching_api import resume_teach
from backflip.training.queries.demonstrations import (
    DEMONSTRATED,
    checked_sources,
    demonstration_schedule,
)
from runshelf.errors import Interrupted, UsageError
from runshelf.store.finding import find_run


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two demonstrated episodes of CartPole, saved as `play --save` does; one is unfinished."""
    path = tmp_path_factory.mktemp("shown") / "shown.npz"
    game = Game("CartPole-v1", {}, 5, path)
    for most in (200, 12):
        told = game.begin()
        while not told["ended"] and told["length"] < most:
            told = game.act(told["length"] % 2)
    assert game.saved.save() > 24
    game.close()
    return path


def demonstrated(folder: Path, seed: int) -> list[Any]:
    with LabelStore.open_existing(folder / LABELS) as store:
        return [one for one in store.labelled(seed) if one.who == DEMONSTRATION]


@pytest.mark.medium
def test_clips_of_a_demonstration_are_preferred_to_the_agents(shown: Path, tmp_path: Path) -> None:
    settings = SETTINGS | {"demonstration_share": 0.5}
    given: dict[str, Any] = {**TEACH, "settings": settings}
    result = backflip.teach("CartPole-v1", demonstrations=shown, home=tmp_path, **given)
    known = {row.tobytes() for row in np.load(shown)["observations"]}
    for seed in (0, 1):
        labels = demonstrated(result.folder, seed)
        assert len(labels) == 6, "half as many as the 12 queries"
        assert len({one.env_steps for one in labels}) > 1, "in every round"
        for one in labels:
            sides = {"left": one.left, "right": one.right}
            better, worse = sides.pop(one.answer), *sides.values()
            assert all(row.tobytes() in known for row in better["obs"])
            assert not all(row.tobytes() in known for row in worse["obs"])
        assert {one.answer for one in labels} <= {"left", "right"}
    sides = [one.answer for seed in (0, 1) for one in demonstrated(result.folder, seed)]
    assert set(sides) == {"left", "right"}
    with LabelStore.open_existing(result.folder / LABELS) as store:
        assert store.counts().labels == 2 * 12, "the budget is for the teacher"
    assert result.labels == 12
    assert "2 demonstrated episodes" in (result.folder / "output.log").read_text()


@pytest.mark.slow
def test_a_run_goes_on_without_its_demonstrations(shown: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.npz"
    copy.write_bytes(shown.read_bytes())

    def interrupt(progress: Any) -> None:
        if progress.phase == 1:
            raise KeyboardInterrupt

    whole = backflip.teach("CartPole-v1", demonstrations=[copy], home=tmp_path / "whole", **TEACH)
    home = tmp_path / "cut"
    with pytest.raises(Interrupted):
        backflip.teach("CartPole-v1", demonstrations=copy, home=home, report=interrupt, **TEACH)
    copy.unlink()
    result = resume_teach(find_run(home, "latest"))
    arrays = load_arrays(result.folder / CHECKPOINT).arrays
    for name, array in load_arrays(whole.folder / CHECKPOINT).arrays.items():
        np.testing.assert_array_equal(arrays[name], array)
    child = backflip.teach_more(result.run, labels=4, env_steps=512, home=home)
    assert (child.folder / DEMONSTRATED).read_bytes() == (result.folder / DEMONSTRATED).read_bytes()
    assert len(demonstrated(child.folder, 0)) == 3 + 1
    with LabelStore.open(tmp_path / "other.sqlite") as store:
        count = import_labels(store, labels_of_run(result.folder), [0], "run")
        assert count == store.counts().labels == 2 * (12 + 3), "imported, they count as labels"


@pytest.mark.slow
def test_demonstrations_give_as_many_labels_when_queries_come_sooner(
    shown: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = TEACH | {"labels": 24, "seeds": 1}
    planned = backflip.teach("CartPole-v1", demonstrations=shown, home=tmp_path / "a", **options)
    monkeypatch.setattr(ProgramAnswers, "queries_wanted", lambda answers: 999)
    sooner = backflip.teach("CartPole-v1", demonstrations=shown, home=tmp_path / "b", **options)
    counts = [len(demonstrated(run.folder, 0)) for run in (planned, sooner)]
    assert counts[0] == counts[1] == 6, "a quarter of the queries"


def test_labels_of_demonstrations_follow_the_queries() -> None:
    assert demonstration_schedule([25, 8, 6, 5, 4, 2, 0, 0], 0.25) == [6, 2, 2, 1, 1, 0, 0, 0]
    for share in (0.0, 0.1, 0.25, 1.0):
        for rounds in ([2], [25, 0, 7, 3, 0], [1] * 40):
            assert sum(demonstration_schedule(rounds, share)) == round(share * sum(rounds))


@pytest.mark.parametrize("wrong", [3, [], ["a.npz", None], {"a": 1}])
def test_other_kinds_of_demonstrations_are_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match="`demonstrations` must be"):
        checked_sources(wrong)


@pytest.mark.medium
def test_demonstrations_without_queries_are_refused(shown: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="leave out --demonstrations"):
        backflip.teach(
            "CartPole-v1", demonstrations=shown, teacher=NoTeacher(), labels=2, home=tmp_path
        )


def saved(path: Path, shown: Path, **changes: Any) -> str:
    arrays = {**np.load(shown), **changes}
    np.savez(path, **{name: x for name, x in arrays.items() if x is not None})
    return str(path)


File = dict[str, Any]


def other_shape(file: File) -> File:
    return {name: file[name][:, :3] for name in ("observations", "next_observations")}


def not_finite(file: File) -> File:
    return {"observations": np.where(np.arange(4) == 2, np.nan, file["observations"])}


def cut_everywhere(file: File) -> File:
    over = np.ones(len(file["actions"]), bool)
    return {"truncations": over, "terminations": ~over}


def other_choice(file: File) -> File:
    return {"actions": np.full_like(file["actions"], 2)}


def numbers(file: File) -> File:
    return {"actions": file["actions"].astype(float)}


def no_actions(file: File) -> File:
    return {"actions": None}


def other_environment(file: File) -> File:
    return {"environment": np.array("Acrobot-v1")}


CHANGES: dict[Callable[[File], File], str] = {
    other_environment: "it was recorded in `Acrobot-v1`, not in `CartPole-v1`",
    other_choice: "must be a number from 0 to 1, got 2",
    numbers: "`actions` does not fit environment `CartPole-v1`",
    other_shape: "`observations` does not fit environment `CartPole-v1`",
    not_finite: "`observations` has numbers that are not finite, first in row 0",
    cut_everywhere: "has no clip of 25 env steps: its longest episode has 1; try --set "
    "clip_length=2, or record a longer one",
    no_actions: "`actions` is missing",
}


@pytest.mark.medium
@pytest.mark.parametrize("change", CHANGES)
def test_what_does_not_fit_is_refused_in_one_line(
    change: Callable[[File], File], shown: Path, tmp_path: Path
) -> None:
    said = CHANGES[change]
    path = saved(tmp_path / "wrong.npz", shown, **change(dict(np.load(shown))))
    with pytest.raises(UsageError) as caught:
        backflip.teach(
            "CartPole-v1", demonstrations=[shown, path], labels=8, home=tmp_path, teacher="oracle"
        )
    assert said in str(caught.value)
    assert "wrong.npz" in str(caught.value)
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_the_command_takes_several_files(
    shown: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(tmp_path, capsys, "--demonstrations", str(shown), str(tmp_path / "none.npz"))
    assert "--demonstrations must be a `.npz` file of trajectories or minari:ID" in said
    assert "none.npz`, which does not exist" in said
