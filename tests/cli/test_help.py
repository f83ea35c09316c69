"""The texts of `--help`, and shell completion."""

import re
import subprocess
import sys

import pytest
import typer

from ptrnet import cli, models, tasks
from ptrnet.cli import run
from ptrnet.cli.app import build
from ptrnet.decoding import Beam, Incremental, Reconstruct, Sample
from ptrnet.decoding.options import AnswerOptions
from ptrnet.settings import options_of


@pytest.mark.parametrize("verb", ["", *cli.names(), "models show"])
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


def options_in(text):
    """Return the options in a help by section."""
    sections = re.findall(r"^(\w.*):\n((?:  .*\n?)+)", text, re.M)
    found = {name: re.findall(r"^  --([\w-]+)", rows, re.M) for name, rows in sections}
    return {name: options for name, options in found.items() if name.startswith("Options")}


NETWORK = "Options for the network"
HELPS = {
    "train": {"Options for your own examples": ["set-id", "kind", "fields", "loss"]},
    "train --data none.csv": {
        "Options for your own examples": ["grade", "context"],
        NETWORK: ["dropout", "decoder-layers"],
    },
    "tune": {
        "Options for your own examples": ["set-id", "grade", "group"],
        "Options": ["data", "output", "trials", "folds", "seconds", "steps", "seed"],
    },
    "tune --data none.csv": {
        "Options for your own examples": ["fields"],
        NETWORK: ["dropout", "decoder-layers"],
    },
    "train --model ptr-net": {"Options for your own examples": ["group"], NETWORK: ["cell"]},
    "train hull": {
        "Options for tasks": ["n", "labeller", "points"],
        "Options for hull": ["start", "closed"],
        NETWORK: ["decoder-layers"],
    },
    "train hull-ptr-net": {
        "Options for tasks": ["examples"],
        "Options for hull": ["closed"],
        NETWORK: ["cell", "score"],
    },
    "train sort --model ptr-net": {"Options for tasks": ["order"], NETWORK: ["cell", "score"]},
    "train cvrp": {
        "Options for tasks": ["n"],
        "Options for cvrp": ["capacity"],
        "Options for learning from costs": ["learning", "samples", "baseline"],
        NETWORK: ["heads"],
    },
    "generate job-shop": {"Options": ["n", "count"], "Options for job-shop": ["machines"]},
    "generate hull": {"Options": ["n", "count"]},
    "solve": {"Options for your own examples": ["set-id", "probability"], "Options": ["model"]},
    "solve tsp": {"Options": ["model", "plot"], "Options for tsp": ["start", "end", "open"]},
    "solve --model tsp": {"Options for tsp": ["start", "end", "open"]},
    "solve my.csv": {"Options for your own examples": ["rank"]},
    "label": {"Options": ["labeller"]},
    "label tsp": {"Options": ["labeller"], "Options for tsp": ["start", "end", "open"]},
}


@pytest.mark.parametrize("words", HELPS)
def test_help_shows_options_of_what_the_user_names(ptrnet, words):
    code, out, _ = ptrnet(*words.split(), "--help")
    sections, expected = options_in(out), HELPS[words]
    for section, options in expected.items():
        assert set(options) <= set(sections[section])
    assert {*sections} - {"Options"} == {*expected} - {"Options"}
    shown = [name for options in sections.values() for name in options]
    assert code == 0 and len(shown) == len(set(shown))
    if "Options for your own examples" in expected:
        assert out.index("Options for your own examples:") < out.index("\nOptions:")


def test_each_option_of_train_is_in_the_help_of_a_task_a_model_or_own_examples(ptrnet):
    """The parameters of the command are the oracle, whatever the help groups."""
    shown = set()
    names = [*tasks.names(), *tasks.problem_names()]
    for words in ([], *([name] for name in names), *(["--model", m] for m in models.names())):
        shown.update(*options_in(ptrnet("train", *words, "--help")[1]).values())
    command = typer.main.get_command(build({"train": cli.command("train")})).commands["train"]
    options = [param.opts[0] for param in command.params if param.param_type_name == "option"]
    assert {f"--{name}" for name in shown} == {*options}


def test_help_says_how_to_see_the_other_options(ptrnet):
    text = " ".join(ptrnet("train", "--help")[1].partition("More options:")[2].split())
    assert text.startswith("ptrnet train TASK --help options for all tasks, and options for cvrp, ")
    assert "ptrnet train --data FILE --help options for the networks of your own examples" in text
    text = ptrnet("train", "hull", "--help")[1].partition("More options:")[2]
    assert text.split()[:3] == ["ptrnet", "train", "--help"]
    text = " ".join(ptrnet("tune", "--help")[1].partition("More options:")[2].split())
    assert text.startswith("ptrnet tune --data FILE --help options for the networks of your own")
    text = ptrnet("label", "--help")[1].partition("More options:")[2]
    assert text.split() == ["ptrnet", "label", "tsp", "--help", "options", "for", "tsp"]


def test_an_option_that_the_help_does_not_show_is_checked(ptrnet):
    code, _, error = ptrnet("train", "hull", "--capacity", "3")
    assert code == 2 and "capacity" in error
    code, _, error = ptrnet("train", "hull", "--set-id", "x")
    assert code == 2 and "set_id" in error


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("", ["one-cycle | constant", " | ".join(models.names()), "hull, delaunay, tsp or sort"]),
        ("tsp", ["given | lexicographic | hilbert", "tsp exact | held-karp"]),
        ("--model ptr-net", ["lstm | gru"]),
    ],
)
def test_train_help_lists_the_values_of_each_choice(ptrnet, words, values):
    text = "".join(ptrnet("train", *words.split(), "--help")[1].split())  # names may be broken
    for each in values:
        assert text.count(each.replace(" ", "")) == 1


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
