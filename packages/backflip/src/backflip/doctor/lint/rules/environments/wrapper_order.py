"""L71: returns that are recorded after a wrapper changed the rewards."""

import ast
from collections.abc import Iterator

from backflip.doctor.lint.rule import Hit, Rule
from backflip.doctor.lint.source import Source, argument, is_false, walk, written

RECORDS = ("RecordEpisodeStatistics", "Monitor", "VecMonitor")
CHANGES = {  # with the argument that turns the change off
    "NormalizeReward": "",
    "ClipReward": "",
    "ClipRewardEnv": "",
    "VecNormalize": "norm_reward",
    "AtariWrapper": "clip_reward",
}


def _wrapper_order(source: Source) -> Iterator[Hit]:
    """Find `RecordEpisodeStatistics(NormalizeReward(env))`, also over several statements."""
    for scope in source.scopes:
        changed = dict[str, str]()  # the wrapper that changes the rewards of a name
        for node in walk(scope):
            if isinstance(node, ast.Call) and _name(node) in RECORDS and node.args:
                wrapper = _changed_by(node.args[0], changed)
                if wrapper:
                    yield Hit(node, f"the returns are those of `{wrapper}`, not the task's")
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                changed[written(node.targets[0])] = _changed_by(node.value, changed)


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else written(call.func)


def _changed_by(value: ast.expr, changed: dict[str, str]) -> str:
    """Return the wrapper around a value that changes rewards; empty without one."""
    while isinstance(value, ast.Call) and value.args:
        name = _name(value)
        option = CHANGES.get(name)
        if option is not None and not (option and is_false(argument(value, option))):
            return name
        if name[:1].islower():
            return ""  # a function may do anything
        value = value.args[0]
    return changed.get(written(value), "") if not isinstance(value, ast.Call) else ""


RULES = (
    Rule(
        "L71",
        "returns are recorded after a wrapper changed the rewards",
        "The log shows sums of scaled or clipped rewards: they cannot be compared with any other "
        "result, and may rise while the task's return falls.",
        "Record inside: `NormalizeReward(RecordEpisodeStatistics(env))`.",
        "Stable-Baselines3, Monitor: wrap the environment before other wrappers",
        _wrapper_order,
    ),
)
