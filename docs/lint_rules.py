"""Write the rules of `backflip lint` into docs/lint.md.

    python docs/lint_rules.py

Run it after a rule has changed; a test compares the page with it.
"""

from pathlib import Path

from backflip.doctor.lint.registry import RULES
from backflip.doctor.lint.rule import Rule

PAGE = Path(__file__).parent / "lint.md"
HEADING = "\n## Rules\n"


def page() -> str:
    """Return the text of the page as it must be."""
    before, _, _ = PAGE.read_text().partition(HEADING)
    return before + HEADING + "".join(map(_section, RULES))


def _section(rule: Rule) -> str:
    title = f"{rule.title[0].upper()}{rule.title[1:]}"
    return (
        f"\n### {rule.id}: {title}\n\n{rule.why}\n\n"
        f"*Instead:* {rule.fix}\n\n*Source:* {rule.origin}\n"
    )


if __name__ == "__main__":
    PAGE.write_text(page())
