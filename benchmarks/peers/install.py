"""Make the environment of one peer: `python benchmarks/peers/install.py PEER`.

Each peer lives in `.cache/peers/PEER`, apart from ours, so that no peer decides which versions we
run. Versions are pinned here and checked; an environment that has them already is left alone.
"""

import argparse
import json
import subprocess
import sys
import venv
from pathlib import Path

HOME = Path(__file__).parents[2] / ".cache" / "peers"

# A plain pip takes the build without CUDA where it is configured to find one; either will do.
TORCH = "torch==2.13.0"
PEERS = {
    "sb3": [
        *(TORCH, "stable-baselines3==2.9.2", "gymnasium[box2d,mujoco]==1.4.0", "numpy==2.4.6"),
    ],
    # For the files of CleanRL that `faults` runs. With a newer Gymnasium, they log no episode.
    "cleanrl": [
        TORCH,
        "gymnasium==0.29.1",
        "tensorboard==2.21.0",
        "tyro==1.0.17",
        "stable-baselines3==2.9.2",
        "numpy==2.4.6",
    ],
    # Beside what backflip imports, which comes from this checkout: SB3, which learns from our
    # rewards, and Minari, whose data sets `teach --clips` reads.
    "sb3_reward": [
        "h5py==3.16.0",
        "minari==0.5.4",
        TORCH,
        "stable-baselines3==2.9.2",
        "gymnasium==1.4.0",
        "jax==0.10.2",
        "jaxtyping==0.3.11",
        "jinja2==3.1.6",
        "numpy==2.4.6",
        "optax==0.2.8",
        "pillow==13.0.0",
        "psutil==7.2.2",
        "rich==15.0.0",
        "safetensors==0.8.0",
        "threadpoolctl==3.8.0",
        "starlette==1.10.0",
        "uvicorn==0.54.0",
    ],
    # rejax 0.1.3 asks for any gymnax, and fails with 1.x, whose step returns six values.
    "rejax": [
        "rejax==0.1.3",
        "gymnax==0.0.9",
        "jax==0.10.2",
        "jaxlib==0.10.2",
        "flax==0.12.8",
        "distrax==0.1.9",
        "numpy==2.4.6",
    ],
    # SBX is SB3 with its arithmetic in JAX. It asks for a nightly build of TFP; the pin names one.
    "sbx": [
        TORCH,
        "sbx-rl==0.27.0",
        "stable-baselines3==2.9.2",
        "tfp-nightly==0.26.0.dev20261027",
        "jax==0.10.2",
        "jaxlib==0.10.2",
        "flax==0.12.8",
        "optax==0.2.8",
        "gymnasium==1.4.0",
        "mujoco==4.0.0",
        "imageio==2.38.1",
        "packaging==26.3",
        "numpy==2.4.6",
    ],
    "torch": [TORCH, "ale-py==0.12.1", "gymnasium==1.4.0", "numpy==2.4.6"],
    # rliable asks for arch below 8, and arch 7 does not run with pandas 3.
    "rliable": [
        "rliable==1.2.0",
        "arch==7.2.0",
        "pandas==2.3.3",
        "scipy==1.17.1",
        "numpy==2.4.6",
    ],
    # TensorBoard's own reader judges the event files that are exported.
    "loggers": [
        "tensorboardx==2.6.5",
        "tensorboard==2.21.0",
        "mlflow-skinny==3.17.2",
        "sqlalchemy==2.1.9",
        "alembic==1.20.1",
        "wandb==0.31.0",
        "numpy==2.4.6",
    ],
}


def python(peer: str) -> Path:
    """The interpreter of `peer`'s environment."""
    return HOME / peer / "bin" / "python"


def installed(peer: str) -> bool:
    """Whether `peer`'s environment has every pinned version."""
    if not python(peer).exists():
        return False
    program = (
        "import json, sys; from importlib.metadata import distributions; "
        "print(json.dumps({d.name.lower().replace('_', '-'): d.version for d in distributions()}))"
    )
    result = subprocess.run([python(peer), "-c", program], capture_output=True, check=True)
    found = json.loads(result.stdout)
    wanted = (requirement.split("==") for requirement in PEERS[peer])
    return all(found.get(name, "").split("+")[0] == version for name, version in wanted)


def install(peer: str) -> None:
    """Create `peer`'s environment, unless it is there already."""
    if installed(peer):
        return
    print(f"installing {peer} into {HOME / peer} ...", file=sys.stderr)
    venv.create(HOME / peer, with_pip=True, clear=True)
    pip = [python(peer), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    subprocess.run([*pip, *PEERS[peer]], check=True)


def main() -> None:
    """Install the peers named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer", nargs="+", choices=sorted(PEERS))
    for peer in parser.parse_args().peer:
        install(peer)


if __name__ == "__main__":
    main()
