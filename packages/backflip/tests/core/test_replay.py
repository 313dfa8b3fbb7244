"""The replay against a slow list of rows: what is read, what is drawn, and how often."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backflip.core.replay.layout import Layout, Replay, ages, empty, layout, time_of
from backflip.core.replay.priorities import reprioritize
from backflip.core.replay.rows import add, read, read_steps
from backflip.core.replay.sampling import sample, sample_on_host
from backflip.core.spaces import Box, Discrete
from backflip.core.spec import EnvSpec
from backflip.core.trees import where_rows
from backflip.core.types import Transition
from backflip.envs.native.dot import Dot

COLUMNS = 3
ROLLOUT = 4
DISCOUNT = 0.5  # sums of such powers are exact


def box(shape: tuple[int, ...], dtype: Any) -> Box:
    high = 255 if dtype == np.uint8 else 1000
    return Box(np.zeros(shape, dtype), np.full(shape, high, dtype), np.dtype(dtype))


def spec_of(stack: int, repeats: bool = True) -> EnvSpec:
    """Vectors where `stack` is 0, else images with two pixels: high and low byte of a number."""
    seen = box((2, 1, stack), np.uint8) if stack else box((2,), np.float32)
    return EnvSpec(
        "numbers",
        seen,
        Discrete(3),
        None,
        frame_stack=max(stack, 1),
        repeats_first_frame=repeats,
    )


class World:
    """One environment whose frames are numbered; episodes end at random.

    With reset rows it behaves as Gymnasium's NEXT_STEP mode: the call after an end does nothing
    but reset, and its row is no transition.
    """

    def __init__(self, rng: np.random.Generator, case: "Case") -> None:
        self.rng, self.stack, self.reset_rows = rng, case.stack, case.reset_rows
        self.repeats = case.repeats
        self.frames_so_far, self.over = 0, False
        self.frames: list[int] = []
        self.reset()

    def frame(self) -> int:
        """Return the next number."""
        self.frames_so_far += 1
        return self.frames_so_far

    def reset(self) -> None:
        """Begin an episode."""
        first = self.frame()
        self.frames = [first if self.repeats else 0] * (self.stack - 1) + [first]
        self.over = False

    def seen(self) -> np.ndarray:
        """Return the observation."""
        high_and_low = [[number // 256 for number in self.frames], [n % 256 for n in self.frames]]
        if self.stack:
            return np.array(high_and_low, np.uint8)[:, None]
        return np.array(high_and_low, np.float32)[:, -1]

    def step(self, *, cut: bool = False) -> Transition:
        """Return one row; `cut`: the driver resets the environment after it."""
        obs, valid = self.seen(), not self.over
        reward = float(self.rng.integers(-4, 5)) if valid else 0.0
        terminated, truncated = (bool(x) for x in self.rng.random(2) < 0.12)
        if self.over:
            self.reset()
            terminated = truncated = False
        else:
            self.frames = [*self.frames[1:], self.frame()]
        truncated = (truncated or cut) and not terminated
        next_obs = self.seen()
        if cut or ((terminated or truncated) and not self.reset_rows):
            self.reset()
        elif terminated or truncated:
            self.over = True
        action = self.rng.integers(3)
        return Transition(obs, action, reward, terminated, truncated, next_obs, valid, extra=())


class Case(NamedTuple):
    """How a replay is laid out and fed."""

    stack: int
    n_step: int
    reset_rows: bool
    repeats: bool = True
    capacity: int = 13 * COLUMNS  # three rollouts of 4, and a rest that is not used
    prioritized: bool = False
    seeds: int = 1  # whose columns these are
    clips: bool = False
    successors: bool = False
    recent_share: float = 0.0
    recent_env_steps: int = 0

    def layout(self) -> Layout:
        """Return the layout of one seed's replay."""
        return layout(
            spec_of(self.stack, self.repeats),
            capacity=self.capacity,
            num_envs=COLUMNS // self.seeds,
            rollout_length=ROLLOUT,
            n_step=self.n_step,
            discount=DISCOUNT,
            prioritized=self.prioritized,
            seeds=self.seeds,
            clip_rewards=self.clips,
            keeps_successors=self.successors,
            recent_share=self.recent_share,
            recent_env_steps=self.recent_env_steps,
        )


