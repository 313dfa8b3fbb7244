"""Print the results of `look` and `watch` as tables."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backflip.core.paths import from_here
from runshelf.cli.tables import print_table
from runshelf.formatting import plural
from runshelf.terminal_text import harmless, put

if TYPE_CHECKING:
    from backflip.inspect.findings import Finding
    from backflip.inspect.look import LookResult
    from backflip.inspect.stages import Stage
    from backflip.inspect.watch import WatchResult

UNKNOWN = "unknown"
_MOST_ROWS = 40  # rows printed of a table
_KINDS = {"hinders": "!", "note": "-", "fine": "ok"}


def print_report(looked: "LookResult", found: "list[Finding]", verdict: str) -> None:
    """Print tables of numbers, then the findings and the verdict."""
    report = looked.report
    fields = report.to_json()
    _print_pairs([("environment", report.env), *_facts(fields), *report.facts])
    put()
    names = ("min", "mean", "std", "max")
    rows = {"return": fields["returns"], "length": fields["lengths"], "reward": fields["rewards"]}
    columns: dict[str, list[object]] = {plural(fields["episodes"], "random episode"): list(rows)}
    columns |= {name: [_number(row[name]) for row in rows.values()] for name in names}
    print_table(columns, right=names)
    put()
    _print_observations(fields["observations"], report.spec.is_image)
    put()
    _print_actions(fields["actions"]["choices"], comparable=fields["actions"]["comparable"])
    put()
    for finding in found:
        put(f"{_KINDS[finding.kind]:>2} {harmless(finding.text)} ({finding.check})")
    put(f"\n{harmless(verdict)}")
    if looked.note:
        put(f"the clip shows bars: {harmless(looked.note)}")
    put(f"clip {looked.clip}")


def print_watched(shown: "WatchResult") -> None:
    """Print the results of each checkpoint and the names of the files."""
    rows = shown.checkpoints
    columns: dict[str, list[object]] = {
        "env steps": [f"{one.env_steps or 0:,}" for one in rows],
        "return": [_number(float(one.episodes.returns.mean())) for one in rows],
        "length": [_number(float(one.episodes.lengths.mean())) for one in rows],
    }
    for name in rows[0].episodes.tracks:
        means = [float(one.episodes.tracks[name].mean()) for one in rows]
        columns[f"mean {name}"] = [_number(mean) for mean in means]
    learned = [one.learned for one in rows if one.learned is not None]
    if learned:
        columns["mean learned reward"] = [_number(float(one.learned.mean())) for one in learned]
        columns["Spearman of both"] = [_correlation(one.spearman) for one in learned]
    columns["clip"] = [one.clip.name for one in rows]
    print_table(columns, right=[name for name in columns if name != "clip"])
    for line in shown.labels:
        put(harmless(line))
    for note in shown.notes:
        put(f"note: {harmless(note)}")
    put(f"overview {from_here(shown.overview)}, numbers {shown.numbers.name}")


def print_stages(shown: "list[Stage]", file: Path) -> None:
    """Print what a moving picture of a run shows, and its name."""
    columns: dict[str, list[object]] = {
        "stage": [one.name for one in shown],
        "env steps": [f"{one.env_steps:,}" for one in shown],
    }
    if any(one.labels is not None for one in shown):
        columns["labels"] = [one.labels for one in shown]
    columns["true return"] = [_number(one.true_return) for one in shown]
    print_table(columns, right=[name for name in columns if name != "stage"])
    put(f"picture {from_here(file)}")


def _facts(fields: dict[str, Any]) -> list[tuple[str, str]]:
    horizon, rewards, seeds = fields["horizon"], fields["rewards"], fields["seeds"]
    seen, action = fields["observation"], fields["action"]
    within = f"{_number(seen['low'])} to {_number(seen['high'])}"
    starts = plural(seeds["distinct_starts"], "different start")
    return [
        ("observation", f"{seen['dtype']} {tuple(seen['shape'])}, {within}"),
        ("action", _action(action)),
        ("time limit", _limit(fields)),
        ("frame skip", _known(fields["frame_skip"], "")),
        ("one env step", _known(fields["step_seconds"], " s")),
        (
            "episodes end",
            f"{fields['terminated_share']:.0%} terminated, {fields['truncated_share']:.0%} "
            f"truncated{' by the time limit' if fields['truncated_share'] else ''}",
        ),
        ("informative rewards", f"{rewards['informative_share']:.2%} of env steps"),
        (
            f"horizon of γ = {horizon['discount']:g}",
            f"{_number(horizon['env_steps'])} env steps{_in_seconds(horizon['seconds'])}; an "
            f"episode {_number(horizon['episode_env_steps'])}"
            f"{_in_seconds(horizon['episode_seconds'])}",
        ),
        ("deterministic", _repeats(fields)),
        ("seeds", f"{plural(seeds['rows'], 'seed')}, {starts}"),
        ("reward depends on action", _reward_delay(fields["actions"])),
        ("speed", f"{fields['env_steps_per_second']:,} env steps/s, random actions"),
    ]


def _print_pairs(pairs: list[tuple[str, str]]) -> None:
    width = max(len(name) for name, _ in pairs)
    for name, text in pairs:
        put(f"{harmless(name):<{width}}  {harmless(text)}")


def _print_observations(rows: list[dict[str, Any]], pixels: bool) -> None:
    heading = "channel" if pixels else "observed number"
    names = ("min", "mean", "std", "max", "largest_z")
    shown = rows[:_MOST_ROWS]
    columns: dict[str, list[object]] = {heading: [row["index"] for row in shown]}
    columns |= {name: [_number(row[name]) for row in shown] for name in names}
    columns["bounds"] = [" to ".join(map(_number, row["bounds"])) for row in shown]
    print_table(columns, right=names)
    if len(rows) > len(shown):
        put(f"and {len(rows) - len(shown)} more; --json prints all")


def _print_actions(choices: list[dict[str, Any]], *, comparable: bool) -> None:
    shown = choices[:_MOST_ROWS]
    columns: dict[str, list[object]] = {
        "action": [choice["name"] for choice in shown],
        "has an effect": [_after(choice["after"]) if comparable else UNKNOWN for choice in shown],
        "same as": [(choice["same_as"] or "") if comparable else UNKNOWN for choice in shown],
    }
    print_table(columns)


def _action(action: dict[str, Any]) -> str:
    if "n" in action:
        return f"one of {action['n']}"
    within = f"{_number(action['low'])} to {_number(action['high'])}"
    return f"{action['dtype']} {tuple(action['shape'])}, {within}"


def _repeats(fields: dict[str, Any]) -> str:
    if not fields["determinism"]["same"]:
        return f"no, {plural(fields['determinism']['env_steps'], 'env step')}"
    if not fields["actions"]["comparable"]:
        return "no, two instances with one seed differ"
    return f"yes, {plural(fields['determinism']['env_steps'], 'env step')}"


def _reward_delay(actions: dict[str, Any]) -> str:
    return _after(actions["reward_after"]) if actions["comparable"] else UNKNOWN


def _after(env_steps: int | None) -> str:
    if env_steps is None:
        return "not seen"
    return "immediately" if env_steps == 1 else f"after {env_steps} env steps"


def _known(value: int | float | None, unit: str) -> str:
    return UNKNOWN if value is None else f"{value:.4g}{unit}"


def _in_seconds(seconds: float | None) -> str:
    return "" if seconds is None else f" ({seconds:.3g} s)"


def _limit(fields: dict[str, Any]) -> str:
    """Return the time limit; an environment that does not state its own may still have one."""
    env_steps = fields["max_episode_steps"]
    if env_steps is not None:
        return f"{env_steps:,} env steps"
    if not fields["truncated_share"]:
        return "none"
    return f"not stated; the longest episode had {fields['lengths']['max']:,.0f} env steps"


def _correlation(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2f}"


def _number(value: float) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.4g}"
