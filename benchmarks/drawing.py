"""Milliseconds per frame of our view of planar MuJoCo robots and of MuJoCo's own pictures.

    python benchmarks/drawing.py [--frames 64] [ENV ...]

The frames are those of an episode of random actions. `CPU` is the CPU time of this process, which
does not depend on what else runs; MuJoCo draws in another process, so only its wall-clock time is
known. The bar is 2 ms per frame. `pair` is the time until both clips of a pair, of 50 env steps
each, are files that a page can show.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from backflip.core.spec import EnvSpec
from backflip.envs.registry import make_host
from backflip.envs.views.film import film
from backflip.envs.views.mujoco import MujocoView
from backflip.envs.views.planar import planar_view
from backflip.envs.views.view import View
from backflip.preferences.films import write_film
from runshelf.errors import UserFacingError

ROBOTS = (
    "Hopper-v5",
    "Walker2d-v5",
    "HalfCheetah-v5",
    "Swimmer-v5",
    "Reacher-v5",
    "InvertedPendulum-v5",
    "InvertedDoublePendulum-v5",
)
CLIP = 50  # env steps


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("envs", nargs="*", default=ROBOTS, metavar="ENV")
    parser.add_argument("--frames", type=int, default=64)
    options = parser.parse_args()
    print("| env | ours | CPU | MuJoCo | a pair, ours | a pair, MuJoCo |")
    print("|---|---|---|---|---|---|")
    for name in options.envs:
        print(f"| {name} | {' | '.join(row(name, options.frames))} |", flush=True)


def row(name: str, count: int) -> list[str]:
    """Return one row of the table."""
    spec, scenes = episode(name, count)
    ours, theirs = planar_view(spec, name, {}), MujocoView(spec, name, {})
    if ours is None:
        sys.exit(f"error: `{name}` is not planar")
    wall, cpu = per_frame(ours, scenes)
    cells = [f"{wall:.2f} ms", f"{cpu:.2f} ms"]
    try:
        cells.append(f"{per_frame(theirs, scenes)[0]:.1f} ms")
        pairs = [pair_seconds(view, scenes) for view in (ours, theirs)]
    except UserFacingError:
        cells, pairs = [*cells, "-"], [pair_seconds(ours, scenes)]
    return [*cells, *(f"{seconds:.2f} s" for seconds in pairs)]


def episode(name: str, count: int) -> tuple[EnvSpec, Float[np.ndarray, "K S"]]:
    """Return the states of an episode of random actions."""
    env: Any = make_host(name)
    env.reset([0])
    rng, scenes = np.random.default_rng(0), []
    box = env.spec.action
    for _ in range(count):
        scenes.append(env.scenes()[0])
        env.step(rng.uniform(box.low, box.high, (1, *box.low.shape)).astype(np.float32))
    env.close()
    return env.spec, np.array(scenes, np.float64)


def per_frame(view: View, scenes: Float[np.ndarray, "K S"]) -> tuple[float, float]:
    """Return milliseconds of wall-clock and of CPU time per frame."""
    view.draw(scenes[:2])
    wall, cpu = time.perf_counter(), time.process_time()
    view.draw(scenes)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return 1e3 * wall / len(scenes), 1e3 * cpu / len(scenes)


def pair_seconds(view: View, scenes: Float[np.ndarray, "K S"]) -> float:
    """Return how long the films of two clips take, with their files."""
    clip = scenes[:CLIP].astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        for _ in range(2):
            movie = film(view, clip, clip, clip, np.ones(len(clip), bool))
            write_film(Path(folder) / "films", movie.frames, fps=movie.fps)
        return time.perf_counter() - began


if __name__ == "__main__":
    main()