CASES = [
    Case(stack, n_step, reset_rows)
    for stack in (0, 1, 4)
    for n_step in (1, 3)
    for reset_rows in (False, True)
] + [
    Case(4, 3, True, repeats=False),
    Case(0, 3, True, clips=True),
    Case(1, 1, False, successors=True),
    Case(4, 3, False, successors=True),
    Case(4, 3, True, repeats=False, successors=True),
]
every_case = pytest.mark.parametrize("case", CASES, ids=str)


def rollouts(case: Case, count: int, seed: int = 0) -> list[list[list[Transition]]]:
    """Rows [rollout][time][column]; the environments are reset after every fifth rollout."""
    rng = np.random.default_rng(seed)
    worlds = [World(rng, case) for _ in range(COLUMNS)]
    return [
        [[w.step(cut=number % 5 == 4 and t == ROLLOUT - 1) for w in worlds] for t in range(ROLLOUT)]
        for number in range(count)
    ]


def stacked(rows: list[list[Transition]]) -> Transition:
    """Rows [time][column] as arrays (T, C, ...)."""
    flat = [row for moment in rows for row in moment]
    arrays = [np.array([getattr(row, name) for row in flat]) for name in Transition._fields[:7]]
    dtypes = [None, np.int32, np.float32, bool, bool, None, bool]
    shaped = [
        x.astype(dtype or x.dtype).reshape(len(rows), COLUMNS, *x.shape[1:])
        for x, dtype in zip(arrays, dtypes, strict=True)
    ]
    return Transition(*shaped, extra=())


def on_device(tree: Any) -> Any:
    return jax.tree.map(jnp.asarray, tree)


def fill(case: Case, count: int, *, jax_arrays: bool = False, seed: int = 0) -> tuple[Any, Any]:
    """A replay after so many rollouts, and the rows it should hold [time][column]."""
    of, lived = case.layout(), rollouts(case, count, seed)
    memory, report_replay_memory = empty(of), add
    if jax_arrays:
        memory, report_replay_memory = on_device(memory), jax.jit(add, static_argnums=0)
    for rows in lived:
        batch = stacked(rows)
        memory = report_replay_memory(of, memory, on_device(batch) if jax_arrays else batch)
    held = [moment for rows in lived for moment in rows][-of.length :]
    return memory, held


def expected(case: Case, held: list[list[Transition]], age: int, column: int) -> dict[str, Any]:
    """The expected transition of one row, by following it."""
    row = last = held[age][column]
    reward, discount, at = 0.0, 1.0, age
    for at in range(age, age + case.n_step):
        last = held[at][column]
        reward += discount * (min(max(last.reward, -1), 1) if case.clips else last.reward)
        discount *= DISCOUNT
        if last.terminated or last.truncated:
            break
    valid = row.valid
    if (
        lacks_successors(case) and last.truncated
    ):  # the successor is there only as the obs of a reset row
        valid = valid and not held[at + 1][column].valid
    return {
        "obs": row.obs,
        "action": row.action,
        "reward": reward,
        "terminated": last.terminated,
        "truncated": last.truncated,
        "next_obs": last.next_obs,
        "valid": valid,
        "discount": discount,
    }


def lacks_successors(case: Case) -> bool:
    """Whether the successor of a row is the next row's observation."""
    return case.stack > 0 and not case.successors


def drawable(case: Case, held: list[Any]) -> list[int]:
    """Ages whose older frames and following rows are all held."""
    following = case.n_step - 1 + lacks_successors(case)
    return list(range(max(case.stack - 1, 0), len(held) - following))


def read_all(case: Case, memory: Replay, ages: list[int]) -> Transition:
    of = case.layout()
    age, column = (x.astype(np.int32) for x in np.meshgrid(ages, range(COLUMNS), indexing="ij"))
    return read(of, memory, time_of(of, memory, age), column)


# What is read


