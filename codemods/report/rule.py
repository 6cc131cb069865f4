"""A rule of the catalogue as text: the same in ``uncuda explain`` and in the documentation."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import PurePath

from codemods.catalogue import Example, Rule
from codemods.findings import Tier

_LANGUAGES = {".sh": "sh", ".yaml": "yaml", ".json": "json", ".toml": "toml"}
_TIERS = {
    Tier.NOTE: "note: harmless elsewhere, said and never changed",
    Tier.SAFE: "safe: applied",
    Tier.REVIEW: "review: applied, worth a look",
    Tier.MANUAL: "manual: reported, a person decides",
}


def markdown(rule: Rule) -> str:
    """The rule as Markdown, with its examples as diffs."""
    parts = [f"# {rule.code} {rule.name}", f"{rule.title[0].upper()}{rule.title[1:]}.", f"Tier: {_TIERS[rule.tier]}."]
    if rule.option:
        parts.append(f"Off unless asked for: `uncuda convert --{rule.option}`.")
    parts.append(rule.why)
    parts += [_example(example) for example in rule.examples]
    if rule.references:
        parts.append("\n".join(f"- {reference}" for reference in rule.references))
    return "\n\n".join(parts) + "\n"


def _example(example: Example) -> str:
    if example.before == example.after:
        language = "python" if example.is_python else _LANGUAGES.get(PurePath(example.file).suffix, "")
        where = "" if example.is_python else f", in `{example.file}`"
        return f"Left as it is{where}:\n\n```{language}\n{example.before}```"
    before, after = example.before.splitlines(keepends=True), example.after.splitlines(keepends=True)
    lines = list(unified_diff(before, after, n=99))[3:]
    return "```diff\n" + "".join(lines) + "```"
