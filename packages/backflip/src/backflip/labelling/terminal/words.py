"""What the terminal says about the progress of labelling and the opinion of the reward model."""

from collections.abc import Mapping

import numpy as np

from backflip.labelling.status import Status
from backflip.labelling.tally import Tally
from backflip.labelling.terminal.text import clean, shortened
from runshelf.charts.sparkline import sparkline
from runshelf.durations import duration
from runshelf.formatting import plural

FEWEST_BARS = 12  # in a sparkline with words around it


def waiting_lines(status: Status, now: float) -> list[str]:
    """Return lines that say what the person waits for; `now` is in seconds since 1970."""
    what = {
        "setting up": f"setting up {clean(status.env)}".rstrip(),
        "drawing": "drawing the next clips",
        "learning": f"the agent is learning from your answers{_phase(status)}",
        "waiting": "waiting for the next pair",
        "evaluating": "no more answers are needed: rating the agent",
    }
    spent = max(0.0, now - status.since)
    about = f" of about {duration(status.expected_seconds)}" if status.expected_seconds else ""
    return [what.get(status.doing, status.doing), f"for {duration(spent)}{about}"]


def _phase(status: Status) -> str:
    phase = min(status.phase + 1, status.phases)
    return f", training phase {phase} of {status.phases}" if status.phases else ""


def progress_parts(tally: Tally, status: Status) -> list[str]:
    """Return the progress of labelling in short phrases, the most important first."""
    of = f"{tally.labels} of {status.budget} answers" if status.budget else ""
    parts = [of or plural(tally.labels, "answer")]
    if (needed := status.needed_labels) is not None and needed > tally.labels:
        given = max(0, tally.labels - status.learned_labels)
        parts.append(f"{given} of {given + needed - tally.labels} until the agent learns")
    if status.doing == "stopped":
        parts.append("training has stopped")
    if tally.per_minute:
        parts.append(f"{tally.per_minute:.1f} a minute")
        if status.budget > tally.labels:
            to_go = 60 * (status.budget - tally.labels) / tally.per_minute
            parts.append(f"about {duration(to_go)} to go")
    if tally.self_agreement is not None:
        parts.append(f"same answer to {tally.self_agreement:.0%} of {tally.repeated} repeats")
    if tally.agreement is not None:
        parts.append(f"same as others {tally.agreement:.0%} of {tally.shared}")
    if tally.careless:
        parts.append(f"please take care: {tally.careless}")
    if status.doing == "learning":
        parts.append(f"learning{_phase(status)}")
    return parts


def opinion_line(opinion: Mapping[str, np.ndarray], width: int) -> str:
    """Return one line with the predicted reward of two clips over time.

    Args:
        opinion: `left` and `right`, each (2, L): mean and standard deviation per env step.
        width: of the line, in cells.
    """
    sides = [(side, opinion[side][0], float(opinion[side][1].mean())) for side in ("left", "right")]
    both = np.concatenate([mean for _, mean, _ in sides])
    prefix, spread_width = "predicted reward: ", len(" ± 0.00")
    bars = (width - len(f"{prefix}left    right ") - 2 * spread_width) // 2
    if bars < FEWEST_BARS:
        prefix, spread_width = "", 0
        bars = max(1, (width - len("left    right ")) // 2)
    parts = [
        f"{side} {sparkline(mean, float(both.min()), float(both.max()), bars)}"
        + (f" ± {spread:.2f}" if spread_width else "")
        for side, mean, spread in sides
    ]
    return shortened(f"{prefix}{'   '.join(parts)}", width)
