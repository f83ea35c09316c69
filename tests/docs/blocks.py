"""Run the code of a page like a reader: block after block, in one folder.

A comment in front of a block, which the reader does not see, says what is done with it:

    <!-- run: train --steps 4; generate --count 9 -->    words added to each such command
    <!-- run: steps=2 hidden_size=8 -->                  other values of arguments, in Python
    <!-- not run: needs a GPU -->                        one of `REASONS`
    <!-- file: mine.jsonl -->                            the block is saved as this
    <!-- output -->                                      the block before prints it; `...`: any text

and `<!-- before: ptrnet ... -->` anywhere is a command that a reader is supposed to have run.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))),
    "examples/README.md",
]
# Pages whose commands other tests run, or that have no ptrnet commands.
ELSEWHERE = {
    "docs/serve.md": "tests/docs/test_serve.py",
    "docs/page.md": "tests/webpage/test_static.py",
    "docs/reliability.md": "tests/stress/conftest.py",
}
REASONS = {
    "needs an account on the hub",
    "installs",
    "needs a GPU",
    "needs a cluster",
    "needs Docker",
    "needs your files",
    "takes hours",
    "run by tests/test_plugins.py",
}
_BLOCK = re.compile(
    r"<!-- before: (?P<before>[^\n]+) -->"
    r"|(?:<!-- (?P<verb>run|not run|file|output)(?:: (?P<words>[^\n]*))? -->\n+)?"
    r"^```(?P<language>\w+)\n(?P<code>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
COMMENT = re.compile(r"<!-- (?:run|not run|file|output|before)\b")


@dataclass(frozen=True)
class Block:
    """A fenced block, with the comment in front of it."""

    language: str
    code: str
    verb: str = ""
    words: str = ""

    def commands(self) -> list[list[str]]:
        """Return the commands of a shell block, with the options that the comment adds."""
        joined = self.code.replace("\\\n", " ")
        commands = [shlex.split(line, comments=True) for line in joined.splitlines()]
        added = [shlex.split(part) for part in self.words.split(";")] if self.verb == "run" else []
        return [
            [*command, *(word for verb, *rest in added if verb in command[1:] for word in rest)]
            for command in commands
            if command
        ]

    def python(self) -> str:
        """Return a block of Python, with the values that the comment replaces."""
        code = self.code
        for pair in self.words.split() if self.verb == "run" else ():
            name, _, value = pair.partition("=")
            code, count = re.subn(rf"\b{name}=[\w.\"'-]+", f"{name}={value}", code)
            assert count, f"{name}= stands nowhere in the block"
        return code


def blocks_of(page: str) -> list[Block]:
    """Return the blocks of a page with the comments in front of them, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        Block("sh", match["before"], "before")
        if match["before"]
        else Block(match["language"], match["code"], match["verb"] or "", match["words"] or "")
        for match in _BLOCK.finditer(text)
    ]