@pytest.mark.medium
@pytest.mark.parametrize("count", [2, 3, 8])
@every_case
def test_every_row_reads_as_in_a_list_of_rows(case: Case, count: int) -> None:
    """Before the ring is full, just full, and after it has wrapped."""
    compared = 0
    for seed in range(4):
        memory, held = fill(case, count, seed=seed)
        may = drawable(case, held)
        assert ages(case.layout(), memory) == (may[0], may[-1] + 1)
        rows = read_all(case, memory, may)
        for place, age in enumerate(may):
            for column in range(COLUMNS):
                wanted = expected(case, held, age, column)
                assert rows.valid[place, column] == wanted["valid"]
                if not wanted["valid"]:
                    continue
                names = ["obs", "action", "reward", "terminated", "truncated"]
                if not (lacks_successors(case) and wanted["terminated"]):
                    names.append("next_obs")
                found = {name: getattr(rows, name)[place, column] for name in names}
                found["discount"] = rows.extra.discount[place, column]
                for name, value in found.items():
                    np.testing.assert_array_equal(value, wanted[name], err_msg=f"{name} {age}")
                compared += 1
    assert compared > 10


@pytest.mark.medium
@pytest.mark.parametrize("count", [2, 8])
@every_case
def test_single_env_steps_are_the_rows_until_the_episode_ends(case: Case, count: int) -> None:
    """As they were collected, with γ^k; rows after the end have weight 0."""
    of = case.layout()
    memory, held = fill(case, count)
    may = drawable(case, held)
    rows = read_all(case, memory, may)
    steps = read_steps(of, memory, rows.extra.place)
    assert steps.discount.shape == (len(may), case.n_step, COLUMNS)
    ends = 0
    for place, age in enumerate(may):
        for column in range(COLUMNS):
            discount = 1.0
            for k in range(case.n_step):
                assert steps.discount[place, k, column] == discount
                if not discount:
                    continue
                row = held[age + k][column]
                found = jax.tree.map(lambda x: x[place, k, column], steps.rows)  # noqa: B023
                ended = row.terminated or row.truncated
                names = ["action", "reward", "terminated", "truncated", "valid"]
                names += ["obs"] if row.valid or not case.stack else []
                names += (
                    ["next_obs"] if row.valid and not (ended and lacks_successors(case)) else []
                )
                for name in names:
                    np.testing.assert_array_equal(
                        getattr(found, name), getattr(row, name), err_msg=f"{name} {age} {k}"
                    )
                ends += ended
                discount = 0.0 if ended else discount * DISCOUNT
    assert ends or count == 2


