"""Tests of `backflip.preferences.drawer`."""

import io

import numpy as np
import pytest
from PIL import Image

from backflip.core.types import Transition
from backflip.envs.native.dot import Dot
from backflip.envs.registry import make_native
from backflip.preferences.clips import Clip
from backflip.preferences.drawer import LATEST, Drawer, _longest_ending
from backflip.preferences.films import FILMS, read_film
from backflip.preferences.label_records import NewQuery
from backflip.preferences.labels import LabelStore


def record(terminated=(), truncated=(), invalid=(), horizon=100, envs=3):
    """A record in which episodes end, and rows are invalid, at the (time, env) named."""
    flags = np.zeros((3, horizon, envs), bool)
    for flag, places in zip(flags, (terminated, truncated, invalid), strict=True):
        for place in places:
            flag[place] = True
    zeros = np.zeros((horizon, envs), np.float32)
    return Transition(zeros, zeros, zeros, flags[0], flags[1], zeros, ~flags[2], ())


def test_the_latest_episode_is_the_longest_that_reaches_the_end():
    ended = record(terminated=[(90, 0), (70, 1)], truncated=[(80, 2)])
    assert _longest_ending(ended) == ((71, 1), 29)


def test_an_end_on_the_last_row_belongs_to_the_episode():
    ended = record(terminated=[(99, 0), (95, 1), (95, 2), (60, 0)])
    assert _longest_ending(ended) == ((61, 0), 39)


def test_a_reset_row_separates_episodes():
    reset = record(truncated=[(80, 0), (85, 1), (85, 2)], invalid=[(81, 0), (86, 1), (86, 2)])
    assert _longest_ending(reset) == ((82, 0), 18)


def test_the_latest_episode_is_limited_in_length():
    assert _longest_ending(record()) == ((100 - LATEST, 0), LATEST)


def dot_clip(x, length=5):
    """A clip of the dot, standing at (x, 105)."""
    spec = Dot().spec
    obs = np.zeros((length, *spec.observation.shape[:2], 1), np.uint8)
    scene = np.tile(np.array([x, 105], np.float32), (length, 1))
    zeros = np.zeros(length, np.float32)
    return Clip(obs, zeros.astype(np.int32), obs, zeros, np.ones(length, bool), scene)


@pytest.fixture
def drawer(tmp_path):
    return Drawer(tmp_path, "dot", {}, Dot().spec)


def first_frame(folder, film):
    strip = np.asarray(Image.open(io.BytesIO(read_film(folder / FILMS, film.file))).convert("RGB"))
    return strip[: film.height, : film.width]


def test_a_person_sees_the_true_frame_and_the_agent_its_own(tmp_path, drawer):
    films = drawer.films(dot_clip(40))
    person, agent = films["person"], films["agent"]
    assert (person.width, person.height) == (160, 210)
    assert (agent.width, agent.height) == (84, 84)
    assert (person.frames, person.fps) == (agent.frames, agent.fps)
    rows, columns = np.nonzero(first_frame(tmp_path, person).sum(-1))
    assert (columns.min(), columns.max()) == (38, 41)
    assert (rows.min(), rows.max()) == (103, 106)


@pytest.fixture
def store(tmp_path):
    with LabelStore.open(tmp_path / "labels.sqlite") as store:
        yield store


def ask(store, drawer, *places):
    clips = [dot_clip(x) for x in places]
    films = tuple(drawer.films(clip) for clip in clips)
    return store.add_queries([NewQuery(0, *(c._asdict() for c in clips), 0, films)])[0]


def test_a_missing_film_of_an_open_query_is_drawn_again(tmp_path, drawer, store):
    ask(store, drawer, 40, 60)
    before = {path.name: path.read_bytes() for path in (tmp_path / FILMS).iterdir()}
    lost = store.films(1)[1]["person"].file
    (tmp_path / FILMS / lost).unlink()
    drawer.redraw_missing(store)
    assert {path.name: path.read_bytes() for path in (tmp_path / FILMS).iterdir()} == before


@pytest.mark.medium
def test_a_film_that_is_drawn_differently_replaces_the_missing_one(tmp_path, drawer, store):
    query = ask(store, drawer, 40, 60)
    other = drawer.films(dot_clip(100))
    store.set_films(query, other, other)
    lost = store.films(query)[0]["person"].file
    (tmp_path / FILMS / lost).unlink()
    drawer.redraw_missing(store)
    again = store.films(query)
    assert again == (drawer.films(dot_clip(40)), drawer.films(dot_clip(60)))


def whole_record(x):
    """A record of one environment whose latest episode is `dot_clip(x)`."""
    clip = dot_clip(x)
    obs, action, reward, alive, scene = (
        part[:, None] for part in (clip.obs, clip.action, clip.reward, clip.alive, clip.scene)
    )
    return Transition(obs, action, reward, ~alive, ~alive, obs, alive, (), scene)


def test_the_film_of_the_latest_episode_is_replaced_unless_a_query_has_it(tmp_path, drawer, store):
    asked, after = drawer.latest(whole_record(20)), drawer.latest(whole_record(40))
    assert not (tmp_path / FILMS / asked.file).exists()
    ask(store, drawer, 40, 60)
    drawer.latest(whole_record(80))
    assert (tmp_path / FILMS / after.file).exists()
    resumed = Drawer(tmp_path, "dot", {}, Dot().spec)
    resumed.latest(whole_record(40))
    resumed.latest(whole_record(100))
    assert (tmp_path / FILMS / after.file).exists()


def test_films_of_answered_queries_are_not_drawn_again(tmp_path, drawer, store):
    query = ask(store, drawer, 40, 60)
    store.add_label(query, "left", "me", 1)
    for path in (tmp_path / FILMS).iterdir():
        path.unlink()
    drawer.redraw_missing(store)
    assert not list((tmp_path / FILMS).iterdir())


@pytest.mark.medium
def test_stills_show_each_env_step_and_stay_dark_after_the_end(tmp_path):
    spec = make_native("CartPole-v1").spec
    obs = np.zeros((4, 4), np.float32)
    obs[:, 0] = [-1.0, 0.0, 1.0, 1.0]  # the cart moves to the right and falls
    alive = np.array([True, True, True, False])
    clip = Clip(obs, np.zeros(4, np.int32), obs + 0.1, alive.astype(np.float32), alive)
    frames = Drawer(tmp_path, "CartPole-v1", {}, spec).frames(clip)
    assert len(frames) == 4
    assert (frames[0] != frames[1]).any()
    assert (frames[1] != frames[2]).any()
    assert frames[3].mean() < 0.6 * frames[2].mean()
    assert not list(tmp_path.iterdir()), "nothing is written"
