"""Pictures of the labels that the learned reward is most wrong and most unsure about.

Each label is shown as two strips, the left clip above the right one, with the answer, P(left) of
the reward model, and what both clips earn.
"""

import io
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont, PngImagePlugin

from backflip.preferences.clips import NO_SCENE, Clip, from_arrays
from backflip.preferences.drawer import Drawer
from backflip.preferences.labels import LabelStore
from backflip.training.reward_learning.reward_measures import read_measures
from runshelf.errors import UserFacingError
from runshelf.store.writing import replace_file

PICTURES = {
    "most_wrong": "learned-reward-most-wrong.png",
    "most_unsure": "learned-reward-most-unsure.png",
}
TITLES = {
    "most_wrong": "Labels that the reward model finds least likely",
    "most_unsure": "Labels on which the reward model's members differ most",
}
SHOWN = 3  # labels in a picture
FRAMES = 4  # of a clip
_SIDE, _GAP = 156, 8  # pixels of a frame's width, and between two frames
_TITLE, _TEXT, _LINE = 20, 18, 26
_WIDTH = FRAMES * (_SIDE + _GAP) + _GAP
_PAPER, _INK, _FAINT, _RULE = (255, 255, 255), (31, 35, 40), (89, 99, 110), (216, 222, 228)


class Strip(NamedTuple):
    """One clip: a few of its frames, and what is said about it."""

    frames: UInt8[np.ndarray, "F H W 3"]
    text: str


class ShownLabel(NamedTuple):
    """One label: what is said about it, and its clips."""

    text: str
    left: Strip
    right: Strip


def write_label_pictures(
    folder: Path, measures: Mapping[str, Any], store: LabelStore, drawer: Drawer
) -> None:
    """Write `PICTURES` of the first seed's listed labels; none where nothing can be drawn here.

    Args:
        folder: the run's folder.
        measures: what `backflip.training.reward_learning.reward_measures` wrote.
        store: the run's labels.
        drawer: draws the clips as people see them.
    """
    first = measures["seeds"][0]
    with suppress(UserFacingError):  # some machines cannot draw; the numbers are there anyway
        for kind, name in PICTURES.items():
            shown = [_shown(one, store, drawer) for one in first[kind][:SHOWN]]
            if shown:
                title = f"{TITLES[kind]}, seed {first['seed']}"
                replace_file(folder, name, label_picture(title, shown))


def listed_labels(folder: Path) -> list[str]:
    """Return the text of both pictures, a line for each label; empty if a run has no measures.

    Raises:
        DamagedFile: the measures cannot be read.
    """
    measures = read_measures(folder)
    if measures is None:
        return []
    first = measures["seeds"][0]
    return [
        f"{kind.replace('_', ' ')}: {label_in_words(one)}; "
        f"{clip_in_words(one, 0)}; {clip_in_words(one, 1)}"
        for kind in PICTURES
        for one in first[kind]
    ]


def label_in_words(label: Mapping[str, Any]) -> str:
    """Return one listed label in a line: the answer and P(left) with the members' spread."""
    answer, chance = label["answer"], f"{label['left']:.2f} ± {label['spread']:.2f}"
    return f"query {label['query']}: answered {answer}, P(left) {chance}"


def clip_in_words(label: Mapping[str, Any], side: int) -> str:
    """Return what the clip on the left (0) or right (1) of a listed label earns.

    Runs of earlier versions do not have it; then only the side is said.
    """
    name = ("left", "right")[side]
    if "learned_returns" not in label:
        return name
    learned, true = label["learned_returns"][side], label["true_returns"][side]
    return f"{name}: learned return {learned:.3g}, true return {true:.3g}"


def label_picture(title: str, labels: Sequence[ShownLabel]) -> bytes:
    """Return a PNG of labels below each other; its description has all texts."""
    cards = [_card(label) for label in labels]
    height = _LINE + 2 * _GAP + sum(card.height for card in cards)
    picture = Image.new("RGB", (_WIDTH, height), _PAPER)
    ImageDraw.Draw(picture).text((_GAP, _GAP), title, _INK, _fitting(title))
    down = _LINE + 2 * _GAP
    for card in cards:
        picture.paste(card, (0, down))
        down += card.height
    lines = [title, *(text for x in labels for text in (x.text, x.left.text, x.right.text))]
    said = PngImagePlugin.PngInfo()
    said.add_itxt("Description", "\n".join(lines))
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True, pnginfo=said)
    return file.getvalue()


def _shown(label: Mapping[str, Any], store: LabelStore, drawer: Drawer) -> ShownLabel:
    clips = [from_arrays(arrays) for arrays in store.clips(label["query"])]
    left, right = (
        Strip(drawer.frames(_some_steps(clip)), clip_in_words(label, side))
        for side, clip in enumerate(clips)
    )
    return ShownLabel(label_in_words(label), left, right)


def _some_steps(clip: Clip) -> Clip:
    """Return a few evenly spaced steps of a clip, from the first to the last."""
    index = np.linspace(0, len(clip.alive) - 1, FRAMES).round().astype(int)
    scene = clip.scene[index] if len(clip.scene) == len(clip.alive) else NO_SCENE
    fields: dict[str, Any] = {
        name: field[index] for name, field in clip._asdict().items() if name != "scene"
    }
    return Clip(**fields, scene=scene)


def _card(label: ShownLabel) -> Image.Image:
    """Return one label: a line, then for each clip a line of text and its frames."""
    rows = [(strip.text, [_frame(one) for one in strip.frames]) for strip in label[1:]]
    row_height = _LINE + rows[0][1][0].height + _GAP
    card = Image.new("RGB", (_WIDTH, _GAP + _LINE + 2 * row_height), _PAPER)
    draw = ImageDraw.Draw(card)
    draw.line((_GAP, 0, _WIDTH - _GAP, 0), _RULE, 2)
    draw.text((_GAP, _GAP), label.text, _INK, _font(_TEXT))
    for place, (text, frames) in enumerate(rows):
        top = _GAP + _LINE + place * row_height
        draw.text((_GAP, top), text, _FAINT, _font(_TEXT))
        for column, frame in enumerate(frames):
            card.paste(frame, (_GAP + column * (_SIDE + _GAP), top + _LINE))
    return card


def _frame(frame: UInt8[np.ndarray, "H W 3"]) -> Image.Image:
    """Return a frame of width `_SIDE`; much smaller ones keep sharp pixels."""
    image = Image.fromarray(frame)
    size = (_SIDE, max(round(image.height * _SIDE / image.width), 1))
    small = 2 * image.width <= _SIDE
    return image.resize(size, Image.Resampling.NEAREST if small else Image.Resampling.LANCZOS)


def _fitting(title: str) -> Any:
    """Return the largest font, `_TITLE` at most, in which a title fits."""
    length = _font(_TITLE).getlength(title)
    return _font(min(_TITLE, _TITLE * (_WIDTH - 2 * _GAP) / length))


def _font(size: float) -> Any:
    return ImageFont.load_default(size)
