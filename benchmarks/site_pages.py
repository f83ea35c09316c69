"""Add pages outside docs/ to the site of `make docs`. mkdocs.yml names this hook.

- It includes pages of the repository that are outside docs/.
- Pages link to each other as files of the repository. The hook changes such links to the address of
  the target in the site, and adds linked files that are not pages.
- It replaces `<!-- help -->` by what `ptrnet VERB --help` prints, for every verb, and by the
  options that the help only has for a task or a model.
"""

import contextlib
import io
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/log.md", "examples/README.md")
FOLDERS = ("results", "benchmarks/results")
# Matches fences and code too, so that links inside code are skipped. Group 1 is a link's target.
_LINK = re.compile(r"^```.*?^```|`[^`\n]+`|\]\(([^)\s]+)\)", re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages outside docs/, and the files that any page links to."""
    for path in outside_pages():
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    for page in list(files.documentation_pages()):
        for target in linked(ROOT / in_repository(page.src_uri)):
            if not target.startswith("docs/") and target not in files.src_uris:
                files.append(File.generated(config, target, abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    """Return the page, with links to addresses in the site."""
    source = in_repository(page.file.src_uri)
    folder = posixpath.dirname(page.file.src_uri)

    def replace(match: re.Match[str]) -> str:
        if match[1] is None or "://" in match[1] or match[1].startswith("#"):
            return match[0]
        path, hash_sign, anchor = match[1].partition("#")
        target = resolve(source, path).removeprefix("docs/")
        return f"]({posixpath.relpath(target, folder or '.')}{hash_sign}{anchor})"

    return _LINK.sub(replace, markdown).replace("<!-- help -->", "\n".join(help_texts(markdown)))


def on_page_content(html: str, page: Page, config: Any, files: Files) -> str:
    """Mark pages of measurements, so that numbers are not broken (docs/css/site.css)."""
    measured = page.file.src_uri.startswith(FOLDERS)
    return f'<div class="measured">{html}</div>' if measured else html


def outside_pages() -> list[str]:
    """Return the pages outside docs/, as paths in the repository and in the site."""
    found = (path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.md")))
    return [*PAGES, *(path.relative_to(ROOT).as_posix() for path in found)]


def in_repository(page: str) -> str:
    """Return the path of a page in the repository."""
    return f"docs/{page}" if (ROOT / "docs" / page).exists() else page


def resolve(source: str, link: str) -> str:
    """Return the path in the repository to which a link on the page `source` leads."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link))


def linked(page: Path) -> Iterator[str]:
    """Return the files of the repository to which a page links."""
    source = page.relative_to(ROOT).as_posix()
    for match in _LINK.finditer(page.read_text(encoding="utf-8")):
        if match[1] and "://" not in match[1] and not match[1].startswith("#"):
            target = resolve(source, match[1].partition("#")[0])
            if (ROOT / target).is_file():
                yield target


def help_texts(markdown: str) -> Iterator[str]:
    """Yield a section with the help of each command, for the page that has `<!-- help -->`."""
    if "<!-- help -->" not in markdown:
        return
    sys.path.insert(0, str(ROOT / "src"))
    from ptrnet import cli, models, tasks

    names = [*tasks.names(), *tasks.problem_names()]
    further = {
        "train": [*([name] for name in names), *(["--model", name] for name in models.names())],
        "generate": [[name] for name in tasks.problem_names()],
        "solve": [["tsp"]],
        "label": [["tsp"]],
    }
    for verb in cli.names():
        printed = set[str]()  # sections
        for words in ([verb], *([verb, *more] for more in further.get(verb, []))):
            with contextlib.redirect_stdout(io.StringIO()) as stream:
                cli.run([*words, "--help"])
            sections = stream.getvalue().strip().split("\n\n")
            of_model = "--model" in words
            if len(words) > 1:
                is_network = [part.startswith("Options for the network:") for part in sections]
                pairs = zip(sections, is_network, strict=True)
                sections = [part for part, is_of in pairs if is_of == of_model]
                sections = [part for part in sections if part.startswith("Options for ")]
            if new := [part for part in sections if of_model or part not in printed]:
                heading = f"{'#' * min(len(words) + 1, 3)} ptrnet {' '.join(words)}"
                text = "\n\n".join(new)
                yield f"{heading}\n\n```text\n{text}\n```\n"
            printed.update(sections)
