"""Learning curves, read from the logs of a run and of its resumed parts."""

import numpy as np
import pytest

from ptrnet.cli import run as ptrnet
from ptrnet.errors import InputError
from ptrnet.plots.curves import read_curves

HEAD = "accuracy,epoch,examples_per_second,loss,step,valid_accuracy,valid_loss\n"


def write_logs(run, *parts):
    for number, lines in enumerate(parts):
        folder = run / "logs" / "csv" / f"version_{number}"
        folder.mkdir(parents=True)
        (folder / "metrics.csv").write_text(HEAD + "".join(f"{line}\n" for line in lines))


def test_a_resumed_part_replaces_later_steps_of_the_part_before(tmp_path):
    """The second part resumed at step 100, so the first part's later steps do not count."""
    first = ["0.1,0,200,3.0,49,,", "0.2,0,100,2.0,99,,", "0.9,0,100,9.0,149,,"]
    second = ["0.3,0,400,1.5,149,,", ",0,,,149,0.35,1.4", "0.4,0,50,1.0,199,,"]
    write_logs(tmp_path / "run", first, second)
    curves = read_curves(tmp_path / "run", batch_size=10)
    assert curves.steps.tolist() == [50, 100, 150, 200]
    assert curves.examples.tolist() == [500, 1000, 1500, 2000]
    assert curves.values["loss"].tolist() == [3.0, 2.0, 1.5, 1.0]
    np.testing.assert_equal(curves.values["valid_accuracy"], [np.nan, np.nan, 0.35, np.nan])
    seconds = np.cumsum([50 * 10 / rate for rate in (200, 100, 400, 50)])
    np.testing.assert_allclose(curves.seconds, seconds)


def test_more_than_ten_parts_are_read_in_order(tmp_path):
    write_logs(tmp_path / "run", *([f"0.1,0,1,{k},{k},,"] for k in range(12)))
    assert read_curves(tmp_path / "run", 1).values["loss"].tolist() == list(range(12))


@pytest.mark.parametrize("line", ["0.1,0,200,x,49,,", "0.1,0,200,3.0,,,"])
def test_a_damaged_line_is_named(tmp_path, line):
    write_logs(tmp_path / "run", ["0.1,0,200,3.0,49,,", line])
    with pytest.raises(InputError, match=r"metrics\.csv:3: expected a step, and numbers for it"):
        read_curves(tmp_path / "run", 10)


def test_a_run_without_logs_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no logs of a training"):
        read_curves(tmp_path, 10)


@pytest.mark.parametrize("x", ["steps", "examples", "minutes"])
def test_the_command_draws_curves(tmp_path, x, capsys):
    pytest.importorskip("matplotlib")
    for name in ("a", "b"):
        write_logs(tmp_path / name, ["0.1,0,200,3.0,49,,", "0.2,0,100,2.0,99,,", ",0,,,99,0.3,1.9"])
        (tmp_path / name / "recipe.toml").write_text('task = "hull"\n')
    picture = tmp_path / "curves.svg"
    runs = [str(tmp_path / name) for name in ("a", "b")]
    assert ptrnet(["plot", *runs, "--output", str(picture), "--x", x]) == 0
    text = picture.read_text()
    assert capsys.readouterr().out == f"{picture}\n"
    assert all(f">{word}<" in text for word in (x, "loss", "accuracy", "a", "b"))


def test_the_command_refuses_runs_and_files_that_it_cannot_draw(tmp_path, capsys):
    (tmp_path / "a").mkdir()
    assert ptrnet(["plot", str(tmp_path / "a"), "--x", "epochs"]) == 2
    assert "unknown --x 'epochs'" in capsys.readouterr().err
    assert ptrnet(["plot", str(tmp_path / "a.csv")]) == 2
    assert "a.csv: expected the folder of a training; --plot of" in capsys.readouterr().err
    assert ptrnet(["plot", str(tmp_path / "a"), "--output", "curves.pdf"]) == 2
    assert ".png or .svg" in capsys.readouterr().err
    assert ptrnet(["plot", str(tmp_path / "a"), "--output", str(tmp_path / "x.png")]) == 2
    assert "recipe.toml: no such recipe" in capsys.readouterr().err
    assert not (tmp_path / "x.png").exists()


@pytest.mark.parametrize("cut", ["0.4,0,200,9.0", "0.4,0,200,9.0,1"])
def test_an_incomplete_last_line_is_ignored(tmp_path, cut):
    """A run that is still writing, or was killed, may leave `1` of `199`."""
    write_logs(tmp_path / "run", ["0.1,0,200,3.0,49,,", "0.2,0,200,2.0,99,,"])
    with (tmp_path / "run" / "logs" / "csv" / "version_0" / "metrics.csv").open("a") as stream:
        stream.write(cut)
    assert read_curves(tmp_path / "run", 10).steps.tolist() == [50, 100]


def test_negative_costs_are_drawn(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    write_logs(tmp_path / "a", ["-0.1,0,200,3.0,49,,", "-0.2,0,100,2.0,99,,"])
    log = tmp_path / "a" / "logs" / "csv" / "version_0" / "metrics.csv"
    log.write_text(log.read_text().replace("accuracy", "cost"))
    (tmp_path / "a" / "recipe.toml").write_text('task = "knapsack"\n')
    picture = str(tmp_path / "curves.png")
    assert ptrnet(["plot", str(tmp_path / "a"), "--output", picture]) == 0  # warnings are errors
