"""Git repositories that make git run a program of theirs, each with a command that shows it."""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from packages.runshelf.tests.snapshot.repositories import git, made, write

Build = Callable[[Path, str], None]


@dataclass(frozen=True)
class Hostile:
    """A hostile repository.

    Attributes:
        build: changes a repository so that git runs a program; called with both.
        shown_by: words of git that run the program.
        cwd: where a run is started, relative to the root.
    """

    build: Build
    shown_by: tuple[str, ...]
    cwd: str = "."


STATUS = ("status",)
DIFF = ("diff", "HEAD")
REFRESH = ("update-index", "--refresh")


def configured(
    settings: Mapping[str, str], attributes: str = "", config: str = ".git/config"
) -> Build:
    """Return what writes settings, with `EVIL` for the program, and attributes."""

    def build(root: Path, evil: str) -> None:
        for key, value in settings.items():
            git(root, "config", "--file", config, key, value.replace("EVIL", evil))
        if attributes:
            write(root / ".git" / "info" / "attributes", attributes)
        touch_all(root)

    return build


def touch_all(root: Path) -> None:
    """Make git read all files again."""
    write(root / "train.py", "print('changed')\n")
    os.utime(root / "model.py", (1, 1))


def filtered(name: bytes, field: str = "clean") -> Build:
    """Return what adds a filter with any name to all files."""

    def build(root: Path, evil: str) -> None:
        with (root / ".git" / "config").open("ab") as config:
            config.write(b'[filter "%s"]\n\t%s = %s\n' % (name, field.encode(), evil.encode()))
        (root / ".git" / "info" / "attributes").write_bytes(b"* filter=%s\n" % name)
        touch_all(root)

    return build


def included(key: str) -> Build:
    """Return what names a program in a file that the configuration includes."""

    def build(root: Path, evil: str) -> None:
        git(root, "config", "--file", str(root / "settings"), "core.fsmonitor", evil)
        git(root, "config", key, str(root / "settings"))

    return build


def of_the_working_tree(settings: Mapping[str, str], attributes: str = "") -> Build:
    """Return what writes settings of one working tree only."""

    def build(root: Path, evil: str) -> None:
        git(root, "config", "core.repositoryFormatVersion", "1")
        git(root, "config", "extensions.worktreeConfig", "true")
        configured(settings, attributes, ".git/config.worktree")(root, evil)

    return build


def with_attributes(attributes: str, key: str) -> Build:
    """Return what adds attributes in a tracked file."""

    def build(root: Path, evil: str) -> None:
        write(root / ".gitattributes", attributes)
        git(root, "add", ".")
        git(root, "commit", "-qm", "attributes")
        configured({key: evil})(root, evil)

    return build


def with_attributes_file(root: Path, evil: str) -> None:
    """Name an attributes file in the configuration."""
    path = write(root.parent / "attributes", "* filter=evil\n")
    configured({"core.attributesFile": str(path), "filter.evil.clean": evil})(root, evil)


def with_hook(folder: str, setting: bool) -> Build:
    """Return what adds a hook that git runs after it has written the index."""

    def build(root: Path, evil: str) -> None:
        hook = root / folder / "post-index-change"
        hook.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(evil, hook)
        if setting:
            git(root, "config", "core.hooksPath", str(root / folder))
        touch_all(root)

    return build


def in_submodule(build: Build, settings: Mapping[str, str] | None = None) -> Build:
    """Return what adds a submodule that is hostile."""

    def outer(root: Path, evil: str) -> None:
        made(root.parent / "other")
        git(root, "submodule", "add", "-q", str(root.parent / "other"), "module")
        git(root, "commit", "-qm", "second")
        module = root / "module"
        folder = root / ".git" / "modules" / "module"
        (module / ".git").unlink()
        shutil.move(folder, module / ".git")
        git(root, "config", "--file", str(module / ".git" / "config"), "--unset", "core.worktree")
        write(module / "new", "new\n")
        git(module, "add", "new")
        git(module, "commit", "-qm", "new")
        build(module, evil)
        touch_all(module)
        for key, value in (settings or {}).items():
            git(root, "config", key, value)

    return outer


def in_nested(build: Build) -> Build:
    """Return what adds an untracked repository that is hostile."""

    def outer(root: Path, evil: str) -> None:
        build(made(root / "nested"), evil)

    return outer


def promised(settings: Mapping[str, str], missing: str = "HEAD:train.py") -> Build:
    """Return what takes an object away that a remote promises to have."""

    def build(root: Path, evil: str) -> None:
        name = git(root, "rev-parse", missing).strip()
        folder = root / ".git"
        (folder / "objects" / name[:2] / name[2:]).unlink()
        configured(
            {
                "core.repositoryFormatVersion": "1",
                "extensions.partialClone": "origin",
                "remote.origin.promisor": "true",
                "remote.origin.fetch": "+refs/heads/*:refs/remotes/origin/*",
                **settings,
            }
        )(root, evil)

    return build


