"""The texts of `--help`, and shell completion."""

import re
import subprocess
import sys

import pytest

from ptrnet import models
from ptrnet.cli import app, run
from ptrnet.decoding import Beam, Incremental, Reconstruct, Sample
from ptrnet.decoding.options import AnswerOptions
from ptrnet.settings import options_of


@pytest.mark.parametrize("verb", ["", *app.VERBS, "models show"])
def test_help_has_examples_one_a_line(ptrnet, verb):
    code, out, _ = ptrnet(*verb.split(), "--help")
    assert code == 0 and (not verb or re.search(r"\n  Examples:\n      ptrnet .*\n", out))
    assert ptrnet(*verb.split(), "-h")[:2] == (0, out)


@pytest.mark.parametrize("verb", ["models", "models show hull", "convert", "label", "plot"])
def test_commands_without_random_numbers_accept_seed_and_do_not_list_it(ptrnet, verb):
    assert "--seed" not in ptrnet(*verb.split(), "--help")[1]
    assert "No such option" not in ptrnet(*verb.split(), "--seed", "1")[2]


def test_a_shell_completes_verbs_and_options(capfd, monkeypatch):
    """The first words run in a new process, as in a shell; the others run here, which is faster."""
    for k, (words, expected) in enumerate(
        (
            ("ptrnet rep", "reproduce"),
            ("ptrnet solve --beam", "--beam-size"),
            ("ptrnet train del", "delaunay"),
            ("ptrnet train hull --model rem", "remaining-ptr-net"),
            ("ptrnet generate tsp --labeller held", "held-karp"),
            ("ptrnet solve hull --decoder inc", "incremental"),
            ("ptrnet evaluate --model sort-", "sort-ptr-net"),
        )
    ):
        monkeypatch.setenv("_PTRNET_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        if k == 0:
            subprocess.run([sys.executable, "-m", "ptrnet"], check=True)
        else:
            with pytest.raises(SystemExit, match="0"):
                run([])
        out, err = capfd.readouterr()
        assert (out.split(), err) == ([expected], "")


def test_train_help_lists_the_values_of_each_choice(ptrnet):
    text = "".join(ptrnet("train", "--help")[1].split())  # names may be broken
    for values in (
        *("one-cycle | constant", "lstm | gru", "given | lexicographic | hilbert"),
        *(" | ".join(models.names()), "tsp exact | held-karp", "hull, delaunay, tsp or sort"),
    ):
        assert text.count(values.replace(" ", "")) == 1


def test_the_defaults_in_the_help_of_solve_are_the_decoders_defaults():
    """The help has defaults in brackets, because the options themselves default to None."""
    written = {}
    for name, option in options_of(AnswerOptions).items():
        text = option.help
        if match := re.search(r"\[(\w+)\]$", text):
            written[name] = match[1]
    drawn = Sample()
    assert written == {
        "beam_size": str(Beam().size),
        "samples": str(drawn.size),
        "temperature": f"{drawn.temperature:g}",
        "window": str(Incremental().window),
        "inner": Incremental().inner.name,
        "seconds": f"{Reconstruct().seconds:g}",
        "part": str(Reconstruct().part),
    }
