"""The labelling page shows the pictures that an environment draws of itself."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packages.backflip.tests.envs.drawn_envs import BACK, SQUARE
from packages.backflip.tests.labelling.page.prepared_run import serving, set_status
from playwright.sync_api import Page

from backflip.core.trees import row_of
from backflip.preferences.clips import cut, to_arrays, windows
from backflip.preferences.drawer import Drawer
from backflip.preferences.label_records import NewQuery
from backflip.preferences.labels import LabelStore
from backflip.training.build import build

OWN = "packages.backflip.tests.envs.drawn_envs:Square"
SHOWN = "document.documentElement.dataset.pair"
# For each canvas: the frame that it reports, and the colours of a line through its middle.
LINES = """() => [...document.querySelectorAll('.clip canvas')].map(canvas => {
    const row = canvas.getContext('2d').getImageData(0, canvas.height / 2, canvas.width, 1).data;
    const line = [];
    for (let x = 0; x < row.length; x += 4) line.push([...row.slice(x, x + 3)]);
    return {frame: Number(canvas.dataset.frame), line};
})"""


@pytest.mark.slow
def test_both_clips_are_the_environments_own_pictures(
    tmp_path: Path, open_page: Callable[..., Page]
) -> None:
    there = build("ppo", OWN, env_args={}, settings={}).driver
    records = there.random_record([3], envs=2, env_steps=60, repeat=0.5, pictures=120)
    record = row_of(records, 0)
    drawer = Drawer(tmp_path, OWN, {}, there.spec)
    clips = [cut(record, at, 6) for at in windows(record, 6) if at.env == 0][:20:10]
    films = drawer.films(clips[0]), drawer.films(clips[1])
    with LabelStore.open(tmp_path / "labels.sqlite") as store:
        store.add_queries([NewQuery(0, *map(to_arrays, clips), 10, films)])
    set_status(tmp_path, env=OWN)
    with serving(tmp_path) as server:
        page = open_page(f"{server.address}?who=me")
        page.wait_for_function(SHOWN)
        drawn: list[dict[str, Any]] = page.evaluate(LINES)
        page.screenshot(path=tmp_path / "page.png")
    for seen, clip in zip(drawn, clips, strict=True):
        line = [tuple(colour) for colour in seen["line"]]
        assert {BACK, SQUARE} <= set(line)
        per_step = films[0]["person"].frames // len(clip.obs)
        step = min(seen["frame"] // per_step, int(clip.alive.sum()) - 1)
        assert round(line.index(SQUARE) * 8 / len(line)) == clip.obs[step, 0]
