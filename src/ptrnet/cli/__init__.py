"""The command line: one file a verb, each parses, calls and prints."""

import sys
from io import TextIOWrapper
from typing import Any


def main() -> None:
    """The program `ptrnet`: exit 0 done, 2 the user's to mend, 1 a defect of ours, 130 stopped."""
    from ptrnet import runtime

    runtime.tune()
    for stream in (sys.stdin, sys.stdout, sys.stderr):  # UTF-8, whatever the locale says
        if isinstance(stream, TextIOWrapper):  # None where it was closed
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs one command; the exit code. A defect of ours is raised."""
    import typer

    from ptrnet.cli.app import app
    from ptrnet.errors import PtrnetError

    # The base of typer's complaints: click's, or typer's own copy of it, by version.
    usage: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
    command = typer.main.get_command(app)
    arguments = arguments or ["--help"]
    try:
        return command.main(arguments, prog_name="ptrnet", standalone_mode=False) or 0
    except PtrnetError as error:
        return _say(str(error))
    except usage as error:
        return _say(error.format_message())
    except (KeyboardInterrupt, typer.Abort):
        return 130


def _say(message: str) -> int:
    line = " ".join(message.split())
    print(f"ptrnet: {line}", file=sys.stderr)
    return 2
