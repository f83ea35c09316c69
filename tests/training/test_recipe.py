import json
import math
import tomllib
from pathlib import Path

import pytest
import torch

from ptrnet import models, tasks, weights
from ptrnet.errors import InputError
from ptrnet.settings import to_mapping
from ptrnet.training import optimizers
from ptrnet.training.loop import rate_factor
from ptrnet.training.recipe import OF_MACHINE, RECIPES, Recipe, recipe_options

TASKS = [*tasks.names(), *tasks.problem_names()]


def test_shipped_recipe_files_can_be_read():
    from importlib.resources import files

    folder = files("ptrnet") / "recipes"
    names = {p.name.removesuffix(".toml") for p in folder.iterdir() if p.name.endswith(".toml")}
    assert names == set(weights.names())
    for name in names:
        assert Recipe.read(folder / f"{name}.toml").task.name == weights.summary(name)["task"]


def same(recipe, path, *dropped):
    """Whether a recipe has the values of a file, except those of the machine and `dropped`."""
    table = tomllib.loads((RECIPES / path).read_text())
    expected = {k: v for k, v in table.items() if k not in (*OF_MACHINE, *dropped)}
    return Recipe.from_table(expected) == recipe


@pytest.mark.parametrize("name", [n for n in weights.names() if not n.endswith("ptr-net")])
def test_the_name_of_a_task_gives_the_recipe_of_what_ships(name):
    assert same(Recipe.named(name), f"{name}.toml")
    config = json.loads((weights.folder(name) / "config.json").read_text())
    assert Recipe.named(name).model == config["model"]


def test_the_papers_network_is_trained_by_its_name_and_by_its_model():
    for task in ("hull", "delaunay", "tsp", "sort"):
        by_name, by_model = Recipe.named(f"{task}-ptr-net"), Recipe.named(task, model="ptr-net")
        assert by_name.model == by_model.model == "ptr-net"
        assert by_name.run.weights == ""  # it does not continue a run that nobody else has
        assert by_model == Recipe.from_table({"task": task})
    assert Recipe.named("hull-ptr-net").task.start == "leftmost"


def test_options_keep_or_replace_the_recipe_of_what_ships():
    assert same(Recipe.named("hull", model="transformer-ptr-net"), "hull.toml")
    assert Recipe.named("tsp", steps=101).optimiser.cycles == 1  # the schedule ends after 101 steps
    assert Recipe.named("tsp").optimiser.cycles == 2
    own_samples = Recipe.named("cvrp", learning="self-labelling")
    assert own_samples == Recipe.from_table({"task": "cvrp", "learning": "self-labelling"})
    with pytest.raises(InputError, match="unknown task 'hul'; did you mean 'hull'"):
        Recipe.named("hul")


def test_recipe_files_of_the_examples_can_be_read():
    paths = sorted((Path(__file__).parents[2] / "examples" / "recipes").glob("*.toml"))
    names = {Recipe.read(path).task.name for path in paths}
    assert names == {"tsp"}


def test_a_recipe_is_unchanged_after_write_and_read(tmp_path):
    recipe = Recipe.from_table({"task": "hull", "start": "lower-left", "closed": True, "clip": 3})
    (tmp_path / "r.toml").write_text(recipe.toml())
    assert Recipe.read(tmp_path / "r.toml") == Recipe.from_table(recipe.table())
    assert Recipe.read(tmp_path / "r.toml", steps=5).run.steps == 5


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("steps = 5", '"task" is missing'),
        ('task = "hull"\nstep = 5', "unknown recipe key 'step'; did you mean 'steps'"),
        ('task = "sort"\nstart = "leftmost"', "unknown recipe key 'start'"),
        ('task = "hull"\nsteps = "5"', "steps: expected a whole number of 1 or more, got '5'"),
        ('task = "hull"\nsteps = true', "steps: expected a whole number of 1 or more, got True"),
        ('task = "hull"\nsteps = 0', "steps: expected a whole number of 1 or more, got 0"),
        ('task = "hull"\nlearning_rate = 0', "learning_rate: expected a number above 0, got 0"),
        (
            'task = "hull"\nwarmup = 1.5',
            "warmup: expected .* of 0 or more and below 1, got 1.5",
        ),
        ('task = "hull"\noptimizer = "adam"', "did you mean 'adamw'"),
        ('task = "hull"\nn = "5-"', "n: expected"),
        ('task = "hull"\nclosed = "no"', "task hull: closed: expected true or false, got 'no'"),
        ('task = "hull"\nbatch_size = 1000000000000', "a batch of 1000000000000 instances of 50"),
        (
            'task = "hull"\nseed = 99999999999999999999',
            "seed: expected .* and below 9223372036854775808",
        ),
        ('task = "hull', "not a TOML file"),
        ('task = "hull"\nstart = "left"', "did you mean 'leftmost'"),
    ],
)
def test_invalid_recipes_are_refused(tmp_path, text, complaint):
    (tmp_path / "r.toml").write_text(text)
    with pytest.raises(InputError, match=complaint) as error:
        Recipe.read(tmp_path / "r.toml")
    assert str(error.value).startswith(str(tmp_path / "r.toml")) and "\n" not in str(error.value)