@pytest.mark.medium
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(Case(0, 3, False), marks=pytest.mark.slow),
        Case(4, 3, True),
        pytest.param(Case(4, 3, False, successors=True), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_numpy_and_jax_store_and_read_the_same_bits(case: Case) -> None:
    (one, held), (other, _) = (fill(case, 8, jax_arrays=on) for on in (False, True))
    same_bits(one, other)
    ages = drawable(case, held)
    compiled = jax.jit(lambda memory: read_all(case, memory, ages))
    same_bits(read_all(case, one, ages), compiled(other))
    place = read_all(case, one, ages).extra.place
    singly = jax.jit(read_steps, static_argnums=0)
    same_bits(read_steps(case.layout(), one, place), singly(case.layout(), other, place))


def same_bits(one: Any, other: Any) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_n_step_sums_by_hand() -> None:
    """Rewards 1, 2, 4, 8; the second step is the last of an episode."""
    of = layout(spec_of(0), capacity=4, num_envs=1, rollout_length=4, n_step=3, discount=DISCOUNT)
    numbers = np.arange(8, dtype=np.float32).reshape(4, 1, 2)
    rewards = np.array([[1], [2], [4], [8]], np.float32)
    second = np.array([[False], [True], [False], [False]])
    for terminated, truncated in ((second, ~second & False), (~second & False, second)):
        rows = Transition(
            numbers,
            np.zeros((4, 1), np.int32),
            rewards,
            terminated,
            truncated,
            numbers + 100,
            np.ones((4, 1), bool),
            extra=(),
        )
        memory = add(of, empty(of), rows)
        assert ages(of, memory) == (0, 2)  # three rewards are known of the first two
        found = read(of, memory, np.arange(2), np.zeros(2, np.int32))
        assert found.reward.tolist() == [1 + 2 / 2, 2]
        assert found.extra.discount.tolist() == [1 / 4, 1 / 2]
        assert found.next_obs[:, 0].tolist() == [102, 102]
        assert (found.terminated | found.truncated).all()


def test_an_image_before_a_driver_reset_is_invalid() -> None:
    """Its successor was never stored: the next row shows another episode."""
    case = Case(stack=1, n_step=1, reset_rows=True)
    memory, held = fill(case, 6)
    cut = len(held) - 1 - ROLLOUT  # the last row of the fifth rollout
    cuts = [held[cut][column] for column in range(COLUMNS)]
    assert any(row.truncated and row.valid for row in cuts)
    rows = read_all(case, memory, [cut])
    assert rows.valid[0].tolist() == [bool(row.terminated and row.valid) for row in cuts]


@pytest.mark.slow
def test_assembled_stacks_equal_those_of_dot() -> None:
    """Across a time limit, after which another episode begins."""
    env, envs, steps = Dot(), 2, 300

    def step(carry: Any, key: Any) -> tuple[Any, Transition]:
        state, obs = carry
        action_key, step_key, reset_key = jax.random.split(key, 3)
        action = jax.random.randint(action_key, (envs,), 0, 5)
        moved = jax.vmap(env.step)(state, action, jax.random.split(step_key, envs))
        fresh = jax.vmap(env.reset)(jax.random.split(reset_key, envs))
        after = where_rows(moved.truncated, fresh, moved.state)
        ends = (moved.terminated, moved.truncated)
        row = Transition(obs, action, moved.reward, *ends, observe(moved.state), ~ends[0], extra=())
        return (after, observe(after)), row

    observe = jax.vmap(env.observe)
    first = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(0), envs))
    keys = jax.random.split(jax.random.key(1), steps)
    _, lived = jax.jit(lambda start: jax.lax.scan(step, (start, observe(start)), keys))(first)
    rows = jax.tree.map(np.asarray, lived)
    of = layout(env.spec, capacity=steps * envs, num_envs=envs, rollout_length=steps)
    memory = add(of, empty(of), rows)
    time, column = np.meshgrid(np.arange(3, steps - 1), np.arange(envs), indexing="ij")
    found = read(of, memory, time, column)
    np.testing.assert_array_equal(found.obs, rows.obs[3:-1])
    np.testing.assert_array_equal(found.valid, ~rows.truncated[3:-1])
    np.testing.assert_array_equal(found.next_obs[found.valid], rows.next_obs[3:-1][found.valid])
    assert 0 < rows.truncated.sum() < 5


@pytest.mark.parametrize("stack", [0, 1, 4])
@pytest.mark.parametrize("prioritized", [False, True])
@pytest.mark.parametrize("successors", [False, True])
def test_bytes_are_those_of_the_arrays(stack: int, prioritized: bool, successors: bool) -> None:
    case = Case(stack, 1, False, capacity=1000, prioritized=prioritized, successors=successors)
    of = case.layout()
    held = sum(leaf.nbytes for leaf in jax.tree.leaves(empty(of)))
    assert held == of.bytes + 3 * 4  # and three counters


def test_a_replay_of_images_stores_each_frame_once() -> None:
    pixels = EnvSpec("pong", box((84, 84, 4), np.uint8), Discrete(6), None, frame_stack=4)
    of = layout(pixels, capacity=1_000_000, num_envs=8, rollout_length=4)
    assert of.frame == (84, 84, 1)
    assert 84 * 84 <= of.bytes / 1_000_000 < 84 * 84 + 16


@pytest.mark.parametrize(("capacity", "length"), [(1, 4), (12, 4), (23, 4), (24, 8), (1000, 332)])
def test_the_ring_is_the_largest_multiple_of_the_rollout(capacity: int, length: int) -> None:
    assert Case(0, 1, False, capacity=capacity).layout().length == length


