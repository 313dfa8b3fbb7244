"""Git repositories of many kinds, as people have them."""

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ULID = "01M80FDKW2EFCP7ECZZ3WYBW2X"
_IDENTITY = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}
_OPTIONS = ("-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main")


@dataclass(frozen=True)
class Place:
    """Where a command is called.

    Attributes:
        repository: the folder in which the user asks for `git status`.
        cwd: the working folder of the command.
        words: options of the command.
        environ: variables of the command and of git.
        is_dirty: whether files differ from the commit.
        code: files of the snapshot, among others.
    """

    repository: Path
    cwd: Path
    words: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    is_dirty: bool = False
    code: tuple[str, ...] = ("train.py",)


def git(folder: Path, *words: str, environ: Mapping[str, str] | None = None) -> str:
    """Return the output of git."""
    return subprocess.run(
        ["git", *_OPTIONS, *words],
        cwd=folder,
        env={**os.environ, **_IDENTITY, **(environ or {})},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def write(path: Path, text: str = "text\n") -> Path:
    """Write a file, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def made(root: Path, *, ignore: str | None = None, tracked: tuple[str, ...] = ()) -> Path:
    """Return a clean repository with a program, a module and one commit."""
    write(root / "train.py", "import model\nprint(model.x)\n")
    write(root / "model.py", "x = 1\n")
    if ignore is not None:
        write(root / ".gitignore", ignore)
    for name in tracked:
        write(root / name)
    git(root, "init", "-q")
    git(root, "add", "-f", ".")
    git(root, "commit", "-qm", "first")
    return root


def _ignoring(ignore: str | None) -> Callable[[Path], Place]:
    def make(tmp: Path) -> Place:
        root = made(tmp / "repository", ignore=ignore)
        return Place(root, root)

    return make


def _with_files_in_runs(tmp: Path) -> Place:
    root = made(tmp / "repository", tracked=("runs/notes.md", "runs/sweep.py"))
    return Place(root, root, code=("train.py", "runs/notes.md", "runs/sweep.py"))


def _with_an_ignore_file_in_runs(tmp: Path) -> Place:
    root = made(tmp / "repository", tracked=("runs/notes.md",))
    write(root / "runs" / ".gitignore", "*.tmp\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "second")
    return Place(root, root, code=("train.py", "runs/.gitignore"))


def _with_untracked_files_in_runs(tmp: Path) -> Place:
    root = made(tmp / "repository")
    write(root / "runs" / "Nov23_host" / "events.out.tfevents.1")
    return Place(
        root, root, is_dirty=True, code=("train.py", "runs/Nov23_host/events.out.tfevents.1")
    )


def _with_an_empty_runs_folder(tmp: Path) -> Place:
    root = made(tmp / "repository")
    (root / "runs").mkdir()
    return Place(root, root)


def _excluded_here(tmp: Path) -> Place:
    root = made(tmp / "repository")
    write(root / ".git" / "info" / "exclude", "runs/\n")
    return Place(root, root)


def _excluded_everywhere(tmp: Path) -> Place:
    root = made(tmp / "repository")
    excludes = write(tmp / "excludes", "runs\n!runs/.gitignore\n")
    config = write(tmp / "config", f"[core]\n\texcludesFile = {excludes}\n")
    return Place(root, root, environ={"GIT_CONFIG_GLOBAL": str(config)})


def _subfolder(tmp: Path) -> Place:
    root = made(tmp / "repository", ignore="/runs\n", tracked=("sub/deep/train.py",))
    write(root / "sub" / "deep" / "train.py", "print(2)\n")
    git(root, "commit", "-qam", "second")
    return Place(root, root / "sub" / "deep", code=("train.py", "sub/deep/train.py"))


def _with_submodule(tmp: Path) -> tuple[Path, Path]:
    other = made(tmp / "other")
    root = made(tmp / "repository")
    git(root, "submodule", "add", "-q", str(other), "module")
    git(root, "commit", "-qm", "second")
    return root, root / "module"


def _above_a_submodule(tmp: Path) -> Place:
    root, _ = _with_submodule(tmp)
    return Place(root, root, code=("train.py", "module/train.py"))


def _in_a_submodule(tmp: Path) -> Place:
    root, module = _with_submodule(tmp)
    # What Python compiles in the submodule would be a change of it for the repository above.
    return Place(root, module, environ={"PYTHONDONTWRITEBYTECODE": "1"})


def _above_a_changed_submodule(tmp: Path) -> Place:
    root, module = _with_submodule(tmp)
    write(module / "model.py", "x = 2\n")
    return Place(root, root, is_dirty=True)


def _above_a_submodule_with_runs(tmp: Path) -> Place:
    root, module = _with_submodule(tmp)
    write(module / "runs" / ULID / "run.json", "{}")
    return Place(root, root)


def _worktree(tmp: Path) -> Place:
    root = made(tmp / "repository")
    git(root, "worktree", "add", "-q", str(tmp / "tree"), "-b", "b")
    return Place(tmp / "tree", tmp / "tree")


def _worktree_inside(tmp: Path) -> Place:
    root = made(tmp / "repository", ignore="trees/\n")
    git(root, "worktree", "add", "-q", str(root / "trees" / "b"), "-b", "b")
    return Place(root, root / "trees" / "b")


def _home_inside(tmp: Path) -> Place:
    root = made(tmp / "repository")
    return Place(root, root, ("--home", "experiments/first"))


def _home_outside(tmp: Path) -> Place:
    root = made(tmp / "repository")
    return Place(root, root, environ={"RUNSHELF_HOME": str(tmp / "elsewhere" / "home")})


def _home_of_a_subfolder_above(tmp: Path) -> Place:
    root = made(tmp / "repository", tracked=("sub/x.py",))
    write(root / "sub" / "train.py", "print(2)\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "second")
    return Place(root, root / "sub", ("--home", ".."), code=("sub/x.py",))


def _beside_another_home(tmp: Path) -> Place:
    root = made(tmp / "repository")
    write(root / "first" / "runs" / ULID / "run.json", "{}")
    for name in ("objects/sha256/ab/cd", "index.sqlite", "index.sqlite.lock", "index.sqlite-wal"):
        write(root / "first" / name)
    write(root / "renamed" / ULID / "run.json", "{}")
    write(root / "renamed" / ".runshelf" / "index.sqlite")
    return Place(root, root, ("--home", "second"))


def _old_home(tmp: Path) -> Place:
    root = made(tmp / "repository", ignore="runs/\n")
    write(root / "runs" / ULID / "lock", "")
    write(root / "budget.json", '{"weekly": 5}\n')
    for name in ("objects/sha256/ab/cd", "index.sqlite", "index.sqlite.lock", f"trash/{ULID}/x"):
        write(root / name)
    write(root / "runs" / ULID / "run.json", "{}")
    return Place(root, root)


def _outer_repository(tmp: Path) -> Place:
    root = made(tmp / "repository", ignore="inner/\n")
    made(root / "inner")
    return Place(root, root)


def _inner_repository(tmp: Path) -> Place:
    root = made(tmp / "repository")
    inner = made(root / "inner")
    return Place(inner, inner)


def _working_tree_above(tmp: Path) -> Place:
    root = made(tmp / "repository")
    write(root / "meta" / "train.py", "print(2)\n")
    git(root, "config", "core.worktree", str(root))
    (root / ".git").rename(root / "meta" / ".git")
    git(root / "meta", "add", ":/")
    git(root / "meta", "commit", "-qm", "second")
    return Place(root / "meta", root / "meta", code=("train.py", "meta/train.py"))


def _named_by_the_environment(tmp: Path) -> Place:
    root = made(tmp / "repository")
    (root / ".git").rename(tmp / "store.git")
    environ = {"GIT_DIR": str(tmp / "store.git"), "GIT_WORK_TREE": str(root)}
    return Place(root, root, environ=environ)


def _separate_git_folder(tmp: Path) -> Place:
    root = made(tmp / "repository")
    git(root, "init", "-q", "--separate-git-dir", str(tmp / "store.git"))
    return Place(root, root)


def _linked_home(tmp: Path) -> Place:
    root = made(tmp / "repository", ignore="/home\n", tracked=("kept/x",))
    (root / "home").symlink_to("kept")
    return Place(root, root, ("--home", "home"))


def _linked_runs(tmp: Path) -> Place:
    root = made(tmp / "repository", ignore="/runs\n")
    (tmp / "disk").mkdir()
    (root / "runs").symlink_to(tmp / "disk")
    return Place(root, root)


def _linked_repository(tmp: Path) -> Place:
    made(tmp / "repository", ignore="runs/\n")
    (tmp / "link").symlink_to("repository")
    return Place(tmp / "link", tmp / "link")


def _sparse(tmp: Path) -> Place:
    root = made(tmp / "repository", tracked=("a/x", "b/y"))
    git(root, "sparse-checkout", "set", "a")
    assert not (root / "b").exists()
    return Place(root, root, code=("train.py", "a/x"))


def _shallow(tmp: Path) -> Place:
    made(tmp / "other")
    git(tmp, "clone", "-q", "--depth", "1", f"file://{tmp / 'other'}", "repository")
    return Place(tmp / "repository", tmp / "repository")


def _partial(tmp: Path) -> Place:
    git(made(tmp / "other"), "config", "uploadpack.allowFilter", "true")
    git(tmp, "clone", "-q", "--filter=blob:none", f"file://{tmp / 'other'}", "repository")
    (tmp / "other").rename(tmp / "gone")
    return Place(tmp / "repository", tmp / "repository")


def _with_line_endings(tmp: Path) -> Place:
    root = made(tmp / "repository", tracked=("x.bat",))
    git(root, "config", "core.autocrlf", "true")
    for name in ("model.py", "x.bat"):
        (root / name).unlink()
    git(root, "checkout", "-q", ".")
    assert b"\r\n" in (root / "x.bat").read_bytes()
    os.utime(root / "x.bat", (0, 0))
    return Place(root, root)


def _detached(tmp: Path) -> Place:
    root = made(tmp / "repository")
    git(root, "checkout", "-q", "--detach")
    return Place(root, root)


def _with_hidden_untracked_files(tmp: Path) -> Place:
    root = made(tmp / "repository")
    git(root, "config", "status.showUntrackedFiles", "no")
    write(root / "mine")
    return Place(root, root, code=("train.py", "mine"))


def _odd_names(tmp: Path) -> Place:
    root = made(tmp / "my röpo\nsitory", tracked=("a b", "ü"))
    return Place(root, root, code=("train.py", "a b", "ü"))


def _changed(tmp: Path) -> Place:
    root = made(tmp / "repository", ignore="runs/\n")
    write(root / "model.py", "x = 2\n")
    return Place(root, root, is_dirty=True)


def _with_an_untracked_file(tmp: Path) -> Place:
    root = made(tmp / "repository", ignore="runs/\n")
    write(root / "folder" / "new.py")
    return Place(root, root, is_dirty=True, code=("folder/new.py",))


def _with_a_removed_and_a_staged_file(tmp: Path) -> Place:
    root = made(tmp / "repository", tracked=("a", "b"))
    (root / "a").unlink()
    git(root, "mv", "b", "c")
    return Place(root, root, is_dirty=True, code=("c",))


KINDS: dict[str, Callable[[Path], Place]] = {
    "no ignore file": _ignoring(None),
    "runs/ is ignored": _ignoring("runs/\n"),
    "/runs is ignored": _ignoring("/runs\n"),
    "everything is ignored": _ignoring("*\n"),
    "runs is not ignored": _ignoring("*\n!runs\n!runs/**\n!*.sqlite\n"),
    **{
        function.__name__.removeprefix("_").replace("_", " "): function
        for function in (
            *(_with_files_in_runs, _with_an_ignore_file_in_runs, _with_untracked_files_in_runs),
            *(_with_an_empty_runs_folder, _excluded_here, _excluded_everywhere, _subfolder),
            *(_above_a_submodule, _in_a_submodule, _above_a_changed_submodule),
            *(_above_a_submodule_with_runs, _worktree, _worktree_inside, _home_inside),
            *(_home_outside, _home_of_a_subfolder_above, _beside_another_home, _old_home),
            *(_outer_repository, _inner_repository, _working_tree_above),
            *(_named_by_the_environment, _separate_git_folder, _linked_home, _linked_runs),
            *(_linked_repository, _sparse, _shallow, _partial, _with_line_endings, _detached),
            *(_with_hidden_untracked_files, _odd_names, _changed, _with_an_untracked_file),
            _with_a_removed_and_a_staged_file,
        )
    },
}