def learning_rates(**fields):
    recipe = Recipe.from_table(task="hull", steps=100, learning_rate=2.0, **fields)
    return [2.0 * rate_factor(recipe, step) for step in range(100)]


def test_one_cycle_rises_in_a_line_and_falls_along_half_a_cosine():
    rates = learning_rates(warmup=0.1)
    assert rates[:10] == pytest.approx([0.2 * k for k in range(1, 11)])
    assert rates[10] == 2.0
    assert rates[55] == pytest.approx(1.0)
    assert rates[99] == pytest.approx(1 + math.cos(math.pi * 89 / 90))


def test_a_trapezoid_is_constant_and_falls_in_a_line_over_its_last_fifth():
    rates = learning_rates(schedule="trapezoid", warmup=0.1)
    assert rates[:10] == pytest.approx([0.2 * k for k in range(1, 11)])
    assert set(rates[10:81]) == {2.0}
    assert rates[80:] == pytest.approx([0.1 * k for k in range(20, 0, -1)])


@pytest.mark.parametrize("schedule", ["one-cycle", "trapezoid", "constant"])
def test_each_cycle_repeats_the_schedule_of_a_shorter_training(schedule):
    rates = learning_rates(schedule=schedule, warmup=0.1, cycles=2)
    recipe = Recipe.from_table(
        task="hull", steps=50, learning_rate=2.0, schedule=schedule, warmup=0.1
    )
    once = [2.0 * rate_factor(recipe, step) for step in range(50)]
    assert rates == pytest.approx(once * 2)


def test_steps_that_cycles_do_not_divide_are_refused():
    with pytest.raises(InputError, match="steps: expected a multiple of cycles 3, got 100"):
        Recipe.from_table(task="hull", steps=100, cycles=3)


def test_the_constant_schedule_keeps_the_rate():
    assert set(learning_rates(optimizer="sgd", schedule="constant", warmup=0.0)) == {2.0}


def test_sgd_subtracts_the_rate_times_the_gradient():
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(layer.weight)
    recipe = Recipe.from_table(task="hull", optimizer="sgd", learning_rate=0.5)
    optimizer = optimizers.optimizer(recipe, layer)
    layer.weight.grad = torch.tensor([[2.0]])
    optimizer.step()
    assert layer.weight.item() == 0.0


def test_any_path_is_unchanged_after_write_and_read(tmp_path):
    recipe = Recipe.from_table(task="hull", valid='odd "name"\\\u00e9.txt')
    (tmp_path / "r.toml").write_text(recipe.toml(), encoding="utf-8")
    assert Recipe.read(tmp_path / "r.toml").data.valid == recipe.data.valid


def test_files_that_are_not_recipes_are_refused(tmp_path):
    (tmp_path / "deep.toml").write_text("a = " + "[" * 100_000)
    for path in (tmp_path, tmp_path / "deep.toml", tmp_path / "deep.toml" / "x"):
        with pytest.raises(InputError):
            Recipe.read(path)


def test_a_labeller_is_needed_only_where_examples_are_fresh():
    many = {"n": "5000", "batch_size": 1}
    with pytest.raises(InputError, match="labeller"):
        Recipe.from_table(task="tsp", labeller="held-karp", **many)
    with pytest.raises(InputError, match="labeller"):
        Recipe.from_table(task="tsp", labeller="held-karp", data="f.txt", **many)
    Recipe.from_table(task="tsp", labeller="held-karp", data="f.txt", valid="v.txt", **many)
    Recipe.from_table(task="tsp", labeller="held-karp", data="f.txt", valid_batches=0, **many)
    with pytest.raises(InputError, match="augment needs data"):
        Recipe.from_table(task="hull", augment=True)