def test_numpy_arrays_are_written_in_place() -> None:
    """The host driver keeps the replay it handed in."""
    case = Case(0, 1, False)
    of, memory = case.layout(), empty(case.layout())
    add(of, memory, stacked(rollouts(case, 1)[0]))
    assert int(memory.position) == int(memory.filled) == ROLLOUT
    assert memory.valid[:ROLLOUT].all()
    sample_on_host(of, memory, [np.random.default_rng(0)], (2, 3))
    assert int(memory.draws) == 1


# What is drawn

draw = jax.jit(sample, static_argnums=(0, 3))


def chi_square(counts: np.ndarray, chances: np.ndarray) -> float:
    """How many standard deviations the statistic lies above its mean."""
    wanted = counts.sum() * chances
    statistic = (np.square(counts - wanted) / wanted).sum()
    free = len(counts) - 1
    return float((statistic - free) / np.sqrt(2 * free))


def drawn_places(case: Case, memory: Replay, draws: int = 60_000) -> np.ndarray:
    of = case.layout()
    if isinstance(memory.reward, np.ndarray):
        rngs = [np.random.default_rng(1)]
        return sample_on_host(of, memory, rngs, (1, draws)).extra.place.reshape(-1)
    return np.asarray(draw(of, memory, jax.random.key(1), (1, draws))[1].extra.place).reshape(-1)


def places(case: Case, memory: Replay, ages: list[int]) -> list[int]:
    times = [int(time_of(case.layout(), memory, age)) for age in ages]
    return [time * COLUMNS + column for time in times for column in range(COLUMNS)]


@pytest.mark.medium
@pytest.mark.parametrize("jax_arrays", [False, True])
@pytest.mark.parametrize("count", [2, 8])
@pytest.mark.parametrize("case", [Case(0, 1, False), Case(4, 3, True)], ids=str)
def test_rows_are_drawn_uniformly_from_those_that_can_be_drawn(
    case: Case, count: int, jax_arrays: bool
) -> None:
    memory, held = fill(case, count, jax_arrays=jax_arrays)
    may = places(case, memory, drawable(case, held))
    found, counts = np.unique(drawn_places(case, memory), return_counts=True)
    assert sorted(found) == sorted(may)
    assert chi_square(counts, np.full(len(may), 1 / len(may))) < 4


def test_each_seed_draws_from_its_own_columns() -> None:
    """A seed draws the same rows with any other seeds: each has its own generator."""
    case = Case(0, 1, False, capacity=13, seeds=3)
    memory, _ = fill(case, 3)

    def drawn(seeds: list[int]) -> np.ndarray:
        rngs = [np.random.default_rng(seed) for seed in seeds]
        return sample_on_host(case.layout(), memory, rngs, (5, 50)).extra.place

    place = drawn([0, 1, 2])
    assert (place % COLUMNS == np.arange(3)[:, None, None]).all()
    assert len(np.unique(place)) == 12 * COLUMNS
    np.testing.assert_array_equal(place[1], drawn([5, 1, 9])[1])


@pytest.mark.medium
def test_the_same_key_draws_the_same_rows_and_another_key_others() -> None:
    case = Case(0, 1, False)
    of, (memory, _) = case.layout(), fill(case, 3, jax_arrays=True)
    one, again, other = (draw(of, memory, jax.random.key(k), (2, 50))[1] for k in (0, 0, 1))
    same_bits(one, again)
    assert (one.extra.place != other.extra.place).any()
    assert (one.extra.weight == 1).all()


# Priorities

PRIORITIZED = [
    Case(0, 1, False, prioritized=True),
    Case(4, 3, True, prioritized=True),
]
prioritized_cases = pytest.mark.parametrize("case", PRIORITIZED, ids=str)
one_prioritized_case_quickly = pytest.mark.parametrize(
    "case", [PRIORITIZED[0], pytest.param(PRIORITIZED[1], marks=pytest.mark.slow)], ids=str
)


