"""Suggests which of our signals an unknown name may be. Nothing is mapped without the user."""

import difflib
import re
from collections.abc import Sequence

from backflip.doctor.signals import SIGNALS

MOST_MATCHES = 5  # similar signals that are looked at
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")  # also of `AverageEpRet`
IN_BRACKETS = re.compile(r"\([^)]*\)|\[[^]]*\]")
LOSSES = ("loss", "losses")  # the part of a name before the last
LARGE = re.compile(r"\d\d+")
SYNONYMS = {
    "ep": "episode",
    "episodic": "episode",
    "len": "length",
    "lengths": "length",
    **dict.fromkeys(("rew", "rews", "reward", "rewards"), "return"),
    **dict.fromkeys(("ret", "returns", "score", "scores"), "return"),
    **dict.fromkeys(("actor", "pi", "pg"), "policy"),
    **dict.fromkeys(("vf", "v"), "value"),
    "qf": "q",
    "ent": "entropy",
    "eps": "epsilon",
    "alpha": "temperature",
    "var": "variance",
    "adv": "advantage",
    "advantages": "advantage",
    **dict.fromkeys(("sd", "stdev", "stddev"), "std"),
}
# Words that say how a value is averaged, or when it is logged.
EMPTY = {
    "mean",
    "avg",
    "average",
    "train",
    "training",
    "rollout",
    "cumulative",
    "now",
    "current",
    "cur",
    "returned",
}
# Names that leave out words of the signal, or have others.
OTHER_WORDS = {
    frozenset({"return"}): "episode_return_mean",
    frozenset({"total", "return"}): "episode_return_mean",
    frozenset({"length"}): "episode_length_mean",
    frozenset({"kl"}): "approx_kl",
    frozenset({"kl", "div"}): "approx_kl",
    frozenset({"kl", "divergence"}): "approx_kl",
    frozenset({"clipfrac"}): "clip_fraction",
    frozenset({"clip", "frac"}): "clip_fraction",
    frozenset({"q"}): "q_mean",
    frozenset({"q", "1"}): "q_mean",
    frozenset({"h"}): "entropy",
    frozenset({"gnorm"}): "grad_norm",
    frozenset({"frames"}): "env_steps",
    frozenset({"q", "value"}): "q_mean",
    frozenset({"q", "values"}): "q_mean",
    frozenset({"td", "loss"}): "q_loss",
    frozenset({"ev"}): "explained_variance",
    frozenset({"expvar"}): "explained_variance",
    frozenset({"gradient", "norm"}): "grad_norm",
    frozenset({"epsilon", "greedy"}): "epsilon",
    frozenset({"lr"}): "learning_rate",
    frozenset({"policy", "entropy"}): "entropy",
    frozenset({"action", "entropy"}): "entropy",
}


def closest(unknown: Sequence[str]) -> dict[str, str]:
    """Return the signal that each unknown name may be, by unknown name; each signal once.

    Of several names for one signal, the one with the most words counts: `episode_reward`, not
    `reward`.
    """
    found = {name: ours for name in unknown if (ours := _similar(name) or _in_other_words(name))}
    best: dict[str, str] = {}
    for name in sorted(found, key=lambda name: -len(_words(name))):
        best.setdefault(found[name], name)
    return {name: ours for name, ours in found.items() if best[ours] == name}


def _similar(name: str) -> str | None:
    """Return the signal whose name is nearly the same.

    Both consist of the same words of ours, so that neither `loss` nor `q_value_loss` is `q_loss`.
    Words that no signal has, and `mean`, do not count.
    """
    before, _, last = name.lower().replace("-", "_").rpartition("/")
    if before.endswith(LOSSES) and "loss" not in last:
        return None
    matches = difflib.get_close_matches(last, SIGNALS, MOST_MATCHES, 0.75)
    return next((one for one in matches if _known_words(one) == _known_words(last)), None)


def _known_words(name: str) -> set[str]:
    """Return the words of our signals in a name; a word with a typing error counts as ours."""
    known = {word for signal in SIGNALS for word in signal.split("_")}
    near = [difflib.get_close_matches(word, known, 1, 0.75) for word in name.split("_")]
    return {word for words in near for word in words} - {"mean"}


def _in_other_words(name: str) -> str | None:
    """Return the signal that has the words of a name, after synonyms."""
    of_ours = {frozenset(signal.split("_")) - EMPTY: signal for signal in SIGNALS}
    words = frozenset(SYNONYMS.get(word, word) for word in _words(name))
    return OTHER_WORDS.get(words) or of_ours.get(words)


def _words(name: str) -> frozenset[str]:
    """Return the words of the last part of a name that say what it measures.

    What is in brackets does not, such as `(last 100)`, nor do large numbers. If no word of it says
    so, as in `reward/mean`, the part before counts.
    """
    before, _, last = IN_BRACKETS.sub(" ", name).replace("π", "pi ").rpartition("/")
    last += " loss" if before.lower().endswith(LOSSES) else ""  # `loss/v` is no value
    words = frozenset(word.lower() for word in WORD.findall(last) if not LARGE.fullmatch(word))
    return words - EMPTY or (_words(before) if before else frozenset())
