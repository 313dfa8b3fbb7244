"""The commands `look`, `play`, `watch` and `export-policy`."""

import argparse
import contextlib
import math
import sys
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGTERM
from typing import TYPE_CHECKING, Any

from backflip.cli.progress_lines import progress_lines
from backflip.cli.training_commands import EPILOG, LARGEST_SEED
from backflip.core.paths import from_here
from runshelf.cli.arguments import RUN, add_output, home, sentence, whole
from runshelf.cli.trusting import ask_to_import
from runshelf.interrupts import interruptible
from runshelf.terminal_text import put

if TYPE_CHECKING:
    from runshelf.store.run import Run

_MOST_SECONDS = 60.0  # of an episode in a moving picture


def add(commands: Any) -> None:
    """Add the commands to the parser."""
    _add_look(commands)
    _add_play(commands)
    _add_watch(commands)
    _add_export_policy(commands)


def _add_look(commands: Any) -> None:
    about = "measure ENV with a random policy before training"
    parser = commands.add_parser("look", help=about, description=sentence(about), epilog=EPILOG)
    _add_env(parser)
    parser.add_argument(
        "--episodes",
        type=whole(1, 100_000, 20),
        default=20,
        metavar="N",
        help="episodes of the random policy; default 20",
    )
    parser.add_argument(
        "--discount",
        type=_discount,
        default=0.99,
        metavar="γ",
        help="discount of the reported horizon; default 0.99",
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="file of the clip, .webp, or .png for a strip; default ENV.webp in the folder "
        "runs/.runshelf/look of the home",
    )
    add_output(parser)
    parser.set_defaults(act=_look)


def _add_play(commands: Any) -> None:
    about = "play ENV yourself in the browser, with the agent's observations"
    parser = commands.add_parser("play", help=about, description=sentence(about), epilog=EPILOG)
    _add_env(parser)
    parser.add_argument(
        "--open",
        action=argparse.BooleanOptionalAction,
        help="open the page in a browser; default: if there is a screen",
    )
    parser.add_argument(
        "--port",
        type=whole(1, 65_535, 8765),
        metavar="N",
        help="default: the first free port from 8765",
    )
    parser.add_argument(
        "--save",
        metavar="FILE",
        help="save the episodes in this .npz file, for teach --demonstrations or --clips",
    )
    add_output(parser)
    parser.set_defaults(act=_play)


def _add_watch(commands: Any) -> None:
    about = "play and draw the policies saved in a run"
    parser = commands.add_parser("watch", help=about, description=sentence(about))
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument(
        "--seed",
        type=whole(0, LARGEST_SEED, 0),
        metavar="N",
        help="seed whose policy is played; default: the run's first seed",
    )
    parser.add_argument(
        "--episodes",
        type=whole(1, 1_000, 1),
        default=1,
        metavar="K",
        help="episodes per checkpoint, of which the first is drawn; default 1",
    )
    parser.add_argument(
        "--out", metavar="FOLDER", help="output folder; default: watch/seed-N/ in the run's folder"
    )
    parser.add_argument(
        "--stages",
        type=whole(2, 6, 3),
        metavar="N",
        help="write one moving picture of N policies side by side, from before training to its "
        "end; 3 with --save alone",
    )
    parser.add_argument(
        "--save",
        metavar="FILE",
        help="file of that picture, .webp or .gif; default: stages.webp in the output folder",
    )
    parser.add_argument(
        "--seconds",
        type=_seconds,
        default=4.0,
        metavar="S",
        help="most of an episode that the picture shows, in the environment's time; default 4",
    )
    add_output(parser)
    parser.set_defaults(act=_watch)


def _add_export_policy(commands: Any) -> None:
    about = "write a run's policy for programs with NumPy only"
    parser = commands.add_parser("export-policy", help=about, description=sentence(about))
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument(
        "file", metavar="FILE", help="ends in .npz; the program to act with it ends in .py"
    )
    parser.add_argument(
        "--seed",
        type=whole(0, LARGEST_SEED, 0),
        metavar="N",
        help="seed whose policy is written; default: the run's first seed",
    )
    add_output(parser)
    parser.set_defaults(act=_export_policy)


