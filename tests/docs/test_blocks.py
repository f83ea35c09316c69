"""Every command and Python block in README and docs runs and prints the output that it shows."""

import re
import runpy
import sys

import pytest

from tests.docs.blocks import COMMENT, ELSEWHERE, PAGES, REASONS, ROOT, Block, blocks_of
from tests.support.text import matches

RUN = ("sh", "python")


def blocks_to_do(page):
    return [block for block in blocks_of(page) if block.verb or block.language in RUN]


WITH_CODE = [page for page in PAGES if page not in ELSEWHERE and blocks_to_do(page)]


def run_command(words, monkeypatch):
    from ptrnet.cli import run

    if words[0] == "ptrnet":
        assert run(words[1:]) == 0, words
    elif words[0] == "python" and words[1] != "-m":
        monkeypatch.setattr(sys, "argv", words[1:])
        runpy.run_path(words[1], run_name="__main__")
    else:
        raise AssertionError(f"{' '.join(words)}: mark the block `<!-- not run: ... -->`")


@pytest.mark.parametrize("page", WITH_CODE)
def test_the_code_of_each_page_runs(page, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    names = {"__name__": "__main__"}
    printed = ""
    for block in blocks_to_do(page):
        if block.verb == "file":
            (tmp_path / block.words).write_text(block.code)
        elif block.verb == "output":
            assert matches(printed, block.code), f"{page} shows\n{block.code}printed\n{printed}"
        elif block.verb != "not run" and block.language in RUN:
            capfd.readouterr()
            if block.language == "sh":
                for words in block.commands():
                    run_command(words, monkeypatch)
            else:
                exec(compile(block.python(), page, "exec"), names)
            printed = capfd.readouterr().out


def test_blocks_that_are_not_run_give_a_reason():
    """There are few reasons, and each of them is used."""
    reasons = {
        block.words for page in PAGES for block in blocks_of(page) if block.verb == "not run"
    }
    assert reasons == REASONS


def test_every_comment_is_in_front_of_its_block():
    """Otherwise the comment would have no effect."""
    for page in PAGES:
        comments = COMMENT.findall((ROOT / page).read_text(encoding="utf-8"))
        assert len(comments) == sum(bool(block.verb) for block in blocks_of(page)), page


def test_no_command_hides_in_an_indented_block():
    """The tests would not run such commands."""
    for page in PAGES:
        if page not in ELSEWHERE:
            text = (ROOT / page).read_text(encoding="utf-8")
            outside = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
            assert not re.search(r"^    (ptrnet|python|pip|make) ", outside, re.MULTILINE), page


def test_shown_output_equals_real_output():
    assert matches("a 1\nb 2\nc\n", "a 1\n...\n")
    assert not matches("a 2\nb\n", "a 1\n...\n")


def test_words_are_added_to_commands_of_their_verb_alone():
    code = "ptrnet train hull \\\n    --n 5  # small\nptrnet solve hull a.txt\n"
    block = Block("sh", code, "run", "train --steps 2; generate --count 9")
    train, solve = block.commands()
    assert train == ["ptrnet", "train", "hull", "--n", "5", "--steps", "2"]
    assert solve == ["ptrnet", "solve", "hull", "a.txt"]


def test_values_are_put_in_the_place_of_others_or_refused():
    code = 'fit(x, steps=200, model="a")\n'
    assert Block("python", code, "run", "steps=2").python() == 'fit(x, steps=2, model="a")\n'
    with pytest.raises(AssertionError, match="samples= stands nowhere"):
        Block("python", code, "run", "samples=2").python()
