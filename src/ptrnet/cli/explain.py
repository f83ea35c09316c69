"""`ptrnet explain`: measure which fields a model of your own examples needs."""

from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from ptrnet.cli.options import Json, Seed, echo, expand_option_groups
from ptrnet.data.columns import WeightedColumns


@expand_option_groups
def explain(
    *,
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="A model's folder or a hub id.", show_default=False),
    ],
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Examples with answers.", show_default=False)
    ],
    columns: WeightedColumns,
    repeats: Annotated[int, typer.Option(min=1, help="How often to shuffle each field.")] = 5,
    plot: Annotated[
        Path | None, typer.Option(help="Draw a bar for each field: FILE.png or FILE.svg.")
    ] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Measure which fields a model of your own examples needs.

    The command shuffles the values of one field at a time among all elements of FILE. A field of
    the whole instance is shuffled among instances. The table says how much the model's metric falls
    if a field is shuffled, with a 95% interval. The metric depends on the kind of the answers. For
    example, it is NDCG@10 for grades, accuracy for choices and F1 for sets. If two fields hold the
    same information, the metric may hardly fall if only one of the two is shuffled.

    Examples:
        ptrnet explain my-offers test.jsonl --plot fields.png
        ptrnet explain my-offers test.csv --set-id order --chosen bought
    """
    from ptrnet.cli.options import load_solver
    from ptrnet.data import formats
    from ptrnet.data.dataset import examples_of
    from ptrnet.data.groups import warned_of_ids
    from ptrnet.plots.figure import axes, check_picture
    from ptrnet.plots.importance import bars_height, draw_importance
    from ptrnet.solver.explain import importance_of
    from ptrnet.solver.predict import predictor_of
    from ptrnet.tasks.custom import own_task

    if plot is not None:
        check_picture(plot)
    solver = load_solver(None, model)
    task = own_task(solver.task)
    data, _ = examples_of(list(warned_of_ids(formats.read(file, task, columns))), task)
    solver.trained_range.warn_of(data)
    predictor = predictor_of(solver.model, task)
    importance = importance_of(predictor, data, repeats, seed, activity="explaining")
    if plot is not None:
        with axes(plot, 6.0, bars_height(len(importance.losses))) as ax:
            draw_importance(ax, importance.losses, importance.metric)
    if json:
        echo(dumps({"model": model, "instances": len(data), **importance.to_dict()}))
        return
    value = importance.complete.text(4)
    lines = [f"{len(data)} instances, model {model}: {importance.metric} {value}"]
    rows = [(field, *m.value_and_interval(4)) for field, m in importance.losses.items()]
    width = max(len("field"), *(len(field) for field, *_ in rows))
    lines.append(f"{'field':<{width}}{'loss':>10}")
    for field, loss, interval in rows:
        lines.append(f"{field:<{width}}{loss:>10}" + f"  95%: {interval}" * bool(interval))
    echo("\n".join(lines))
