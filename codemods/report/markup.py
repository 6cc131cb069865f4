"""HTML that cannot forget to escape: what is not markup is text, and is escaped where the two meet."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from codemods.report.wording import visible

Child: TypeAlias = "str | Iterable[Child] | None"


class Html(str):
    """Markup. The functions of this module make it of text; elsewhere only constants are it: ``Html("<br>")``."""

    __slots__ = ()


def element(name: str, *children: Child, **attributes: str | bool | None) -> Html:
    """``<name attributes>children</name>``; an underscore in an attribute's name is a hyphen, one at its end nothing.

    Attributes that are ``None`` or false are left out, those that are true have no value.
    """
    return Html(f"<{name}{_attributes(attributes)}>{fragment(*children)}</{name}>")


def fragment(*children: Child) -> Html:
    """All of these beside each other."""
    return Html("".join(map(_markup, children)))


def prose(text: str) -> Html:
    """Text in which `code` stands between backticks, as in the messages of rules."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return fragment(text)
    return fragment(element("code", part) if number % 2 else part for number, part in enumerate(parts))


def path(text: str) -> Html:
    """A path that may be broken behind each slash."""
    return Html("/<wbr>".join(escape(visible(part)) for part in text.split("/")))


def _markup(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    if isinstance(child, str):
        return escape(visible(child))
    return "".join(map(_markup, child))


def _attributes(attributes: dict[str, str | bool | None]) -> str:
    return "".join(
        f" {_attribute_name(name)}" if value is True else f' {_attribute_name(name)}="{escape(visible(value))}"'
        for name, value in attributes.items()
        if value is not None and value is not False
    )


def _attribute_name(name: str) -> str:
    return name.rstrip("_").replace("_", "-")
