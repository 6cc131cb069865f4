"""Reports of hostile repositories: every text stays text, on the page, in Markdown and in a real browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from conversion import Tree
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from codemods.catalogue import load_catalogue, load_kinds
from codemods.report.markup import Html, element, fragment, path, prose
from codemods.report.migration import (
    CudaSource,
    Figures,
    File,
    Folder,
    Kind,
    Migration,
    Obstacle,
    Place,
    Problem,
    RuleUse,
)
from codemods.report.migration_html import render as as_html
from codemods.report.migration_json import render as as_json
from codemods.report.migration_markdown import render as as_markdown
from codemods.report.wording import visible


def words(text: str) -> set[str]:
    return set(text.split())


PAGE_TAGS = words(
    """html head meta title style body header p h1 h2 h3 br span i dl div dt dd nav a label input main section table
    thead tr th tbody td code wbr details summary b ol li footer script"""
)
PAGE_ATTRIBUTES = words(
    """lang charset name content http-equiv class role aria-label title style href id hidden type placeholder
    autocomplete spellcheck data-label open"""
)
MARKDOWN_TAGS = words("h1 h2 h3 p br table thead tbody tr th td ol li code details summary b a")
MARKDOWN_ATTRIBUTES = {"href", "style", "open", "align"}

HOSTILE = [
    "<script>alert(1)</script>.py",
    "</style><img src=x onerror=alert(1)>",
    "</summary></details><h1>",
    "\"><b onmouseover='x'>&amp;&lt;",
    "<!--",
    "]]>",
    "`code` and `more",
    "a|b\\|c\\",
    "__init__ *bold* _it_ ~~no~~ [link](http://x) ![i](x)",
    "https://example.org www.example.org $x$ #1 &copy; &#60;",
    "<https://example.org>",
    "evil\u202etxt.py\u2066\u200b",
    "tab\tnew\nline\r\x00\x1b[31m",
    "caf\udce9.py",
    "a/" * 60 + "x" * 300 + ".py",
    "``` ` `` ",
    "javascript:alert(1)",
    "é \u00a0\u3000 \U0001f600 \ufeff",
]
ALPHABET = st.one_of(st.characters(), st.sampled_from("<>&\"'`|\\*_[]()~#!$:/-=+.\u202e\n\t\r\udcff{}@"))
texts = st.one_of(st.sampled_from(HOSTILE), st.text(ALPHABET, max_size=40))


@dataclass
class Parsed(HTMLParser):
    """What a page is to a reader and to a browser."""

    html: str
    tags: set[str] = field(default_factory=set)
    attributes: dict[str, list[str]] = field(default_factory=dict)
    text: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.html)
        self.close()

    __hash__ = None  # type: ignore[assignment]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, []).append(value or "")

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_data(self, data: str) -> None:
        self.text += data


untimed = settings(deadline=None)


def squeezed(text: str) -> str:
    """The text without what may be lost on the way: blanks at cuts, and the backticks that mark code."""
    return re.sub(r"[\s`]+", "", text)


def migration(text: str) -> Migration:
    """A report in which everything that a repository can choose is this text."""
    rule = load_catalogue()["UC204"]
    place = Place(text, None, 3, 4, f"{rule.message}: {text}", text, False)
    figures = Figures(safe=2, review=1, by_hand=1, cuda_only=1, notes=1)
    use = RuleUse(rule, figures, (place,), (place,))
    return Migration(
        name=text,
        limits=(text,),
        files_read=1,
        files_changed=1,
        figures=figures,
        kinds=(Kind(load_kinds().series_of(rule.code), figures, (use,)),),
        obstacles=(Obstacle(text, text, "days", None, (place,)),),
        cuda_sources=(CudaSource(text, 1, 1),),
        builders=(),
        folders=(Folder(text, figures, (File(text, figures, True),)),),
        helpers=(text,),
        problems=(Problem(text, 1, text),),
        skipped=((text, 1),),
        written=None,
    )


def times(needle: str, text: str) -> int:
    return squeezed(text).count(squeezed(visible(needle))) if squeezed(visible(needle)) else 99


@untimed
@given(texts)
def test_the_page_shows_every_text_as_text(text: str) -> None:
    html = as_html(migration(text))
    html.encode()
    page = Parsed(html)
    assert page.tags <= PAGE_TAGS
    assert set(page.attributes) <= PAGE_ATTRIBUTES
    assert all(re.fullmatch(r"width:\d+\.\d\d%", style) for style in page.attributes["style"])
    assert all(link.startswith("#") for link in page.attributes["href"])
    assert len(page.attributes["id"]) == len(set(page.attributes["id"]))
    assert times(text, page.text) >= 16


@untimed
@given(texts)
def test_markdown_shows_every_text_as_text(text: str) -> None:
    markdown = as_markdown(migration(text))
    markdown.encode()
    renderer = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    page = Parsed(renderer.render(markdown))
    assert page.tags <= MARKDOWN_TAGS
    assert set(page.attributes) <= MARKDOWN_ATTRIBUTES
    assert all(link.startswith("#") for link in page.attributes["href"])
    assert times(text, page.text) >= 15


@untimed
@given(texts)
def test_markdown_does_not_link_on_its_own(text: str) -> None:
    """GitHub makes links of bare addresses, which the renderer of the tests does not: they must not be there."""
    markdown = re.sub(r"(`+).*?\1|<code>.*?</code>|<summary>.*", "", as_markdown(migration(text)))
    assert not re.search(r"\w://|www\.", markdown)


@untimed
@given(texts)
def test_json_holds_every_text_as_it_is(text: str) -> None:
    rendered = as_json(migration(text))
    assert rendered.isascii()
    found = json.loads(rendered)
    assert found["name"] == text
    assert found["files"][0]["path"] == text
    assert found["kinds"][0]["rules"][0]["by_hand"][0]["code"] == text


@given(st.text(ALPHABET))
def test_what_is_visible_is_printable_and_nothing_is_lost(text: str) -> None:
    shown = visible(text)
    assert shown.isprintable()
    shown.encode()
    assert text.isprintable() == (shown == text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 漢", "plain é 漢"),
        ("a\u202eb", "a\\u202eb"),
        ("a\tb\n", "a\\tb\\n"),
        ("\x1b[0m", "\\x1b[0m"),
        (os.fsdecode(b"caf\xe9"), "caf\\xe9"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_does_not_show_is_an_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(ALPHABET), st.text(ALPHABET))
def test_markup_escapes_what_is_not_markup(text: str, value: str) -> None:
    markup = element("b", text, element("i", text), [text, None], title=value, data_label=value, open=True, id=None)
    page = Parsed(markup)
    assert page.tags == {"b", "i"}
    assert page.text == visible(text) * 3
    assert page.attributes == {"title": [visible(value)], "data-label": [visible(value)], "open": [""]}
    assert Parsed(path(text)).text == visible(text)
    assert squeezed(Parsed(prose(text)).text) == squeezed(visible(text))
    assert fragment(Html("<br>"), text).startswith("<br>")


# -- from files to the page --------------------------------------------------------------------------------------------

CALL = """\
import torch

