"""Forward and backward of our pixel policy network against the same network in PyTorch.

`python benchmarks/pixel_network.py --pairs 3`: a batch of 256 x 84 x 84 x 4 bytes, as loss
the mean of all squared outputs, gradients of all parameters, measured in turn on the same cores.
"""

import argparse
import json
import sys
from pathlib import Path

from side_by_side import Row, best_seconds, in_turn, matmul_flops, peer, run, table

BATCH, SIDE, FRAMES, ACTIONS = 256, 84, 4, 6


def ours(seconds: float) -> None:
    """Time our network in this process and print what `peers/torch_pixels.py` prints."""
    # Imported here: only the process that is timed needs JAX.
    import jax  # noqa: PLC0415
    import jax.numpy as jnp  # noqa: PLC0415
    import numpy as np  # noqa: PLC0415

    from backflip.core.spaces import Box, Discrete  # noqa: PLC0415
    from backflip.core.spec import EnvSpec  # noqa: PLC0415
    from backflip.networks.actor_critic import actor_critic  # noqa: PLC0415
    from backflip.networks.torsos import halving  # noqa: PLC0415

    shape = (SIDE, SIDE, FRAMES)
    frames = Box(np.zeros(shape, np.uint8), np.full(shape, 255, np.uint8), np.dtype(np.uint8))
    spec = EnvSpec("pixels", frames, Discrete(ACTIONS), max_episode_steps=None, frame_stack=FRAMES)
    network = actor_critic(spec, hidden=())
    params = jax.device_put(network.init(np.random.default_rng(0)))
    images = jnp.asarray(np.random.default_rng(1).integers(0, 256, (BATCH, *shape), np.uint8))

    @jax.jit
    def gradient(params, images):
        def loss(params):
            policy, value = network.apply(params, network.preprocess(images))
            return jnp.square(policy).mean() + jnp.square(value).mean()

        return jax.grad(loss)(params)

    best = best_seconds(lambda: jax.block_until_ready(gradient(params, images)), seconds)
    weights = {name: list(layer["w"].shape) for name, layer in params.items()}
    print(json.dumps({"seconds": best, "weights": weights, "factor": halving(shape)}))


def limit(flops: float, factor: int, patch: int, channels: int, hidden: int) -> float:
    """Return batches per second at `flops`; the first layer needs no gradient of its input."""
    cells = (-(-SIDE // (factor * patch))) ** 2
    first = cells * patch * patch * FRAMES * channels
    later = cells * channels * hidden + hidden * (ACTIONS + 1)
    averaging = SIDE * SIDE * FRAMES
    return flops / (BATCH * (averaging + 4 * first + 6 * later))


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of timing, for each process")
    parser.add_argument("--ours", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ours:
        ours(arguments.seconds)
        return

    command = [sys.executable, Path(__file__), "--ours", "--seconds", str(arguments.seconds)]
    flops = matmul_flops()
    network = run(command).output
    weights, factor = network["weights"], network["factor"]
    pixels, channels = weights["patches"]
    hidden = weights["hidden"][1]
    patch = round((pixels / FRAMES) ** 0.5)
    sizes = ["--factor", factor, "--patch", patch, "--channels", channels, "--hidden", hidden]
    timing = ["--seconds", arguments.seconds]
    measured = in_turn(
        arguments.pairs,
        lambda: run(command).output,
        lambda: peer("torch", "torch_pixels.py", *sizes, "--actions", ACTIONS, *timing).output,
    )
    rows = [
        Row(
            "batches per second, forward and backward",
            [1 / a["seconds"] for a, _ in measured],
            [1 / b["seconds"] for _, b in measured],
            limit(max(flops, matmul_flops()), factor, patch, channels, hidden),
        )
    ]
    table(f"{BATCH} x {SIDE}x{SIDE}x{FRAMES}: /{factor}, patches of {patch}; PyTorch 2.13", rows)
    for form, seconds in measured[-1][1]["forms"].items():
        print(f"PyTorch, {form}: {1e3 * seconds:.2f} ms")


if __name__ == "__main__":
    main()
