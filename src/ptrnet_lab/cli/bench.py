"""`ptrnet bench`: measure the speed of ptrnet on this machine."""

from typing import TYPE_CHECKING, Annotated

import typer

from ptrnet.cli.options import Json, Seed, echo

if TYPE_CHECKING:
    from ptrnet_lab.bench.harness import Row


def bench(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[WHAT]", help="score, train, solve, label, data or export; all if none."
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help="hull, delaunay, tsp or sort.  [hull; remaining-ptr-net: tsp; label, export: all]"
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="With train: an architecture.  [ptr-net, transformer-ptr-net and "
            "remaining-ptr-net]"
        ),
    ] = None,
    n: Annotated[
        int | None,
        typer.Option(
            help="Elements of an instance.  [50; export: largest trained size; solve: largest "
            "trained size and 10 times it]"
        ),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Instances in a batch.  [128; export: 1]")
    ] = None,
    hidden_size: Annotated[
        int | None,
        typer.Option(
            help="Hidden units; not for solve.  [256; score and ptr-net: 256 and 512; data: 128]"
        ),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(help="With train and data: auto, bfloat16, tf32 or float32.  [auto]"),
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.  [cpu]")] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Runs for each median.  [5 to 40]")
    ] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Measure speed on this machine, and compare it with the machine's roofline.

    WHAT is one of these:

    - score: the kernel of additive scores, compared with its plain reference.

    - train: a whole training step of each model, and of a Ptr-Net in plain PyTorch.
    remaining-ptr-net trains on tours that are cut at random, and learns only the tokens after the
    cut. The algorithm a1 labels tours, because exact tours take too long.

    - solve: decoding with the shipped Ptr-Net.

    - label: labels per second.

    - data: reading a file, and how long a training step waits for examples.

    - export: answers of the shipped models in onnxruntime and in PyTorch.

    A time is the median of several runs, with its quartiles. If two implementations are compared,
    they run in turn, so that other work on the machine slows both equally.

    The roofline is the least time that the machine could take. We count only one part of the work:
    the matrix products (train, solve), the divisions (score), or the bytes to read (data). The
    roofline is this count, divided by a rate that is measured in the same run.

    Memory is the peak of a process that runs only this work, including libraries. Run the command
    on an idle machine, because other work changes the numbers. The command also prints the load
    before the run.

    Examples:
        ptrnet bench train --model transformer-ptr-net
    """
    from json import dumps

    from ptrnet.training.hardware import device_of
    from ptrnet_lab import bench
    from ptrnet_lab.bench.harness import describe, format_table, machine, versions

    options = {
        "task": task,
        "model": model,
        "n": n,
        "batch_size": batch_size,
        "hidden_size": hidden_size,
        "precision": precision,
        "device": device,
        "repeats": repeats,
        "seed": seed,
    }
    planned = bench.plan(what, {key: value for key, value in options.items() if value is not None})
    facts, numbers = machine(device_of(device or "cpu")), versions()
    if not json:
        echo(describe(facts, numbers))
    all_rows: list[Row] = []
    for name, measured in planned.items():
        rows = list(measured)
        all_rows += rows
        if not json:
            echo(f"\n{name}: {format_table(rows)}")
    if json:
        document = {"machine": facts, "versions": numbers, "seed": seed}
        steps = [row.time.median for row in all_rows if row.measurement == "train"]
        document |= {"step_ms": steps[0]} if steps else {}
        echo(dumps({**document, "rows": [row.to_dict() for row in all_rows]}))
