"""MinAtar Seaquest: shoot fish and submarines, collect divers, and surface for oxygen.

Objects enter at the sides of rows 1 to 8 and cross the board. A hit fish or submarine has reward 1.
Contact with one or with a bullet, no oxygen, or surfacing without a diver loses the game. Surfacing
restores oxygen, removes a diver and makes the game harder. With six divers it removes all of them,
and the reward is a tenth of the remaining oxygen in percent. (As in the original, the number of
divers is then -1, and surfacing with -1 divers does not lose the game.)

Objects of one kind are stored in a queue of slots, newest first. At most one per kind appears in an
env step; dead ones keep their slots until pushed out. The queues are long enough: an enemy lives
for 30 env steps when one appears every env step, and longer only when fewer are alive; a diver
lives for 60, one appears every 30; a bullet lives for 9, one is fired every 5. Enemy bullets are
bits of a row, because bullets in one cell never separate.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt16

from backflip.envs.native.minatar.base import (
    DOWN,
    FIRE,
    LEFT,
    NOOP,
    RIGHT,
    SIDE,
    UP,
    Game,
    MinAtar,
    Moment,
    cell,
    choice,
    cooled,
    moved,
)

START = 5  # the player's first column, at the surface
LOWEST = 8  # the lowest row in which objects move
ENEMIES, DIVERS, SHOTS = 32, 2, 2  # slots
MAX_OXYGEN = 200  # env steps
MAX_DIVERS = 6
ENEMY_EVERY = 20  # initial env steps between two new enemies
DIVER_EVERY = 30
MOVE_EVERY = 5  # initial env steps between two moves of an enemy
FASTEST = 2  # the smallest such value
DIVER_MOVE_EVERY = 5
SHOT_EVERY = 10  # env steps between two shots of an enemy submarine
RELOAD = 5  # env steps between two of the player's shots
BOARD = np.uint16((1 << SIDE) - 1)  # the bits of all cells of a row


class Queue(NamedTuple):
    """Objects of one kind in S slots, newest first; divers and shots do not use all fields.

    Attributes:
        alive: the slot has an object.
        x: column.
        y: row.
        to_right: the direction of movement.
        wait: env steps until the next move.
        armed: a submarine, not a fish.
        reload: env steps until the next shot.
    """

    alive: Bool[Array, " S"]
    x: Int[Array, " S"]
    y: Int[Array, " S"]
    to_right: Bool[Array, " S"]
    wait: Int[Array, " S"]
    armed: Bool[Array, " S"]
    reload: Int[Array, " S"]


class Bombs(NamedTuple):
    """Enemy bullets that fly left and right: bit x of row y - 1."""

    to_left: UInt16[Array, " 8"]
    to_right: UInt16[Array, " 8"]


class SeaquestState(NamedTuple):
    """The player, all objects, and timers in env steps."""

    x: Int[Array, ""]
    y: Int[Array, ""]
    to_right: Bool[Array, ""]
    surfaced: Bool[Array, ""]
    oxygen: Int[Array, ""]
    rescued: Int[Array, ""]
    enemies: Queue
    divers: Queue
    shots: Queue
    bombs: Bombs
    enemy_every: Int[Array, ""]
    enemy_timer: Int[Array, ""]
    diver_timer: Int[Array, ""]
    move_every: Int[Array, ""]
    ramps: Int[Array, ""]
    reload: Int[Array, ""]


def start(drawn: Float[Array, " 0"]) -> SeaquestState:
    """Return the initial state: the player alone at the surface with full oxygen."""
    del drawn
    no, none = jnp.zeros((), bool), jnp.zeros(LOWEST, jnp.uint16)
    return SeaquestState(
        x=jnp.int8(START),
        y=jnp.int8(0),
        to_right=no,
        surfaced=~no,
        oxygen=jnp.int32(MAX_OXYGEN),
        rescued=jnp.int32(0),
        enemies=_empty(ENEMIES),
        divers=_empty(DIVERS),
        shots=_empty(SHOTS),
        bombs=Bombs(none, none),
        enemy_every=jnp.int8(ENEMY_EVERY),
        enemy_timer=jnp.int8(ENEMY_EVERY),
        diver_timer=jnp.int8(DIVER_EVERY),
        move_every=jnp.int8(MOVE_EVERY),
        ramps=jnp.int8(0),
        reload=jnp.int8(0),
    )


def advance(
    state: SeaquestState, action: Int[Array, ""], drawn: Float[Array, " 5"], ramping: bool
) -> Moment:
    """Return the game after objects appeared, the player acted, and objects moved, in this order.

    Args:
        state: the state before.
        action: the player's action.
        drawn: random numbers for side, kind and row of an enemy, side and row of a diver.
        ramping: whether the game becomes harder with every surfacing.
    """
    state = _acted(_joined(state, drawn), action)
    state, shot_down = _shots_moved(state)
    state = _divers_moved(state)
    state, rammed, touched, fired = _enemies_moved(state)
    bombs, bombed = _bombs_moved(state, fired)
    state = state._replace(bombs=bombs, reload=cooled(state.reload))
    state, prize, lost = _breathed(state, ramping)
    reward = (shot_down + rammed + prize).astype(jnp.float32)
    return Moment(state, reward, lost | touched | bombed)


def _joined(state: SeaquestState, drawn: Float[Array, " 5"]) -> SeaquestState:
    """Return the game after an enemy and a diver appeared, if due.

    No enemy appears in a row in which another moves in the opposite direction.
    """
    right, armed, row = drawn[0] < 1 / 2, drawn[1] < 1 / 3, 1 + choice(drawn[2], LOWEST)
    due = state.enemy_timer == 0
    others = state.enemies
    against = (others.alive & (others.y == row) & (others.to_right != right)).any()
    enemies = _pushed(others, due & ~against, right, row, state.move_every, armed)
    called = state.diver_timer == 0
    right, row = drawn[3] < 1 / 2, 1 + choice(drawn[4], LOWEST)
    wait = jnp.int8(DIVER_MOVE_EVERY)
    divers = _pushed(state.divers, called, right, row, wait, jnp.zeros((), bool))
    return state._replace(
        enemies=enemies,
        divers=divers,
        enemy_timer=cooled(jnp.where(due, state.enemy_every, state.enemy_timer)),
        diver_timer=cooled(jnp.where(called, DIVER_EVERY, state.diver_timer)),
    )


def _acted(state: SeaquestState, action: Int[Array, ""]) -> SeaquestState:
    """Return the game after the player fired or moved."""
    fires = (action == FIRE) & (state.reload == 0)
    left, right = action == LEFT, action == RIGHT
    zero, no = jnp.int8(0), jnp.zeros((), bool)
    shot = Queue(
        alive=~no, x=state.x, y=state.y, to_right=state.to_right, wait=zero, armed=no, reload=zero
    )
    return state._replace(
        x=moved(state.x, left, right),
        y=moved(state.y, action == UP, action == DOWN, 0, LOWEST),
        to_right=(state.to_right | right) & ~left,
        shots=_push(state.shots, fires, shot),
        reload=jnp.where(fires, RELOAD, state.reload),
    )


def _shots_moved(state: SeaquestState) -> tuple[SeaquestState, Int[Array, ""]]:
    """Return the game after the player's bullets moved, and the number of hits.

    Of several enemies in a cell, fish are hit before submarines, and the oldest first.
    """
    enemies = state.enemies
    shots = _on(state.shots, state.shots.alive)
    age = jnp.arange(ENEMIES, dtype=jnp.int8)
    hit = _first_met(shots, enemies, enemies.alive, age + jnp.where(enemies.armed, 0, ENEMIES))
    enemies = enemies._replace(alive=enemies.alive & ~hit.any(0))
    shots = shots._replace(alive=shots.alive & ~hit.any(1))
    return state._replace(shots=shots, enemies=enemies), hit.sum(dtype=jnp.int32)


def _divers_moved(state: SeaquestState) -> SeaquestState:
    """Return the game after divers moved; the player rescues those it meets if there is room.

    The newest diver comes first, which matters for the last free place.
    """
    divers, rescued = state.divers, state.rescued
    moves = divers.alive & (divers.wait == 0)
    after = _on(divers, moves)
    after = after._replace(wait=jnp.where(moves, DIVER_MOVE_EVERY, divers.wait - 1))
    here, there = (queue.alive & _at_player(queue, state) for queue in (divers, after))
    waiting: list[Array] = []
    aboard: list[Array] = []
    for slot in range(DIVERS):
        room = rescued < MAX_DIVERS
        aboard.append(room & (here[slot] | there[slot]))
        waiting.append(after.alive[slot] & ~aboard[slot])
        rescued = rescued + aboard[slot].astype(jnp.int32)
    return state._replace(divers=after._replace(alive=jnp.stack(waiting)), rescued=rescued)


def _enemies_moved(
    state: SeaquestState,
) -> tuple[SeaquestState, Int[Array, ""], Bool[Array, ""], Bombs]:
    """Return the game after enemies moved, hits by bullets, contact with the player, new bullets.

    Of several enemies that meet one bullet, submarines are hit before fish, and the newest first.
    """
    before, shots = state.enemies, state.shots
    moves = before.alive & (before.wait == 0)
    enemies = _on(before, moves)
    wait = jnp.where(moves, state.move_every, before.wait - 1)
    shoots = before.alive & before.armed & (before.reload == 0)
    reload = jnp.where(shoots, SHOT_EVERY, before.reload - 1)
    at_player = enemies.alive & moves & _at_player(enemies, state)
    touched = (before.alive & _at_player(before, state)).any() | at_player.any()
    youth = ENEMIES - jnp.arange(ENEMIES, dtype=jnp.int8)
    rank = youth + jnp.where(enemies.armed, ENEMIES, 0)
    met = _first_met(shots, enemies, enemies.alive & moves & ~at_player, rank)
    fired = enemies._replace(alive=shoots & _on_board(enemies.x))
    enemies = enemies._replace(alive=enemies.alive & ~met.any(0), wait=wait, reload=reload)
    shots = shots._replace(alive=shots.alive & ~met.any(1))
    bombs = Bombs(_rows(fired, ~fired.to_right), _rows(fired, fired.to_right))
    return state._replace(enemies=enemies, shots=shots), met.sum(dtype=jnp.int32), touched, bombs


def _bombs_moved(state: SeaquestState, fired: Bombs) -> tuple[Bombs, Bool[Array, ""]]:
    """Return all enemy bullets one cell further, and whether one met the player.

    Bullets that the player moves onto count, too.
    """
    bombs = jax.tree.map(jnp.bitwise_or, state.bombs, fired)
    after = Bombs(bombs.to_left >> 1, (bombs.to_right << 1) & BOARD)
    rows = jnp.arange(1, LOWEST + 1, dtype=jnp.int8)
    player = jnp.where(rows == state.y, _bit(state.x), jnp.uint16(0))
    seen = bombs.to_left | bombs.to_right | after.to_left | after.to_right
    return after, ((seen & player) != 0).any()


def _breathed(
    state: SeaquestState, ramping: bool
) -> tuple[SeaquestState, Int[Array, ""], Bool[Array, ""]]:
    """Return the game after oxygen changed, the reward for surfacing, and whether it is lost."""
    at_surface, stifled = state.y == 0, state.oxygen <= 0
    arrived = at_surface & ~state.surfaced
    breathes, full = arrived & (state.rescued != 0), state.rescued == MAX_DIVERS
    prize = jnp.where(breathes & full, state.oxygen * 10 // MAX_OXYGEN, 0)
    left = jnp.where(full, 0, state.rescued) - 1
    under = jnp.where(at_surface, state.oxygen, state.oxygen - 1)
    after = state._replace(
        surfaced=at_surface & (state.surfaced | breathes),
        oxygen=jnp.where(breathes, MAX_OXYGEN, under),
        rescued=jnp.where(breathes, left, state.rescued),
    )
    after = _harder(after, breathes) if ramping else after
    return after, prize, stifled | (arrived & ~breathes)


def _harder(state: SeaquestState, breathes: Bool[Array, ""]) -> SeaquestState:
    """Return the game with enemies that appear sooner, and every second time also move sooner."""
    rises = breathes & ((state.enemy_every > 1) | (state.move_every > FASTEST))
    second = rises & (state.ramps % 2 == 1)
    every = jnp.where(rises, jnp.maximum(state.enemy_every - 1, 1), state.enemy_every)
    move = jnp.where(second, jnp.maximum(state.move_every - 1, FASTEST), state.move_every)
    ramps = state.ramps + rises.astype(jnp.int8)
    return state._replace(enemy_every=every, move_every=move, ramps=ramps)


def _empty(slots: int) -> Queue:
    no, zero = jnp.zeros(slots, bool), jnp.zeros(slots, jnp.int8)
    return Queue(alive=no, x=zero, y=zero, to_right=no, wait=zero, armed=no, reload=zero)


def _pushed(
    queue: Queue,
    comes: Bool[Array, ""],
    to_right: Bool[Array, ""],
    row: Int[Array, ""],
    wait: Int[Array, ""],
    armed: Bool[Array, ""],
) -> Queue:
    """Return the queue with a new object at its side of the board, if `comes`."""
    x = jnp.where(to_right, jnp.int8(0), jnp.int8(SIDE - 1))
    return _push(
        queue,
        comes,
        Queue(
            alive=comes,
            x=x,
            y=row,
            to_right=to_right,
            wait=wait,
            armed=armed,
            reload=jnp.int8(SHOT_EVERY),
        ),
    )


def _push(queue: Queue, comes: Bool[Array, ""], new: Queue) -> Queue:
    """Return the queue with `new` in its first slot, if `comes`."""

    def push(slots: Array, one: Array) -> Array:
        return jnp.where(comes, jnp.concatenate([one[None], slots[:-1]]), slots)

    return jax.tree.map(push, queue, new)


def _on(queue: Queue, moves: Bool[Array, " S"]) -> Queue:
    """Return the queue after objects in `moves` moved one cell; those off the board are dead."""
    x = queue.x + jnp.where(moves, jnp.where(queue.to_right, 1, -1), 0)
    return queue._replace(x=x, alive=queue.alive & _on_board(x))


def _on_board(x: Int[Array, " S"]) -> Bool[Array, " S"]:
    return (x >= 0) & (x < SIDE)


def _at_player(queue: Queue, state: SeaquestState) -> Bool[Array, " S"]:
    return (queue.x == state.x) & (queue.y == state.y)


def _first_met(
    shots: Queue, enemies: Queue, exposed: Bool[Array, " S"], rank: Int[Array, " S"]
) -> Bool[Array, "2 S"]:
    """Return which enemy each bullet hits: of the exposed ones in its cell, that of highest rank.

    Two bullets are never in one cell.
    """
    same = (shots.x[:, None] == enemies.x[None]) & (shots.y[:, None] == enemies.y[None])
    score = jnp.where(same & shots.alive[:, None] & exposed[None], 1 + rank[None], 0)
    return (score > 0) & (score == score.max(1, keepdims=True))


def _bit(x: Int[Array, "..."]) -> UInt16[Array, "..."]:
    return jnp.uint16(1) << x.astype(jnp.uint16)


def _rows(queue: Queue, which: Bool[Array, " S"]) -> UInt16[Array, " 8"]:
    """Return bit x of row y - 1 for each living object in `which`."""
    return _mark(queue, which & queue.alive, queue.x)


def _mark(queue: Queue, which: Bool[Array, " S"], x: Int[Array, " S"]) -> UInt16[Array, " 8"]:
    """Return bit x of row y - 1 for each object in `which`, without columns off the board."""
    rows = jnp.arange(1, LOWEST + 1, dtype=jnp.int8)[:, None] == queue.y[None]
    bits = jnp.where(which & _on_board(x), _bit(jnp.clip(x, 0, SIDE - 1)), jnp.uint16(0))
    marked = jnp.where(rows, bits[None], jnp.uint16(0))
    return jax.lax.reduce(marked, np.uint16(0), jax.lax.bitwise_or, (1,))


def planes(state: SeaquestState) -> list[Bool[Array, "10 10"]]:
    """Return front, back, shots, trails, bombs, fish, submarines, oxygen, rescued and divers."""
    enemies, divers = state.enemies, state.divers
    back = state.x - jnp.where(state.to_right, 1, -1)
    trails = [_mark(q, q.alive, q.x - jnp.where(q.to_right, 1, -1)) for q in (enemies, divers)]
    columns = jnp.arange(SIDE, dtype=jnp.int32)
    air = jnp.maximum(state.oxygen, 0) * 10 // MAX_OXYGEN
    people = (columns >= SIDE - 1 - state.rescued) & (columns < SIDE - 1)
    shots = cell(state.shots.x[0], state.shots.y[0]) & state.shots.alive[0]
    return [
        cell(state.x, state.y),
        cell(back, state.y),
        shots | (cell(state.shots.x[1], state.shots.y[1]) & state.shots.alive[1]),
        _plane(trails[0] | trails[1]),
        _plane(state.bombs.to_left | state.bombs.to_right),
        _plane(_rows(enemies, ~enemies.armed)),
        _plane(_rows(enemies, enemies.armed)),
        _at_bottom(columns < air),
        _at_bottom(people),
        _plane(_rows(divers, divers.alive)),
    ]


def _plane(rows: UInt16[Array, " 8"]) -> Bool[Array, "10 10"]:
    """Return the plane whose rows 1 .. 8 are given as bits."""
    bits = rows[:, None] >> jnp.arange(SIDE, dtype=jnp.uint16)[None, :]
    return jnp.pad((bits & jnp.uint16(1)).astype(bool), ((1, 1), (0, 0)))


def _at_bottom(row: Bool[Array, " 10"]) -> Bool[Array, "10 10"]:
    return jnp.pad(row[None], ((SIDE - 1, 0), (0, 0)))


SEAQUEST = Game(
    name="Seaquest",
    channels=(
        "sub_front",
        "sub_back",
        "friendly_bullet",
        "trail",
        "enemy_bullet",
        "enemy_fish",
        "enemy_sub",
        "oxygen_gauge",
        "diver_gauge",
        "diver",
    ),
    actions=(NOOP, LEFT, UP, RIGHT, DOWN, FIRE),
    start_draws=0,
    draws=5,
    start=start,
    advance=advance,
    planes=planes,
)


class Seaquest(MinAtar):
    """The game; all six actions have an effect."""

    game = SEAQUEST


class SeaquestV0(Seaquest):
    """The same game as -v0."""

    version = 0
