"""The commands that look: at an environment, by playing it, at what a run has learnt."""

import argparse
import contextlib
import math
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backflip.cli.training_commands import EPILOG, LARGEST_SEED
from backflip.core.paths import from_here
from runshelf.cli.arguments import RUN, add_output, home, sentence, whole

if TYPE_CHECKING:
    from backflip.inspect.random_play import OnEnvSteps

_SILENT_SECONDS, _SECONDS_BETWEEN = 2.0, 5.0  # before the first line of progress, and after each


def add(commands: Any) -> None:
    """Add the commands to the parser's."""
    _add_look(commands)
    _add_play(commands)
    _add_watch(commands)


def _add_look(commands: Any) -> None:
    about = "report what ENV is like before anything learns in it"
    parser = commands.add_parser("look", help=about, description=sentence(about), epilog=EPILOG)
    _add_env(parser)
    parser.add_argument(
        "--episodes",
        type=whole(1, 100_000, 20),
        default=20,
        metavar="N",
        help="episodes of a random policy; default 20",
    )
    parser.add_argument(
        "--discount",
        type=_discount,
        default=0.99,
        metavar="γ",
        help="of the horizon that is compared with an episode; default 0.99",
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="where to write the clip, .webp or a strip as .png; default look-ENV.webp",
    )
    add_output(parser)
    parser.set_defaults(act=_look)


def _add_play(commands: Any) -> None:
    about = "act in ENV yourself, in the browser, seeing what an agent gets"
    parser = commands.add_parser("play", help=about, description=sentence(about), epilog=EPILOG)
    _add_env(parser)
    parser.add_argument(
        "--open",
        action=argparse.BooleanOptionalAction,
        help="open the page in a browser; default: where there is a screen",
    )
    parser.add_argument(
        "--port", type=whole(1, 65_535, 8765), metavar="N", help="default: from 8765, one free"
    )
    add_output(parser)
    parser.set_defaults(act=_play)


def _add_watch(commands: Any) -> None:
    about = "draw episodes of the policies a run has kept"
    parser = commands.add_parser("watch", help=about, description=sentence(about))
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument(
        "--seed",
        type=whole(0, LARGEST_SEED, 0),
        metavar="N",
        help="whose policy; default: the run's first seed",
    )
    parser.add_argument(
        "--episodes",
        type=whole(1, 1_000, 1),
        default=1,
        metavar="K",
        help="episodes of each checkpoint, the first of them drawn; default 1",
    )
    parser.add_argument(
        "--out", metavar="FOLDER", help="where to write; default: watch/seed-N/ in the run's folder"
    )
    add_output(parser)
    parser.set_defaults(act=_watch)


def _add_env(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("env", metavar="ENV", help="which environment")
    parser.add_argument(
        "--seed",
        type=whole(0, LARGEST_SEED, 0),
        default=0,
        metavar="N",
        help="of everything random; default 0",
    )
    parser.add_argument(
        "--env-arg",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="give ENV's constructor an argument; repeatable",
    )


def _discount(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0.0 <= number <= 1.0:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, got `{text}`; try 0.99")
    return number


def _look(options: argparse.Namespace) -> dict[str, Any] | None:
    from backflip.envs.arguments import parse_env_args
    from backflip.inspect.look import look
    from backflip.inspect.verdict import findings, verdict
    from backflip.training.runtime import prepare

    prepare()
    looked = look(
        options.env,
        env_args=parse_env_args(options.env_arg),
        episodes=options.episodes,
        seed=options.seed,
        discount=options.discount,
        clip=Path(options.out or f"look-{_as_file(options.env)}.webp"),
        tell=_progress(),
        warn=_warn,
    )
    found = findings(looked.report)
    if options.json:
        said = {"findings": [one._asdict() for one in found], "verdict": verdict(found)}
        drawn = {"clip": str(looked.clip), "note": looked.note}
        return {**looked.report.to_json(), **said, **drawn}
    from backflip.cli.reporting import print_report

    print_report(looked, found, verdict(found))
    return None


def _play(options: argparse.Namespace) -> dict[str, Any]:
    from backflip.envs.arguments import parse_env_args
    from backflip.inspect.game import Game
    from backflip.inspect.play_server import serve_game
    from backflip.training.runtime import place_of, prepare
    from runshelf.cli.invite import invite, usually_opens
    from runshelf.store.run import create_run

    prepare()
    place = place_of(home(options))
    env_args = parse_env_args(options.env_arg)
    opens = usually_opens(os.environ) if options.open is None else options.open

    def announce(place: Any) -> None:
        said = invite(place.address, os.environ, opens=opens, what=f"play {options.env}")
        print(f"{said}; Ctrl-C ends it", flush=True)

    game = Game(options.env, env_args, options.seed)
    with (
        contextlib.closing(game),
        create_run(
            place.home,
            command="play",
            config={"env_args": env_args},
            seeds=[options.seed],
            env=options.env,
            argv=options.argv,
            cwd=place.cwd,
        ) as writer,
    ):
        game.keep_in(writer)
        with contextlib.suppress(KeyboardInterrupt):
            serve_game(game, writer.folder, port=options.port, announce=announce)
        writer.record("finished", result={"returns": game.scores})
    return {
        "run": writer.run.ulid,
        "env": options.env,
        "episodes": len(game.scores),
        "returns": game.scores,
        "folder": str(from_here(writer.folder)),
    }


def _watch(options: argparse.Namespace) -> dict[str, Any] | None:
    from runshelf.store.run import find_run

    run = find_run(home(options), options.run)  # before the second that JAX takes to import
    from backflip.inspect.watch import watch
    from backflip.training.runtime import prepare

    prepare()
    shown = watch(
        run,
        seed=options.seed,
        episodes=options.episodes,
        out=Path(options.out) if options.out else None,
        tell=_progress(),
        warn=_warn,
    )
    if options.json:
        return {
            "run": run.ulid,
            "env": run.manifest["env"],
            "checkpoints": [one.to_json() for one in shown.checkpoints],
            "overview": str(from_here(shown.overview)),
            "numbers": str(from_here(shown.numbers)),
            "notes": shown.notes,
        }
    from backflip.cli.reporting import print_watched

    print_watched(shown)
    return None


def _as_file(env_id: str) -> str:
    """Return an environment's id as part of a file's name."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in env_id)


def _warn(note: str) -> None:
    print(f"backflip: note: {note}", file=sys.stderr, flush=True)


def _progress() -> "OnEnvSteps":
    """Return what says on stderr how far it is, once it takes longer than two seconds."""
    next_at = time.monotonic() + _SILENT_SECONDS

    def tell(what: str, share: float) -> None:
        nonlocal next_at
        if time.monotonic() < next_at:
            return
        next_at = time.monotonic() + _SECONDS_BETWEEN
        done = f" {share:.0%}" if share else ""
        print(f"backflip: {what}{done}", file=sys.stderr, flush=True)

    return tell
