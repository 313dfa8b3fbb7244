"""The minimum number of multiplications and additions of an algorithm, from its weights.

A dense layer of P weights takes 2P for one row forward, 2P for the gradient of its weights and 2P
for the gradient of its input: 6P to learn from a row. Small terms are left out: activations, Adam,
the sampling of a replay, the environment.
"""

from itertools import pairwise


def weights(*sizes: int) -> int:
    """Return the weights of dense layers of these widths, from inputs to outputs."""
    return sum(i * o for i, o in pairwise(sizes))


def ppo(params: float, epochs: int) -> float:
    """Per env step: 2P to act, 6P in every epoch; P of policy and value together."""
    return (2 + 6 * epochs) * params


def a2c(params: float) -> float:
    """Per env step: 2P to act, 6P to learn."""
    return 8 * params


def dqn(params: float, batch_size: int, updates_per_step: float, *, double: bool = False) -> float:
    """Per env step: 2P to act; each row of a minibatch 6P, 2P for its target, 2P more if double."""
    return (2 + updates_per_step * batch_size * (10 if double else 8)) * params


def ddpg(actor: float, critic: float, batch_size: int) -> float:
    """Per gradient step: both networks learn (6 each), both target networks act (2 each).

    The actor's gradient passes through the critic, forward and to its input (4).
    """
    return batch_size * (8 * actor + 12 * critic)


def td3(actor: float, critic: float, batch_size: int) -> float:
    """Per gradient step: two critics learn (6 each) towards two targets (2 each).

    The actor acts for the target (2), and in every second step learns (6) through one critic (4).
    """
    return batch_size * (5 * actor + 18 * critic)


def sac(actor: float, critic: float, batch_size: int) -> float:
    """Per gradient step: two critics learn (6 each) towards two targets (2 each).

    The actor acts for the target (2) and learns (6) through both critics (4 each).
    """
    return batch_size * (8 * actor + 24 * critic)


def nature(actions: int) -> tuple[int, int]:
    """Return multiplications of one forward pass of the Nature network, and of its first layer.

    84 x 84 x 4 pixels; 32 filters of 8x8 stride 4, 64 of 4x4 stride 2, 64 of 3x3, 512 units,
    a policy and a value.
    """
    first = 20 * 20 * 8 * 8 * 4 * 32
    later = 9 * 9 * 4 * 4 * 32 * 64 + 7 * 7 * 3 * 3 * 64 * 64 + 7 * 7 * 64 * 512
    return first + later + 512 * (actions + 1), first


def minatar(channels: int, outputs: int) -> tuple[int, int]:
    """Return the same for MinAtar's network: 16 filters of 3x3, 10 x 10 cells, 128 units, heads."""
    first = 8 * 8 * 3 * 3 * channels * 16
    return first + 8 * 8 * 16 * 128 + 128 * outputs, first