def test_settings_of_the_model_are_keys_of_the_recipe(tmp_path):
    table = {"task": "tsp", "model": "remaining-ptr-net", "nearest": 5, "see_distances": True}
    recipe = Recipe.from_table({**table, "encoder_layers": 2, "hidden_size": 8, "cuts": 1})
    (tmp_path / "r.toml").write_text(recipe.toml())
    again = Recipe.read(tmp_path / "r.toml")
    assert again.table() == recipe.table()
    assert to_mapping(again.network) == {
        "hidden_size": 8,
        "ensemble": 1,
        "heads": 4,
        "encoder_layers": 2,
        "feed_forward": 512,
        "octaves": 0,
        "nearest": 5,
        "repeats": False,
        "align": False,
        "see_distances": True,
    }


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ({"nearest": 3}, "unknown setting of model ptr-net 'nearest'"),
        ({"model": "remaining-ptr-net", "nearst": 3}, "did you mean 'nearest'"),
        ({"cell": "lsmt"}, "did you mean 'lstm'"),
        ({"layers": 0}, "model ptr-net: layers: expected a whole number from 1 to 64, got 0"),
    ],
)
def test_settings_that_the_model_lacks_are_refused(table, complaint):
    with pytest.raises(InputError, match=complaint):
        Recipe.from_table({"task": "hull", **table})


TRANSFORMER = {"model": "transformer-ptr-net", "hidden_size": 8}


@pytest.mark.parametrize(
    "table", [{"task": "tsp"}, {"task": "delaunay"}, {"task": "hull", "start": "lowest-index"}]
)
def test_answers_of_indices_need_a_model_that_sees_them(table):
    remedies = {"see_indices": True}, {"order": "lexicographic"}
    with pytest.raises(InputError, match=r"see them \(see_indices\), or .* \(order lexic") as error:
        Recipe.from_table({**table, **TRANSFORMER})
    assert "\n" not in str(error.value)
    for remedy in remedies:
        assert Recipe.from_table({**table, **TRANSFORMER, **remedy}).model == TRANSFORMER["model"]
    assert Recipe.from_table(table).model == "ptr-net"


def test_answers_of_elements_need_no_indices():
    for table in ({"task": "hull"}, {"task": "sort"}, {"task": "hull", "start": "lower-left"}):
        assert Recipe.from_table({**table, **TRANSFORMER}).network.hidden_size == 8


@pytest.mark.parametrize("name", ["delaunay", "tsp"])
@pytest.mark.parametrize("model", ["transformer-ptr-net", "remaining-ptr-net"])
def test_each_remedy_for_answers_that_depend_on_indices_works(name, model):
    with pytest.raises(InputError, match="depend on indices") as refused:
        Recipe.from_table({"task": name, "model": model})
    ways = {
        "see_indices": {"see_indices": True},
        "order lexicographic": {"order": "lexicographic"},
        "sequence apexes": {"sequence": "apexes"},
        "(cuts)": {"cuts": 4},
    }
    named = [settings for words, settings in ways.items() if words in str(refused.value)]
    assert len(named) >= 2
    for settings in named:
        Recipe.from_table({"task": name, "model": model, **settings})


def test_every_key_of_a_recipe_is_an_option():
    known = set(recipe_options(TASKS))
    for task in tasks.names():
        for model in models.names():
            table = Recipe.from_table(task=task, model=model, n="5", cuts=0, order="lexicographic")
            assert {*table.table()} - {"task"} <= known, (task, model)
    assert {"kind", "constraint", "fields", "unknown", "missing"} <= known


def test_the_values_of_an_option_are_in_its_help():
    options = recipe_options(TASKS)
    assert options["cell"].help.endswith(": lstm | gru")
    assert options["model"].help.endswith(" | ".join([*models.names(), *models.AT_ONCE]))


def test_options_have_the_owners_that_the_help_groups_them_by():
    owners = {name: option.owners for name, option in recipe_options(TASKS).items()}
    assert owners["start"] == ("hull",) and owners["capacity"] == ("cvrp",)
    assert owners["n"] == owners["points"] == ("tasks",)
    assert owners["set_id"] == owners["kind"] == ("your own examples",)
    assert owners["samples"] == ("learning from costs",) and owners["cell"] == ("the network",)
    assert owners["steps"] == owners["hidden_size"] == ()


def test_a_recipe_converts_texts_to_objects():
    recipe = Recipe.from_table(task="hull", n="5-8", start="lower-left", hidden_size=8)
    assert recipe.task == tasks.get("hull", start="lower-left")
    assert recipe.data.n == (5, 6, 7, 8) and recipe.table()["n"] == "5-8"
    assert recipe.network == models.settings_of("ptr-net", hidden_size=8)
