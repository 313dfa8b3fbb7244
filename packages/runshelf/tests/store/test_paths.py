"""Questions about paths have an answer for every text that a user can type."""

from pathlib import Path

import pytest

from runshelf.errors import UserFacingError
from runshelf.store.paths import exists, is_file, is_folder


def test_files_folders_and_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    (tmp_path / "link").symlink_to(file)
    (tmp_path / "broken").symlink_to(tmp_path / "nothing")
    asked = [(is_file(path), is_folder(path), exists(path)) for path in (file, tmp_path)]
    assert asked == [(True, False, True), (False, True, True)]
    assert is_file(tmp_path / "link")
    assert not exists(tmp_path / "broken")


@pytest.mark.parametrize("text", ["x" * 300, "x/" * 3_000, "a\0b", "", "/dev/null/x"])
def test_a_text_that_is_no_path_does_not_exist(text: str) -> None:
    path = Path(text) / "run.json"
    assert not is_file(path)
    assert not is_folder(path)
    assert not exists(path)


def test_a_loop_of_links_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert not exists(tmp_path / "loop")


def test_other_errors_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied")  # root, who runs the tests, gets none

    monkeypatch.setattr(Path, "stat", refused)
    with pytest.raises(UserFacingError, match="cannot read or write `secret/x`: Permission denied"):
        exists(Path("secret/x"))
