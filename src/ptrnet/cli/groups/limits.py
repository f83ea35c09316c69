"""The options of `serve` that say how much it takes on."""

from dataclasses import dataclass, fields
from typing import Annotated

import typer

from ptrnet.serve.limits import Limits


@dataclass(frozen=True)
class LimitOptions:
    """The limits of a service, each above 0."""

    queue: Annotated[
        int, typer.Option("--queue", help="Requests that are answered or wait; more get 429.")
    ] = Limits.queue
    max_body: Annotated[int, typer.Option("--max-body", help="Bytes of a request.")] = (
        Limits.max_body
    )
    max_n: Annotated[int, typer.Option("--max-n", help="Elements of an instance.")] = Limits.max_n
    max_elements: Annotated[
        int, typer.Option("--max-elements", help="Of a request, over its instances.")
    ] = Limits.max_elements
    max_prefix_elements: Annotated[
        int,
        typer.Option(
            "--max-prefix-elements",
            help="The same, of an instance at least 8, times beam size or samples, times views.",
        ),
    ] = Limits.max_prefix_elements
    max_trace: Annotated[
        int, typer.Option("--max-trace", help="Probabilities of a trace: steps, prefixes, tokens.")
    ] = Limits.max_trace
    body_seconds: Annotated[
        float, typer.Option("--body-seconds", help="For a request to arrive.")
    ] = Limits.body_seconds
    answer_seconds: Annotated[
        float, typer.Option("--answer-seconds", help="From then on, for its answer.")
    ] = Limits.answer_seconds

    def build(self) -> Limits:
        """The limits. Raises InputError for one that is not above 0."""
        return Limits(**{field.name: getattr(self, field.name) for field in fields(Limits)})
