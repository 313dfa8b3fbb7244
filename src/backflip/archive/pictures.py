"""Pictures of a run, and the same as text: learning curves over seeds, strips of clips.

A curve is an SVG that follows the reader's light or dark theme and says in `<desc>` what it shows;
`curve_csv` holds its numbers. A strip is a PNG, with its captions as the PNG's description.
"""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final
from xml.sax.saxutils import escape

import numpy as np
from jaxtyping import Float, Shaped, UInt8
from PIL import Image, ImageDraw, ImageFont, PngImagePlugin

from backflip.archive.files import write_whole
from backflip.archive.metrics import read_metrics
from backflip.archive.statistics import student_quantile
from backflip.core.errors import UsageError

RETURN = "episode_return_mean"
MOST_POINTS = 100  # points of one curve; more would be drawn within one pixel of each other


@final
class Curve(NamedTuple):
    """One metric of several seeds over the same env steps.

    Attributes:
        seeds: which.
        env_steps: of each point, per seed, growing.
        values: one row a seed; NaN before a seed's first value and after its last.
    """

    seeds: list[int]
    env_steps: Float[np.ndarray, " points"]
    values: Float[np.ndarray, "seeds points"]

    @property
    def mean(self) -> Float[np.ndarray, " points"]:
        """The mean over seeds; NaN where any seed has no value, lest it jump when one joins."""
        return self.values.mean(0)

    @property
    def margin(self) -> Float[np.ndarray, " points"]:
        """Half the width of the 95 % interval of the mean; NaN for a single seed.

        t · s / √n, with s the standard deviation over n seeds and t Student's quantile.
        """
        count = len(self.seeds)
        if count < 2:
            return np.full_like(self.mean, math.nan)
        return student_quantile(count - 1) * self.values.std(0, ddof=1) / math.sqrt(count)


def curve(records: Iterable[Mapping[str, Any]], metric: str = RETURN) -> Curve:
    """Return a metric of the records of a run over env steps, every seed at the same points.

    Records without the metric, or with NaN for it, are left out. Where there are more records than
    `MOST_POINTS`, neighbours are averaged, by number of `episodes` where records tell; in between
    a seed's values lie on straight lines.

    Args:
        records: each with `seed`, `env_steps` (of that seed) and metrics.
        metric: its name.

    Raises:
        UsageError: no record has the metric.
    """
    found: dict[int, list[tuple[float, float, float]]] = {}
    for record in records:
        value, seed = record.get(metric), record.get("seed")
        if isinstance(value, int | float) and math.isfinite(value) and isinstance(seed, int):
            weight = float(record.get("episodes") or 1.0)
            found.setdefault(seed, []).append((float(record["env_steps"]), float(value), weight))
    if not found:
        raise UsageError(f"no record has a value of `{metric}`: there is no curve to draw")
    seeds = sorted(found)
    lines = [_thinned(np.array(sorted(found[seed]))) for seed in seeds]
    grid = np.unique(np.concatenate([line[:, 0] for line in lines]))
    values = [np.interp(grid, *line.T, left=math.nan, right=math.nan) for line in lines]
    return Curve(seeds, grid, np.stack(values))


def _thinned(points: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, "m 2"]:
    """Return (env steps, value) of at most `MOST_POINTS` points, weighted means of neighbours."""
    count = min(len(points), MOST_POINTS)
    groups = np.array_split(points, count)
    means = [np.average(group[:, :2], axis=0, weights=group[:, 2]) for group in groups]
    # The last point stays where it is, so that the curve ends where training did.
    means[-1][0] = points[-1, 0]
    return np.stack(means)


