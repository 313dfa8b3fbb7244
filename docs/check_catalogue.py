"""Write the catalogue of the doctor's checks, causes and signals into docs/checks.md.

    python docs/check_catalogue.py

Run it after a check, a cause or the calibration has changed; a test compares the page with it.
"""

from pathlib import Path

from backflip.doctor.calibration import Healthy, beyond, calibration, can_be_crossed
from backflip.doctor.catalogue import CHECKS
from backflip.doctor.causes import BY_ID, CAUSES
from backflip.doctor.check import Cause, Check
from backflip.doctor.healthy_returns import healthy_returns
from backflip.doctor.probe_evidence import CONSTANT, SIGN
from backflip.doctor.signals import SIGNALS

PAGE = Path(__file__).parent / "checks.md"
HEADING = "\n## Checks\n"
LIMITS = {
    "identity": "an identity",
    "setting": "a setting beyond all that are known to learn",
    "convention": "a convention",
}


def page() -> str:
    """Return the text of the page as it must be."""
    before, _, _ = PAGE.read_text().partition(HEADING)
    checks = "".join(map(_check, CHECKS))
    causes = "".join(map(_cause, CAUSES))
    return f"{before}{HEADING}{checks}\n## Causes\n{causes}\n## Signals\n\n{_signals()}"


def _check(check: Check) -> str:
    title = f"{check.title[0].upper()}{check.title[1:]}"
    of = ", ".join(f"`{name}`" for name in check.algorithms) or "all algorithms"
    causes = sorted(check.causes.items(), key=lambda pair: -pair[1])
    named = ", ".join(f"[{cause}](#{cause}) {p:.0%}" for cause, p in causes)
    severity = check.severity.capitalize()
    needs = ", ".join(f"`{name}`" for name in check.needs) or "nothing in particular"
    return (
        f"\n### {check.id}\n\n**{title}.** {check.explanation}\n\n"
        f"*Measured:* {check.quantity}. *{severity}:* {check.bad_side} {_limit(check)}.\n\n"
        f"*Of:* {of}. *Needs:* {needs}.\n\n*Causes:* {named}.\n\n*Source:* {check.source}.\n"
        f"{_healthy(check)}{_healthy_returns() if check.id == 'ENV-BELOW' else ''}"
    )


def _limit(check: Check) -> str:
    if check.limit is None:
        return "what healthy runs showed, with a margin"
    return f"{check.limit:g}, {LIMITS[check.limit_from]}"


def _healthy(check: Check) -> str:
    rows = [(kind, of[check.id]) for kind, of in calibration().items() if check.id in of]
    if check.limit is not None or not rows:
        return ""
    lines = ["", "| kind of run | runs | typical | worst | limit |", "|---|---|---|---|---|"]
    lines += [
        f"| {kind} | {one.runs} | {one.typical:.4g} | {one.worst:.4g} | {_calibrated(check, one)} |"
        for kind, one in rows
    ]
    return "\n".join(lines) + "\n"


def _calibrated(check: Check, healthy: Healthy) -> str:
    limit = beyond(check, healthy)
    if can_be_crossed(check, limit):
        return f"{limit:.4g}"
    return "not checked: healthy runs show the worst possible value"


def _healthy_returns() -> str:
    lines = [
        "",
        "| library | environment | algorithm | untrained | reached | env steps until half |",
    ]
    lines.append("|---|---|---|---|---|---|")
    lines += [
        f"| {'Stable-Baselines3' if library == 'sb3' else library} | {env} | {algorithm} "
        f"| {one.untrained:.5g} | {one.reached:.5g} | {one.env_steps:,.0f} |"
        for library, by_env in healthy_returns().items()
        for env, by_algorithm in by_env.items()
        for algorithm, one in by_algorithm.items()
    ]
    return "\n".join(lines) + "\n"


def _named(probe: str) -> str:
    return f"`{CONSTANT}` with a negative value" if probe == SIGN else f"`{probe}`"


def _probes(cause: Cause) -> str:
    if not cause.probes:
        return ""
    named = ", ".join(f"{_named(name)} {p:.0%}" for name, p in cause.probes.items())
    return f"\n*[Probes](probe.md) that fail if it is in the code:* {named}.\n"


def _cause(cause: Cause) -> str:
    step = cause.experiment
    return (
        f"\n### {cause.id}\n\n{cause.text} *Instead:* {cause.fix}\n\n"
        f"*Experiment:* {step.change}. If it is this, {step.if_cause}. If not, {step.if_not}.\n"
        f"{_probes(cause)}"
    )


def _signals() -> str:
    lines = ["| signal | meaning | how to log it |", "|---|---|---|"]
    for name, meaning in SIGNALS.items():
        cells = (meaning.text, meaning.how)
        lines.append(f"| `{name}` | {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    assert set(BY_ID) == {cause.id for cause in CAUSES}
    PAGE.write_text(page())