def with_errors(
    case: Case, memory: Replay, errors: dict[int, float], exponent: float = 1.0
) -> Replay:
    """The replay after these errors were reported of rows at these places."""
    place = jnp.asarray(list(errors), jnp.int32)[None]
    of = case.layout()
    report = jnp.asarray(list(errors.values()), jnp.float32)[None]

    def told(memory: Replay, place: Any, report: Any) -> Replay:
        rows = read(of, memory, place // COLUMNS, place % COLUMNS)
        return reprioritize(of, memory, rows, report, exponent)

    if isinstance(memory.reward, np.ndarray):
        copied = memory._replace(tree=memory.tree.copy())
        return told(copied, np.asarray(place), np.asarray(report))
    return jax.jit(told)(memory, place, report)


def ready(case: Case, memory: Replay, held: list[Any]) -> dict[int, bool]:
    """Places that may be drawn by priority: true for rows that can also be learned from."""
    ages = drawable(case, held)
    rows = read_all(case, memory, ages)
    place, valid = np.asarray(rows.extra.place).reshape(-1), np.asarray(rows.valid).reshape(-1)
    lived = [held[age][column].valid for age in ages for column in range(COLUMNS)]
    return {int(p): bool(v) for p, v, kept in zip(place, valid, lived, strict=True) if kept}


in_both = pytest.mark.parametrize("jax_arrays", [False, True])


def leaves_of(memory: Replay) -> np.ndarray:
    """The priorities of the rows of a replay of one seed."""
    (tree,) = np.asarray(memory.tree)
    return tree[len(tree) // 2 :]


@pytest.mark.medium
@in_both
@pytest.mark.parametrize("count", [2, pytest.param(8, marks=pytest.mark.slow)])
@one_prioritized_case_quickly
def test_new_rows_are_drawn_as_soon_as_they_can_be_and_no_others(
    case: Case, count: int, jax_arrays: bool
) -> None:
    memory, held = fill(case, count, jax_arrays=jax_arrays)
    may = ready(case, memory, held)
    leaves = leaves_of(memory)
    assert set(np.flatnonzero(leaves)) == set(may)
    assert (leaves[list(may)] == 1).all()
    assert set(drawn_places(case, memory, 5_000)) == set(may)


@pytest.mark.medium
@one_prioritized_case_quickly
def test_rows_too_new_to_be_drawn_get_a_priority_later(case: Case) -> None:
    """Draw from every state of the ring, report errors, and never lose a row for good."""
    of, memory = case.layout(), on_device(empty(case.layout()))
    lived = rollouts(case, 8)

    @jax.jit
    def cycle(memory: Replay, batch: Transition, key: Any) -> Replay:
        memory, drawn = sample(of, add(of, memory, batch), key, (1, 500))
        return reprioritize(of, memory, drawn, jnp.ones((1, 500)), 0.6)

    for number, rows in enumerate(lived):
        memory = cycle(memory, on_device(stacked(rows)), jax.random.key(number))
    held = [moment for rows in lived for moment in rows][-of.length :]
    leaves = leaves_of(memory)
    wanted = {place for place, valid in ready(case, memory, held).items() if valid}
    assert set(np.flatnonzero(leaves)) == wanted


@pytest.mark.medium
@in_both
def test_draws_are_proportional_to_the_error_to_the_power_of_alpha(jax_arrays: bool) -> None:
    case = PRIORITIZED[0]
    memory, held = fill(case, 8, jax_arrays=jax_arrays)
    may = places(case, memory, drawable(case, held))
    errors = {place: float(1 + rank) for rank, place in enumerate(may)}
    for exponent in (0.0, 0.6, 1.0):
        found = drawn_places(case, with_errors(case, memory, errors, exponent))
        counts = np.bincount(found, minlength=max(may) + 1)[may]
        powers = np.array(list(errors.values())) ** exponent
        assert chi_square(counts, powers / powers.sum()) < 4


@pytest.mark.medium
def test_importance_weights_by_hand() -> None:
    """Two rows with errors 1 and 3 among rows without: (n P)^-β over the largest."""
    case = PRIORITIZED[0]
    memory, _ = fill(case, 3, jax_arrays=True)
    zeros = dict.fromkeys(range(12 * COLUMNS), 0.0)
    memory = with_errors(case, memory, zeros | {5: 1.0, 7: 3.0})
    _, drawn = draw(case.layout(), memory, jax.random.key(0), (1, 64), 0.5)
    for place, weight in ((5, 1.0), (7, 3**-0.5)):
        np.testing.assert_allclose(drawn.extra.weight[drawn.extra.place == place], weight, 1e-4)
    _, uncorrected = draw(case.layout(), memory, jax.random.key(0), (1, 64), 0.0)
    assert (uncorrected.extra.weight == 1).all()


@pytest.mark.medium
@in_both
def test_importance_weights_are_divided_by_the_largest_of_all_minibatches(jax_arrays: bool) -> None:
    """By definition: w = (n P)^-β over its largest, which is in one of the U minibatches only."""
    case, correction = PRIORITIZED[0], 0.5
    memory, held = fill(case, 8, jax_arrays=jax_arrays)
    errors = {place: 1.0 + place for place in places(case, memory, drawable(case, held))}
    memory = with_errors(case, memory, errors)
    if jax_arrays:
        _, drawn = draw(case.layout(), memory, jax.random.key(0), (2, 3), correction)
    else:
        rngs = [np.random.default_rng(0)]
        drawn = sample_on_host(case.layout(), memory, rngs, (2, 3), correction)
    count, whole = len(held) * COLUMNS, sum(errors.values())
    place = np.asarray(drawn.extra.place).reshape(2, 3)
    weight = [[(count * errors[p] / whole) ** -correction for p in row] for row in place.tolist()]
    one, other = (max(row) for row in weight)
    assert one != other
    wanted = np.array(weight) / max(one, other)
    np.testing.assert_allclose(np.reshape(drawn.extra.weight, (2, 3)), wanted, 1e-4)


@pytest.mark.medium
def test_importance_weights_outside_jax_are_those_of_each_seed() -> None:
    """Of three seeds each has two rows with errors: 1 and 3, 2 and 2, 1 and 4."""
    case = Case(0, 1, False, prioritized=True, capacity=13, seeds=3)
    memory, _ = fill(case, 3)
    errors = dict.fromkeys(range(12 * COLUMNS), 0.0)
    for seed, (one, other) in enumerate([(1.0, 3.0), (2.0, 2.0), (1.0, 4.0)]):
        errors |= {3 + seed: one, 6 + seed: other}
    memory = with_errors(case, memory, errors)
    rngs = [np.random.default_rng(seed) for seed in range(3)]
    drawn = sample_on_host(case.layout(), memory, rngs, (1, 600), 0.5)
    for seed, (light, share) in enumerate([(3**-0.5, 3 / 4), (1.0, 1 / 2), (4**-0.5, 4 / 5)]):
        place, weight = drawn.extra.place[seed, 0], drawn.extra.weight[seed, 0]
        assert set(place) == {3 + seed, 6 + seed}
        np.testing.assert_allclose(weight[place == 3 + seed], 1.0, 1e-4)
        np.testing.assert_allclose(weight[place == 6 + seed], light, 1e-4)
        assert (place == 6 + seed).mean() == pytest.approx(share, abs=0.01)  # one draw a part


@pytest.mark.slow
def test_each_seed_outside_jax_has_the_same_tree_as_alone() -> None:
    case = Case(4, 3, True, prioritized=True, capacity=13, seeds=3)
    memory, _ = fill(case, 8)
    alone = layout(
        spec_of(case.stack, case.repeats),
        capacity=case.capacity,
        num_envs=1,
        rollout_length=ROLLOUT,
        n_step=case.n_step,
        discount=DISCOUNT,
        prioritized=True,
    )
    for seed in range(3):
        own, report_replay_memory = on_device(empty(alone)), jax.jit(add, static_argnums=0)
        for rows in rollouts(case, 8):
            column = jax.tree.map(lambda x: x[:, seed : seed + 1], stacked(rows))  # noqa: B023
            own = report_replay_memory(alone, own, on_device(column))
        np.testing.assert_array_equal(own.tree[0], memory.tree[seed])


# Recent rows

WINDOW = 4  # time steps that count as recent
RECENT = [
    Case(0, 1, False, recent_share=0.4, recent_env_steps=WINDOW * COLUMNS),
    Case(4, 3, True, recent_share=0.4, recent_env_steps=WINDOW * COLUMNS),
]


@pytest.mark.medium
@in_both
@pytest.mark.parametrize("count", [2, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", RECENT, ids=str)
def test_a_share_of_the_rows_is_recent_and_the_rest_are_any(
    case: Case, count: int, jax_arrays: bool
) -> None:
    memory, held = fill(case, count, jax_arrays=jax_arrays)
    ages_to_draw = drawable(case, held)
    may, newest = (places(case, memory, x) for x in (ages_to_draw, ages_to_draw[-WINDOW:]))
    chances = np.array([0.6 / len(may) + 0.4 / len(newest) * (place in newest) for place in may])
    counts = np.bincount(drawn_places(case, memory), minlength=max(may) + 1)
    assert set(np.flatnonzero(counts)) == set(may)
    assert chi_square(counts[may], chances) < 4


@pytest.mark.medium
@in_both
def test_only_recent_rows_are_drawn_with_a_share_of_one(jax_arrays: bool) -> None:
    case = RECENT[0]._replace(recent_share=1.0)
    memory, held = fill(case, 8, jax_arrays=jax_arrays)
    newest = places(case, memory, drawable(case, held)[-WINDOW:])
    assert set(drawn_places(case, memory, 3_000)) == set(newest)


@pytest.mark.medium
@in_both
def test_a_window_longer_than_the_replay_is_the_whole_replay(jax_arrays: bool) -> None:
    case = RECENT[0]._replace(recent_share=1.0, recent_env_steps=10**6)
    memory, held = fill(case, 2, jax_arrays=jax_arrays)
    everything = places(case, memory, drawable(case, held))
    assert set(drawn_places(case, memory, 3_000)) == set(everything)


@pytest.mark.slow
@in_both
def test_recent_rows_have_weights_that_undo_the_priorities_only(jax_arrays: bool) -> None:
    """By definition: (q / q₀)^-β over its largest; q is a row's chance, q₀ without priorities."""
    case, beta = RECENT[0]._replace(prioritized=True), 0.5
    memory, held = fill(case, 8, jax_arrays=jax_arrays)
    ages_to_draw = drawable(case, held)
    may, newest = (places(case, memory, x) for x in (ages_to_draw, ages_to_draw[-WINDOW:]))
    errors = {place: 1.0 + rank for rank, place in enumerate(may)}
    memory = with_errors(case, memory, errors)
    of, whole = case.layout(), sum(errors.values())
    if jax_arrays:
        drawn = draw(of, memory, jax.random.key(0), (1, 60_000), beta)[1]
    else:
        drawn = sample_on_host(of, memory, [np.random.default_rng(0)], (1, 60_000), beta)
    recent = {place: 0.4 / len(newest) * (place in newest) for place in may}
    q = {place: recent[place] + 0.6 * errors[place] / whole for place in may}
    even = {place: recent[place] + 0.6 / len(may) for place in may}
    place = np.asarray(drawn.extra.place).reshape(-1)
    counts = np.bincount(place, minlength=max(may) + 1)[may]
    assert chi_square(counts, np.array([q[place] for place in may])) < 4
    weight = np.array([(q[p] / even[p]) ** -beta for p in place.tolist()])
    np.testing.assert_allclose(np.ravel(drawn.extra.weight), weight / weight.max(), 1e-3)


@pytest.mark.medium
def test_without_a_share_the_window_changes_no_bit() -> None:
    case = Case(0, 1, False)
    memory, _ = fill(case, 3, jax_arrays=True)
    other = case._replace(recent_env_steps=6).layout()
    one, same = (draw(of, memory, jax.random.key(0), (2, 50))[1] for of in (case.layout(), other))
    same_bits(one, same)


@pytest.mark.slow
@pytest.mark.parametrize("jax_arrays", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_recent_rows_are_the_same_with_the_same_key(jax_arrays: bool) -> None:
    memory, _ = fill(RECENT[0], 3, jax_arrays=jax_arrays)
    first, again = (drawn_places(RECENT[0], memory, 500) for _ in range(2))
    np.testing.assert_array_equal(first, again)
