"""The site of `make docs` is complete, and has no broken links and no requests to other servers."""

import os
import re
import subprocess
import sys
import tomllib
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from pkgutil import resolve_name
from urllib.parse import unquote, urlsplit

import pytest

import ptrnet
import ptrnet.models
import ptrnet.tasks

pytest.importorskip("mkdocs")
pytest.importorskip("material")
pytest.importorskip("mkdocstrings_handlers.python")
yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[1]
MAX_PICTURE = 150_000
FETCHING = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src")}
INERT = {"canonical", "prev", "next"}  # links that browsers do not fetch by themselves


class Page(HTMLParser):
    """The anchors of a page, its links, and the files that a browser fetches with it."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.fetched = set(), set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors |= {values[key] for key in ("id", "name") if values.get(key)}
        self.links |= {values[key] for key in ("href", "src") if values.get(key)}
        if values.get("rel") not in INERT:
            self.fetched |= {v for k, v in attributes if (tag, k) in FETCHING and v}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, built with warnings as errors (--quiet would hide them)."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def test_every_link_leads_somewhere(site, pages):
    for path, page in pages.items():
        if path.name == "404.html":  # served instead of any page, so its links are absolute
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                assert parts.scheme in {"https", "http", "mailto", "data"}, (path, link)
                continue
            target = path.parent / unquote(parts.path) if parts.path else path
            target = (target / "index.html" if target.is_dir() else target).resolve()
            assert target.exists(), (path.relative_to(site), link)
            if parts.fragment and target in pages:
                anchors = pages[target].anchors
                assert unquote(parts.fragment) in anchors, (path.relative_to(site), link)


def test_the_page_fetches_nothing_from_other_hosts(site, pages):
    for path, page in pages.items():
        assert not [url for url in page.fetched if urlsplit(url).netloc], path
    for path in site.rglob("*.css"):
        urls = re.findall(r"url\(([^)]*)\)|@import", path.read_text(encoding="utf-8"))
        assert not [url for url in urls if "//" in url and "data:" not in url], path


def test_every_public_name_is_in_the_reference(site, pages):
    anchors = set().union(*(pages[path].anchors for path in (site / "reference").glob("*.html")))
    names = {f"ptrnet.{name}" for name in [*ptrnet.__all__, "PointerEstimator"]}
    for registry in (ptrnet.tasks, ptrnet.models):
        kinds = [registry.kind(name) for name in registry.names()]
        names |= {
            f"{k.__module__}.{k.__name__}" for k in kinds if k.__module__.startswith("ptrnet.")
        }
    assert names <= anchors, names - anchors


def test_every_name_in_the_reference_has_a_docstring(site, pages):
    """Every class, function and property has its own docstring, not that of a dataclass."""
    anchors = set().union(*(pages[path].anchors for path in (site / "reference").glob("*.html")))
    objects = {
        name: resolve_name(name) for name in anchors if name.startswith(("ptrnet.", "ptrnet_lab."))
    }
    described = {k: v for k, v in objects.items() if callable(v) or isinstance(v, property)}
    assert len(described) > 80
    for name, described_object in described.items():
        text = described_object.__doc__ or ""
        assert text and not text.startswith(f"{name.rpartition('.')[2]}("), name


def test_every_verb_and_every_result_is_there(site, pages):
    from ptrnet import cli

    assert {f"ptrnet-{verb}" for verb in cli.names()} <= pages[
        site / "reference" / "command-line.html"
    ].anchors
    for path in (ROOT / "results").glob("*.md"):
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        html = (site / "results" / f"{path.stem}.html").read_text(encoding="utf-8")
        assert title in unescape(html), path


def test_the_list_of_results_names_every_page():
    text = (ROOT / "docs" / "results" / "index.md").read_text()
    for path in (ROOT / "results").glob("*.md"):
        assert f"(../../results/{path.name})" in text, path.name


def test_pictures_are_small_and_drawn_by_the_script():
    pictures = {path.stem: path for path in (ROOT / "docs" / "pictures").glob("*.svg")}
    names = re.findall(r'^    "([\w-]+)": ', (ROOT / "benchmarks/draw_docs.py").read_text(), re.M)
    assert {*names, "favicon"} == pictures.keys()
    for path in [*pictures.values(), *(ROOT / "docs").glob("capitals*.png")]:
        assert path.stat().st_size < MAX_PICTURE, path


def slug(heading):
    """Return the anchor that GitHub gives a heading."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)|`", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def test_links_work_in_the_repository():
    """Links also work on GitHub, where the pages are read without the site's hook."""
    tracked = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True)
    code = re.compile(r"^```.*?^```|`[^`\n]+`", re.DOTALL | re.MULTILINE)
    for source in tracked.stdout.split():
        if source.startswith("src/"):  # without cards, which travel with their models
            continue
        path = ROOT / source
        text = path.read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([^)\s]+)\)", code.sub("", text)):
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / parts.path).resolve() if parts.path else path
            assert target.exists() and target.is_relative_to(ROOT), (source, link)
            if parts.fragment:
                headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.M)
                assert parts.fragment in map(slug, headings), (source, link)


def test_the_citation_is_that_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == project["version"] == ptrnet.__version__
    assert citation["license"] == project["license"]
    assert citation["authors"] == [{"name": "The ptrnet authors"}]
    assert {"message", "title", "type"} <= citation.keys()
    assert len(citation["references"]) == 1
    for reference in citation["references"]:
        assert {"type", "title", "authors"} <= reference.keys()
    assert f"version = {{{project['version']}}}" in (ROOT / "docs" / "cite.md").read_text()