x = torch.ones(1).cuda()
g = torch.cuda.CUDAGraph()  # <script>alert('line')</script> | `x` \u202e
"""


def hostile_tree(tree: Tree) -> list[str]:
    """Files of hostile names, as far as this system can hold them."""
    names = [
        "<script>alert(1)<",
        "script>.py",
        "a|b`c`.py",
        "__x__ *y*.py",
        "evil\u202eyp.py",
        "tab\t.py",
        "\"q'&amp;.py",
    ]
    names += ["deep/" * 20 + "x" * 200 + ".py", os.fsdecode(b"caf\xe9.py"), "new\nline.py"]
    written = []
    for name in names:
        file = tree.root / (name if name.endswith(".py") else f"{name}.py")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(CALL, encoding="utf-8")
        except OSError:
            continue
        written.append(file.relative_to(tree.root).as_posix())
    return written


def test_names_and_lines_of_a_hostile_repository(tree: Tree) -> None:
    names = hostile_tree(tree)
    assert len(names) > 5
    for name in ("report.html", "report.md", "report.json"):
        assert tree.run("convert", ".", "--report", name).exit_code in (1, 2)
    page = Parsed(tree.read("report.html"))
    assert page.tags <= PAGE_TAGS
    markdown = Parsed(MarkdownIt("commonmark", {"html": True}).enable("table").render(tree.read("report.md")))
    assert markdown.tags <= MARKDOWN_TAGS
    for name in names:
        place = squeezed(f"{visible(name)}:4:5")
        assert place in squeezed(page.text)
        assert place in squeezed(markdown.text)
    assert {file["path"] for file in json.loads(tree.read("report.json"))["files"]} == set(names)
    assert "\u202e" not in tree.read("report.html") + tree.read("report.md")


# -- in a browser ------------------------------------------------------------------------------------------------------

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="needs a browser: chromium or google-chrome")


def in_browser(html: str, folder: Path) -> str:
    """The page as the browser holds it after a while."""
    file = folder / "page.html"
    file.write_text(html, encoding="utf-8")
    assert BROWSER
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command += ["--window-size=1400,900", "--virtual-time-budget=3000", "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode or not done.stdout:
        pytest.skip(f"the browser does not start here: {done.stderr.strip()[-200:]}")
    return done.stdout


def probed(html: str, folder: Path, probe: str, *, width: int = 1280) -> str:
    """What a script finds in the page, which is shown in a frame of some width: a function of its document."""
    wrapper = (
        f'<!doctype html><meta charset="utf-8"><iframe style="width:{width}px;height:900px;border:0" '
        f'srcdoc="{escape(html)}"></iframe><script>var frame = document.querySelector("iframe");'
        f"frame.onload = async () => {{ document.title = await ({probe})(frame.contentDocument); }}</script>"
    )
    found = re.search(r"<title>(.*?)</title>", in_browser(wrapper, folder))
    assert found, "the script of the test failed"
    return unescape(found[1])


@needs_browser
def test_a_browser_runs_the_script_of_the_page_and_nothing_else(tree: Tree, tmp_path: Path) -> None:
    hostile_tree(tree)
    tree.run("convert", ".", "--report", "report.html")
    html = tree.read("report.html").replace("</body>", "<script>document.title = 'broken in'</script></body>")
    page = in_browser(html, tmp_path)
    assert "<title>Migration report: repository</title>" in page
    assert '<label id="filter">' in page  # not hidden any more: the policy knows the script by its sum


@needs_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_window(tree: Tree, tmp_path: Path, width: int) -> None:
    hostile_tree(tree)
    tree.run("convert", ".", "--report", "report.html")
    probe = """page => {
        page.querySelectorAll("details").forEach(one => one.open = true);
        return page.documentElement.scrollWidth + " of " + page.defaultView.innerWidth;
    }"""
    found = probed(tree.read("report.html"), tmp_path, probe, width=width)
    needed, there = map(int, found.split(" of "))
    assert needed <= there == width


@needs_browser
def test_the_filter_shows_what_holds_the_text(tree: Tree, tmp_path: Path) -> None:
    tree.write({"one.py": CALL, "two.py": CALL, "sub/three.py": CALL})
    tree.run("convert", ".", "--report", "report.html")
    probe = """async page => {
        const box = page.querySelector("#filter input");
        const shown = () => Array.from(page.querySelectorAll("#by-hand details tbody tr"))
            .filter(row => !row.hidden).map(row => row.cells[0].textContent).join();
        const open = () => Array.from(page.querySelectorAll("#files details")).filter(one => one.open).length;
        const found = [shown() + "/" + open()];
        for (const text of ["TWO.py", ""]) {
            box.value = text;
            box.dispatchEvent(new page.defaultView.Event("input"));
            await new Promise(done => setTimeout(done, 500));
            found.push(shown() + "/" + open());
        }
        return found.join(" then ");
    }"""
    every = "one.py:4:5,sub/three.py:4:5,two.py:4:5/0"
    assert probed(tree.read("report.html"), tmp_path, probe) == f"{every} then two.py:4:5/1 then {every}"