def signed(root: Path, evil: str) -> None:
    """Make a commit with a signature that `git log` has checked by a program."""
    text = git(root, "cat-file", "commit", "HEAD")
    head, _, message = text.partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n aa\n -----END PGP SIGNATURE-----"
    path = write(root.parent / "commit", f"{head}\n{signature}\n\n{message}")
    name = git(root, "hash-object", "-t", "commit", "-w", str(path)).strip()
    git(root, "update-ref", "HEAD", name)
    configured({"gpg.program": evil, "log.showSignature": "true"})(root, evil)


def git_folder_elsewhere(root: Path, evil: str) -> None:
    """Let `.git` be a file that names a hostile folder among the files."""
    (root / ".git").rename(root / "store")
    write(root / ".git", "gitdir: store\n")
    git(root, "config", "core.fsmonitor", evil)


def embedded(root: Path, evil: str) -> None:
    """Track a folder that git takes for a bare repository."""
    shutil.copytree(root / ".git", root / "data")
    write(root / "data" / "train.py", "print(1)\n")
    for key, value in {"bare": "false", "worktree": ".", "fsmonitor": evil}.items():
        git(root, "config", "--file", "data/config", f"core.{key}", value)


def linked_working_tree(root: Path, evil: str) -> None:
    """Add a working tree beside the repository, whose configuration is hostile."""
    git(root, "worktree", "add", "-q", str(root / "tree"), "-b", "b")
    git(root, "config", "core.fsmonitor", evil)


def tree_above(root: Path, evil: str) -> None:
    """Let the working tree be the folder above."""
    configured({"core.worktree": str(root.parent), "core.fsmonitor": evil})(root, evil)


def alternates(root: Path, evil: str) -> None:
    """Borrow objects from a repository; a program lists its references."""
    other = made(root.parent / "other")
    write(root / ".git" / "objects" / "info" / "alternates", f"{other}/.git/objects\n")
    configured({"core.alternateRefsCommand": evil})(root, evil)


def with_own_program(attributes: str) -> Build:
    """Return what has a file where a filter or a diff of the user looks for its program."""

    def build(root: Path, evil: str) -> None:
        shutil.copy(evil, root / USER_PROGRAM)
        write(root / ".git" / "info" / "attributes", attributes)
        touch_all(root)

    return build


USER_PROGRAM = "convert.sh"
USER_SETTINGS = f"""[filter "user"]
\tclean = ./{USER_PROGRAM}
[filter "process"]
\tprocess = ./{USER_PROGRAM}
[diff "user"]
\ttextconv = ./{USER_PROGRAM}
"""
SSH = {"remote.origin.url": "ssh://host/x", "core.sshCommand": "EVIL"}
EXT = {"remote.origin.url": "ext::EVIL", "protocol.ext.allow": "always"}
PACK = {"remote.origin.url": "/", "remote.origin.uploadpack": "EVIL"}
PROXY = {"remote.origin.url": "git://host/x", "core.gitProxy": "EVIL"}
FILTER = {"filter.evil.clean": "EVIL"}
ALL_FILTERED = "* filter=evil\n"
ALL_DIFFED = "* diff=evil\n"