def _add_env(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("env", metavar="ENV", help="the environment's id")
    parser.add_argument(
        "--seed",
        type=whole(0, LARGEST_SEED, 0),
        default=0,
        metavar="N",
        help="seed of all randomness; default 0",
    )
    parser.add_argument(
        "--env-arg",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="argument of ENV's constructor; repeatable",
    )


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0.0 < number <= _MOST_SECONDS:
        most = f"{_MOST_SECONDS:g}"
        raise argparse.ArgumentTypeError(f"must be above 0 and at most {most}, got `{text}`; try 4")
    return number


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
    from backflip.inspect.findings import findings, verdict
    from backflip.inspect.look import look
    from backflip.training.runtime import prepare

    prepare()
    looked = look(
        options.env,
        env_args=parse_env_args(options.env_arg),
        episodes=options.episodes,
        seed=options.seed,
        discount=options.discount,
        clip=_clip_of(options),
        home=None if options.out else home(options).absolute(),
        on_progress=progress_lines(),
        warn=_warn,
    )
    found = findings(looked.report)
    if options.json:
        return {
            **looked.report.to_json(),
            "findings": [one._asdict() for one in found],
            "verdict": verdict(found),
            "clip": str(looked.clip),
            "note": looked.note,
        }
    from backflip.cli.reporting import print_report

    print_report(looked, found, verdict(found))
    return None


def _clip_of(options: argparse.Namespace) -> Path:
    """Return the file of the clip: by default in a folder of the home that git does not see."""
    from runshelf.store.home import LOOKS, shared

    name = f"{_as_file(options.env)}.webp"
    return Path(options.out) if options.out else shared(home(options), LOOKS) / name


def _play(options: argparse.Namespace) -> dict[str, Any]:
    from backflip.envs.arguments import parse_env_args
    from backflip.inspect.game import Game
    from backflip.inspect.play_server import serve_game
    from backflip.inspect.saved_episodes import checked_path
    from backflip.training.runtime import place_of, prepare
    from runshelf.cli.page_options import page_opener
    from runshelf.store.run import create_run

    save = None if options.save is None else checked_path(options.save)
    prepare()
    place = place_of(home(options))
    env_args = parse_env_args(options.env_arg)
    open_page = page_opener(options, f"play {options.env}")

    def announce(place: Any) -> None:
        put(f"{open_page(place.address)}; Ctrl-C ends it", flush=True)

    game = Game(options.env, env_args, options.seed, save)
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
        with contextlib.suppress(KeyboardInterrupt), interruptible(SIGINT, SIGTERM, SIGHUP):
            serve_game(game, writer.folder, port=options.port, announce=announce)
        saved = 0 if game.saved is None else game.saved.save()
        writer.record("finished", result={"returns": game.scores})
    return {
        "run": writer.run.ulid,
        "env": options.env,
        "episodes": len(game.scores),
        "returns": game.scores,
        "folder": str(from_here(writer.folder)),
        **({"saved": str(save) if saved else "nothing: no env step was taken"} if save else {}),
    }


def _watch(options: argparse.Namespace) -> dict[str, Any] | None:
    from runshelf.store.finding import find_run

    run = find_run(home(options), options.run)  # fails before JAX is imported, which is slow
    _ask_to_import(run, options)
    if options.stages or options.save:
        return _draw_stages(run, options)
    from backflip.inspect.watch import watch
    from backflip.training.runtime import prepare

    prepare()
    shown = watch(
        run,
        seed=options.seed,
        episodes=options.episodes,
        out=Path(options.out) if options.out else None,
        on_progress=progress_lines(),
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
            "labels": shown.labels,
        }
    from backflip.cli.reporting import print_watched

    print_watched(shown)
    return None


def _draw_stages(run: "Run", options: argparse.Namespace) -> dict[str, Any] | None:
    from backflip.inspect.stages import draw_stages
    from backflip.training.policy import refuse_without_policy, seed_of
    from backflip.training.runtime import prepare

    refuse_without_policy(run)
    prepare()
    folder = Path(options.out or run.folder / f"watch/seed-{seed_of(run, options.seed)}")
    file = Path(options.save) if options.save else folder / "stages.webp"
    shown = draw_stages(
        run,
        file,
        seed=options.seed,
        count=options.stages,
        seconds=options.seconds,
        on_progress=progress_lines(),
        warn=_warn,
    )
    if options.json:
        stages = [one._asdict() for one in shown]
        return {"run": run.ulid, "picture": str(from_here(file)), "stages": stages}
    from backflip.cli.reporting import print_stages

    print_stages(shown, file)
    return None


def _export_policy(options: argparse.Namespace) -> dict[str, Any]:
    from runshelf.store.finding import find_run

    run = find_run(home(options), options.run)  # fails before JAX is imported, which is slow
    _ask_to_import(run, options)
    from backflip.export.write import export_policy
    from backflip.training.runtime import prepare

    prepare()
    written = export_policy(run, Path(options.file), options.seed)
    return {
        "run": run.ulid,
        "seed": written.seed,
        "policy": str(from_here(written.policy)),
        "program": str(from_here(written.program)),
    }


def _ask_to_import(run: "Run", options: argparse.Namespace) -> None:
    from backflip.training.named_code import code_named_by

    ask_to_import(run, code_named_by(run), options)


def _as_file(env_id: str) -> str:
    """Return an environment's id with characters that are safe in file names."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in env_id)


def _warn(note: str) -> None:
    put(f"backflip: note: {note}", file=sys.stderr)
