"""The command line: one file a verb, each parses, calls and prints."""

import contextlib
import sys
from io import StringIO, TextIOWrapper
from typing import Any


def main() -> None:
    """The program `ptrnet`. Exit codes: 0 done, 1 a bug, 2 a user's error, 130 interrupted."""
    from ptrnet import runtime

    runtime.tune()
    for stream in (sys.stdin, sys.stdout, sys.stderr):  # UTF-8, whatever the locale says
        if isinstance(stream, TextIOWrapper):  # None where it was closed
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs one command and returns its exit code. What is a bug is raised."""
    from ptrnet.errors import PtrnetError
    from ptrnet.files import to_standard_output

    if arguments and not {"--help", "--version"} & set(arguments):
        return _run(arguments)
    # typer prints these itself, and what it does where that cannot be is a traceback.
    with contextlib.redirect_stdout(StringIO()) as printed:
        code = _run(arguments or ["--help"])
    try:
        to_standard_output([printed.getvalue()])
    except PtrnetError as error:
        return _print_error(str(error))
    return code


def _run(arguments: list[str]) -> int:
    import typer

    from ptrnet.cli.app import app
    from ptrnet.errors import PtrnetError

    # The base class of typer's errors: click's or, by version, typer's copy of it.
    usage_error: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
    command = typer.main.get_command(app)
    try:
        return command.main(arguments, prog_name="ptrnet", standalone_mode=False) or 0
    except PtrnetError as error:
        return _print_error(str(error))
    except usage_error as error:
        return _print_error(error.format_message())
    except (KeyboardInterrupt, typer.Abort):
        return 130


def _print_error(message: str) -> int:
    """Prints the message as one line; the exit code of user errors."""
    line = " ".join(message.split())
    print(f"ptrnet: {line}", file=sys.stderr)
    return 2