HOSTILE: dict[str, Hostile] = {
    "file monitor": Hostile(configured({"core.fsmonitor": "EVIL"}), STATUS),
    "file monitor of one working tree": Hostile(
        of_the_working_tree({"core.fsmonitor": "EVIL"}), STATUS
    ),
    "file monitor, included": Hostile(included("include.path"), STATUS),
    "file monitor, included by folder": Hostile(included("includeIf.gitdir:**.path"), STATUS),
    "file monitor, included by branch": Hostile(included("includeIf.onbranch:**.path"), STATUS),
    "external diff": Hostile(configured({"diff.external": "EVIL"}), DIFF),
    "external diff of a type": Hostile(configured({"diff.evil.command": "EVIL"}, ALL_DIFFED), DIFF),
    "text conversion": Hostile(configured({"diff.evil.textconv": "EVIL"}, ALL_DIFFED), DIFF),
    "cached text conversion": Hostile(
        configured({"diff.evil.textconv": "EVIL", "diff.evil.cachetextconv": "true"}, ALL_DIFFED),
        DIFF,
    ),
    "text conversion, tracked": Hostile(with_attributes(ALL_DIFFED, "diff.evil.textconv"), DIFF),
    "pager": Hostile(configured({"core.pager": "EVIL"}), ("--paginate", "log")),
    **{
        f"pager of {command}": Hostile(configured({f"pager.{command}": "EVIL"}), (command,))
        for command in ("status", "diff")
    },
    "filter": Hostile(configured(FILTER, ALL_FILTERED), DIFF),
    "filter, required": Hostile(
        configured(FILTER | {"filter.evil.required": "true"}, ALL_FILTERED), DIFF
    ),
    "filter process": Hostile(configured({"filter.evil.process": "EVIL"}, ALL_FILTERED), DIFF),
    "filter to write": Hostile(
        configured({"filter.evil.smudge": "EVIL"}, ALL_FILTERED), ("checkout", "-f", "HEAD")
    ),
    "filter, tracked": Hostile(with_attributes(ALL_FILTERED, "filter.evil.clean"), DIFF),
    "filter by a macro": Hostile(configured(FILTER, "[attr]all filter=evil\n* all\n"), DIFF),
    "filter by an attributes file": Hostile(with_attributes_file, DIFF),
    "filter of one working tree": Hostile(of_the_working_tree(FILTER, ALL_FILTERED), DIFF),
    **{
        f"filter named {name[:12]!r}": Hostile(filtered(name), DIFF)
        for name in (
            *(b"a=b", b"=", b"a=b=c", b"\xff\xfe", b"caf\xe9", "ü".encode(), b"a.b", b".", b"a#b"),
            *(b"a;b", b"-c", b"a" * 1500, b"*", b"a]b", b"$(x)", b"A=b"),
        )
    },
    "filter process named a=b": Hostile(filtered(b"a=b", "process"), DIFF),
    "filter process with a name that is not text": Hostile(filtered(b"\xff", "process"), DIFF),
    "filter of the user": Hostile(with_own_program("* filter=user\n"), DIFF),
    "filter process of the user": Hostile(with_own_program("* filter=process\n"), DIFF),
    "text conversion of the user": Hostile(with_own_program("* diff=user\n"), DIFF),
    "hook": Hostile(with_hook(".git/hooks", setting=False), REFRESH),
    "hook of a tracked folder": Hostile(with_hook("hooks", setting=True), REFRESH),
    "submodule with an external diff": Hostile(
        in_submodule(configured({"diff.external": "EVIL"}), {"diff.submodule": "diff"}), DIFF
    ),
    "submodule with a file monitor": Hostile(
        in_submodule(configured({"core.fsmonitor": "EVIL"})), STATUS
    ),
    "submodule with a filter": Hostile(in_submodule(configured(FILTER, ALL_FILTERED)), STATUS),
    "submodule with a filter named a=b": Hostile(in_submodule(filtered(b"a=b")), STATUS),
    "submodule with a filter that is not text": Hostile(in_submodule(filtered(b"\xff")), STATUS),
    "submodule with a promise": Hostile(
        in_submodule(promised(EXT)), ("-C", "module", "cat-file", "-p", "HEAD:train.py")
    ),
    "nested repository with a file monitor": Hostile(
        in_nested(configured({"core.fsmonitor": "EVIL"})), ("-C", "nested", "status")
    ),
    "nested repository with a filter": Hostile(
        in_nested(filtered(b"a=b")), ("-C", "nested", "diff")
    ),
    **{
        f"promised {what} by {how}": Hostile(
            promised(settings, missing), ("cat-file", "-p", missing)
        )
        for how, settings in {"ext": EXT, "ssh": SSH, "a proxy": PROXY, "a program": PACK}.items()
        for what, missing in {"file": "HEAD:train.py", "folder": "HEAD^{tree}"}.items()
    },
    "promised commit": Hostile(promised(EXT, "HEAD"), ("cat-file", "-p", "HEAD")),
    "promise of one working tree": Hostile(
        lambda root, evil: (promised(EXT)(root, evil), of_the_working_tree(EXT)(root, evil))[0],
        ("cat-file", "-p", "HEAD:train.py"),
    ),
    "credential helper": Hostile(
        configured({"credential.helper": "!EVIL", **EXT}), ("credential", "fill")
    ),
    "question for a password": Hostile(
        configured({"core.askPass": "EVIL"}), ("credential", "fill")
    ),
    "editor": Hostile(configured({"core.editor": "EVIL"}), ("commit", "--allow-empty")),
    "check of a signature": Hostile(signed, ("log", "-1")),
    "references of another repository": Hostile(alternates, ("rev-list", "--alternate-refs")),
    "alias": Hostile(configured({"alias.st": "!EVIL"}), ("st",)),
    "git folder among the files": Hostile(git_folder_elsewhere, STATUS),
    "embedded repository": Hostile(embedded, ("-C", "data", "status"), cwd="data"),
    "linked working tree": Hostile(linked_working_tree, ("-C", "tree", "status"), cwd="tree"),
    "working tree above": Hostile(tree_above, STATUS),
}