def curve_csv(curve: Curve) -> str:
    """Return the curve's numbers: env_steps, mean, the interval, and a column for each seed."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["env_steps", "mean", "low_95", "high_95", *(f"seed_{s}" for s in curve.seeds)])
    low, high = curve.mean - curve.margin, curve.mean + curve.margin
    for row in zip(curve.env_steps, curve.mean, low, high, *curve.values, strict=True):
        table.writerow("" if math.isnan(x) else f"{x:.10g}" for x in row)
    return text.getvalue()


def write_curve(folder: Path, *, title: str, optimum: int | float | None = None) -> list[Path]:
    """Draw a run's true returns into its folder, `curve.svg` and `curve.csv`; return what is there.

    Nothing is drawn where no episode ended in training.

    Args:
        folder: the run's, with its metrics.
        title: what was learnt and how.
        optimum: the best possible return, where it is known.

    Raises:
        BackflipError: the metrics cannot be read, or the pictures not written.
    """
    records = read_metrics(folder, "train").records
    if not any(math.isfinite(record.get(RETURN, math.nan)) for record in records):
        return []
    drawn = curve(records)
    picture = learning_curve_svg(drawn, title=title, optimum=optimum)
    paths = [folder / "curve.svg", folder / "curve.csv"]
    for path, text in zip(paths, (picture, curve_csv(drawn)), strict=True):
        write_whole(path, text.encode())
    return paths


# --- learning curves -------------------------------------------------------------------------

_WIDTH, _HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 20, 66, 56
_CHARACTER, _TITLE_CHARACTER = 6.7, 9.0  # mean width of a letter, generously
_STYLE = """
.paper { fill: #ffffff } .ink { fill: #1f2328 } .faint { fill: #59636e }
.grid { stroke: #d8dee4; stroke-width: 1 } .axis { stroke: #818b98; stroke-width: 1 }
.mean { stroke: #0b62c4; stroke-width: 2.5 } .band { fill: #0b62c4; fill-opacity: .18 }
.seed { stroke: #0b62c4; stroke-width: 1; stroke-opacity: .38 }
.optimum { stroke: #a8480b; stroke-width: 1.5; stroke-dasharray: 7 4 }
polyline, line { fill: none; stroke-linejoin: round }
polyline { stroke-linecap: round }
text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif }
.title { font-size: 15px; font-weight: 600 }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117 } .ink { fill: #e6edf3 } .faint { fill: #9198a1 }
.grid { stroke: #262c36 } .axis { stroke: #656c76 }
.mean, .seed { stroke: #6cb6ff } .band { fill: #6cb6ff } .optimum { stroke: #f0a35e }
}
"""


@final
class _Axes(NamedTuple):
    """From values to places in the picture."""

    right: float  # the largest env steps
    low: float
    high: float

    def x(self, env_steps: float) -> float:
        return _LEFT + env_steps / self.right * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP)

    def path(self, env_steps: Any, values: Any) -> str:
        """Return the `points` of the finite values."""
        pairs = [(x, y) for x, y in zip(env_steps, values, strict=True) if math.isfinite(y)]
        # The last one twice, since a line of one point would not be drawn.
        return " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in [*pairs, *pairs[-1:]])


def learning_curve_svg(
    curve: Curve,
    *,
    title: str,
    value_label: str = "true return of an episode",
    optimum: int | float | None = None,
) -> str:
    """Return the picture of a curve: seeds thin, their mean thick, their whole range a band.

    The mean's interval is in `curve_csv`. Drawn, it would cover what cannot be: returns have a
    largest value, and few seeds, of which one fails, an interval far beyond it.

    Args:
        curve: what `curve` returned.
        title: what was learnt and how; one line.
        value_label: what the vertical axis measures, with its unit.
        optimum: the best possible value, where it is known.
    """
    axes = _axes(curve, optimum)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-labelledby="title desc">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="desc">{escape(_description(curve, value_label, optimum))}</desc>',
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{_HEIGHT}"/>',
        _text(_LEFT, 24, _shortened(title), "title ink"),
        *_grid(axes),
        *_lines(curve, axes, optimum),
        *_legend(curve, optimum),
        *_axis_labels(value_label),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _axes(curve: Curve, optimum: int | float | None) -> _Axes:
    drawn = np.append(curve.values, [] if optimum is None else [optimum])
    low, high = float(np.nanmin(drawn)), float(np.nanmax(drawn))
    room = 0.04 * (high - low) or max(abs(high), 1.0) * 0.1
    return _Axes(float(curve.env_steps[-1]) or 1.0, low - room, high + room)


def _description(curve: Curve, value_label: str, optimum: int | float | None) -> str:
    begins, last = np.nanmean(curve.values[:, 0]), [_last(row) for row in curve.values]
    text = (
        f"{value_label} over environment steps, {_seeds(curve)}: from {begins:.4g} to a mean of "
        f"{np.mean(last):.4g} (worst seed {min(last):.4g}, best {max(last):.4g}) after "
        f"{_number(curve.env_steps[-1])} environment steps of each seed."
    )
    return text + (f" The optimum is {optimum:.4g}." if optimum is not None else "")


def _last(values: Float[np.ndarray, " n"]) -> float:
    return float(values[np.isfinite(values)][-1])


def _seeds(curve: Curve) -> str:
    return f"{len(curve.seeds)} seed{'s' if len(curve.seeds) > 1 else ''}"


def _grid(axes: _Axes) -> Iterable[str]:
    left, right, bottom = _LEFT, _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    for value in ticks(axes.low, axes.high, 8):
        y = axes.y(value)
        yield f'<line class="grid" x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>'
        yield _text(left - 8, y + 4, _number(value), "faint", "end")
    for value in ticks(0.0, axes.right, 6):
        x = axes.x(value)
        yield f'<line class="axis" x1="{x:.1f}" y1="{bottom}" x2="{x:.1f}" y2="{bottom + 5}"/>'
        yield _text(x, bottom + 19, _number(value), "faint", "middle")
    yield f'<line class="axis" x1="{left}" y1="{bottom}" x2="{right}" y2="{bottom}"/>'


def _lines(curve: Curve, axes: _Axes, optimum: int | float | None) -> Iterable[str]:
    steps = curve.env_steps
    if len(curve.seeds) > 1:
        low, high = curve.values.min(0), curve.values.max(0)
        around = f"{axes.path(steps, low)} {axes.path(steps[::-1], high[::-1])}"
        yield f'<polygon class="band" points="{around}"/>'
        for seed, values in zip(curve.seeds, curve.values, strict=True):
            points = axes.path(steps, values)
            yield f'<polyline class="seed" points="{points}"><title>seed {seed}</title></polyline>'
    if optimum is not None:
        ends = [(0.0, optimum), (axes.right, optimum)]
        yield f'<polyline class="optimum" points="{axes.path(*zip(*ends, strict=True))}"/>'
    yield f'<polyline class="mean" points="{axes.path(steps, curve.mean)}"/>'


def _legend(curve: Curve, optimum: int | float | None) -> Iterable[str]:
    """Yield what the marks mean, in a row under the title."""
    if len(curve.seeds) > 1:
        entries = [
            ("mean", f"mean of {_seeds(curve)}"),
            ("band", "from the worst seed to the best"),
            ("seed", "one seed"),
        ]
    else:
        entries = [("mean", f"seed {curve.seeds[0]}, the only one: no spread")]
    if optimum is not None:
        entries.append(("optimum", f"optimum, {optimum:.4g}"))
    x = float(_LEFT)
    for mark, words in entries:
        if mark == "band":
            yield f'<rect class="band" x="{x:.0f}" y="36" width="24" height="12"/>'
        else:
            yield f'<line class="{mark}" x1="{x:.0f}" y1="42" x2="{x + 24:.0f}" y2="42"/>'
        yield _text(x + 30, 46, words, "ink")
        x += 30 + _CHARACTER * len(words) + 20


def _axis_labels(value_label: str) -> Iterable[str]:
    middle_x, middle_y = (_WIDTH + _LEFT - _RIGHT) / 2, (_HEIGHT + _TOP - _BOTTOM) / 2
    yield _text(middle_x, _HEIGHT - 14, "environment steps of each seed", "ink", "middle")
    turned = f'transform="rotate(-90 18 {middle_y:.0f})"'
    yield _text(18, middle_y, value_label, "ink", "middle", turned)


def _text(
    x: int | float, y: int | float, text: str, style: str, anchor: str = "start", extra: str = ""
) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {extra}'.rstrip()
    return f'<text class="{style}" {place}>{escape(text)}</text>'


def _shortened(title: str) -> str:
    most = int((_WIDTH - _LEFT - _RIGHT) / _TITLE_CHARACTER)
    return title if len(title) <= most else title[: most - 1] + "…"


def ticks(low: float, high: float, most: int) -> list[float]:
    """Return round values from `low` to `high`, at most about `most`: multiples of 1, 2 or 5."""
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(index * step, 12) for index in range(first, last + 1)]


def _number(value: float) -> str:
    """Return a number without an exponent or needless zeros, thousands apart."""
    text = f"{value:,.10g}" if abs(value) < 1e6 else f"{value:,.0f}"
    return text.replace(",", "\u202f").replace("-", "−")


# --- strips of clips -------------------------------------------------------------------------

_PANELS = 8  # pictures of one clip, beside the one of the whole clip
_SIDE = 126  # of a panel, in pixels
_GAP, _CAPTION = 6, 24
_PAPER, _INK, _FAINT, _LINE = (255, 255, 255), (31, 35, 40), (89, 99, 110), (11, 98, 196)


def clip_strip_png(clips: Sequence[Shaped[np.ndarray, "L ..."]], captions: Sequence[str]) -> bytes:
    """Return a picture of clips below each other, each under its caption, as a PNG.

    Pixels: the whole clip in one panel (of each pixel the value that differs most from its usual
    one, so that what moved leaves its track), then frames evenly spread over the clip. Vectors: a
    panel for each of the first numbers of the observation, drawn over the clip, on one scale in
    all clips.

    Args:
        clips: observations of each clip: uint8 (L, height, width) or (L, height, width, channels),
            else vectors (L, D); all of one kind and length.
        captions: one for each clip.

    Raises:
        UsageError: the clips are none of these, or not as many as captions.
    """
    if not clips or len(clips) != len(captions) or len({clip.shape for clip in clips}) > 1:
        raise UsageError(
            "a strip needs clips of one shape and a caption for each, got shapes "
            f"{[clip.shape for clip in clips]} and {len(captions)} captions"
        )
    if clips[0].dtype == np.uint8 and clips[0].ndim in (3, 4):
        rows = [_pixel_panels(clip) for clip in clips]
    elif clips[0].ndim == 2:
        rows = _vector_panels(clips)
    else:
        raise UsageError(f"a clip of shape {clips[0].shape} and {clips[0].dtype} cannot be drawn")
    description = PngImagePlugin.PngInfo()
    description.add_itxt("Description", "; ".join(captions))
    stream = io.BytesIO()
    _stacked(rows, captions).save(stream, "PNG", optimize=True, pnginfo=description)
    return stream.getvalue()


Panel = tuple[str, Image.Image]  # what it is called, and the picture


def _stacked(rows: Sequence[Sequence[Panel]], captions: Sequence[str]) -> Image.Image:
    """Return rows of panels, each row under its caption, each panel over its name."""
    width, height = rows[0][0][1].size
    row_height = _CAPTION + height + 18 + _GAP
    size = (len(rows[0]) * (width + _GAP) + _GAP, len(rows) * row_height + _GAP)
    # At least as wide as the longest caption.
    longest = max(_font(14).getlength(caption) for caption in captions)
    picture = Image.new("RGB", (max(size[0], int(longest) + 3 * _GAP), size[1]), _PAPER)
    draw = ImageDraw.Draw(picture)
    for index, (panels, caption) in enumerate(zip(rows, captions, strict=True)):
        y = _GAP + index * row_height
        draw.text((_GAP, y), caption.replace("−", "-"), _INK, _font(14))  # the font has no minus
        for column, (name, panel) in enumerate(panels):
            x = _GAP + column * (width + _GAP)
            picture.paste(panel, (x, y + _CAPTION))
            draw.text((x, y + _CAPTION + height + 2), name, _FAINT, _font(11))
    return picture


def _font(size: int) -> Any:
    return ImageFont.load_default(size)


def _pixel_panels(clip: UInt8[np.ndarray, "L height width ..."]) -> list[Panel]:
    length = len(clip)
    chosen = np.unique(np.linspace(0, length - 1, _PANELS).round().astype(int))
    frames = [(f"step {index + 1}", _enlarged(clip[index])) for index in chosen]
    return [(f"all {length} steps", _enlarged(_track(clip))), *frames]


def _track(clip: UInt8[np.ndarray, "L ..."]) -> UInt8[np.ndarray, "..."]:
    """Return of each pixel the value over time that differs most from its median."""
    usual = np.median(clip, axis=0)
    furthest = np.abs(clip - usual).argmax(0, keepdims=True)
    return np.take_along_axis(clip, furthest, 0)[0]


def _enlarged(frame: UInt8[np.ndarray, "height width ..."]) -> Image.Image:
    """Return a frame as RGB, about `_SIDE` high, small ones with square pixels."""
    if frame.ndim == 3 and frame.shape[2] not in (1, 3):
        frame = frame[..., -1]  # channels that are neither grey nor RGB: the last one
    image = Image.fromarray(frame[..., 0] if frame.ndim == 3 and frame.shape[2] == 1 else frame)
    scale = _SIDE / image.height
    size = (max(round(image.width * scale), 1), _SIDE)
    kind = Image.Resampling.NEAREST if scale >= 2 else Image.Resampling.LANCZOS
    return image.convert("RGB").resize(size, kind)


def _vector_panels(clips: Sequence[Shaped[np.ndarray, "L D"]]) -> list[list[Panel]]:
    """Return a row for each clip: how each of the first numbers of the observation went."""
    shown = min(clips[0].shape[1], _PANELS + 1)
    every = np.stack(clips).astype(np.float64)
    low, high = np.nanmin(every, (0, 1)), np.nanmax(every, (0, 1))
    rows: list[list[Panel]] = []
    for clip in every:
        panels = [_plot(clip[:, d], low[d], high[d]) for d in range(shown)]
        rows.append([(f"obs[{d}] {low[d]:.2g} to {high[d]:.2g}", p) for d, p in enumerate(panels)])
    return rows


def _plot(values: Float[np.ndarray, " L"], low: float, high: float) -> Image.Image:
    """Return a small line plot, drawn four times as large and shrunk, for smooth lines."""
    fine = 4
    image = Image.new("RGB", (_SIDE * fine, _SIDE * fine), (246, 248, 250))
    draw = ImageDraw.Draw(image)
    room = 8 * fine
    span = _SIDE * fine - 2 * room
    if low < 0 < high:
        zero = room + span * (1 - (0 - low) / (high - low))
        draw.line([(0, zero), (_SIDE * fine, zero)], (216, 222, 228), fine)
    x = room + span * np.arange(len(values)) / max(len(values) - 1, 1)
    y = room + span * (1 - (values - low) / max(high - low, 1e-12))
    points = [(a, b) for a, b in zip(x, y, strict=True) if math.isfinite(b)]
    if len(points) > 1:
        draw.line(points, _LINE, 2 * fine, joint="curve")
    return image.resize((_SIDE, _SIDE), Image.Resampling.LANCZOS)
