"""The command line. Each command has a file, which parses, calls the library, and prints.

Plug-ins register further commands. This module must not import typer, because plug-ins import it.
"""

import errno
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from functools import partial
from io import TextIOWrapper
from types import ModuleType
from typing import Any

from ptrnet.errors import InputError
from ptrnet.plugins import Registry

# The commands of ptrnet, in the order of the help.
VERBS = (
    "solve",
    "evaluate",
    "explain",
    "simulate",
    "train",
    "tune",
    "generate",
    "label",
    "convert",
    "check",
    "models",
    "push",
    "export",
    "serve",
    "plot",
)
_registry = Registry("command", __name__, ("app", "options"))

# Error codes of a full, broken or read-only disk. Code that writes files may raise such errors.
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}


def names() -> list[str]:
    """Return the names of all commands, in the order of the help: first those of ptrnet."""
    return [*VERBS, *(name for name in _registry.names() if name not in VERBS)]


def register(name: str, module: ModuleType | str) -> None:
    """Add a command to the program.

    Args:
        name: the word after `ptrnet`.
        module: a module with a function of this name, for `typer.Typer.command`, or with a
            `typer.Typer` of this name. A hyphen becomes an underscore. Or the name of such a
            module, which is then imported only for the command itself and for the list of commands.

    Raises:
        InputError: the name is taken.

    Examples:
        >>> cli.register("inspect", "mine.inspect")
    """
    _registry.register(name, module)


def command(name: str, arguments: Sequence[str] = ()) -> Any:
    """Return a command: a function, or a `typer.Typer` if it has subcommands.

    If its module has a function `prepare`, we call it first with the arguments of the command.
    """
    module, member = _registry.get(name), name.replace("-", "_")
    if hasattr(module, "prepare"):
        module.prepare(arguments)
    if not hasattr(module, member):
        raise InputError(f"register command {name}: expected {module.__name__} to have {member}")
    return getattr(module, member)


def main() -> None:
    """Run the program `ptrnet`.

    Exit codes: 0 done, 1 a bug or a training that diverged, 2 another error (such as invalid input
    or a full disk), 130 interrupted.
    """
    from ptrnet import runtime

    runtime.tune()
    if sys.stderr is None:  # closed, so `print` would use standard output instead
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123  open until exit
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a closed stream is None
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code. Exceptions that are bugs are raised."""
    import typer

    from ptrnet.errors import AmbiguousInputWarning, OutOfDistributionWarning, PtrnetError

    # The base class of typer's errors. Some versions of typer use click's class, other versions
    # have a copy of that class.
    usage_error: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
    try:
        # Plug-ins come first, because settings of tasks and models become options.
        arguments = _with_plugins(arguments) or ["--help"]
        from ptrnet.cli.app import build

        # Import only the command's own module. Help and unknown commands need all modules.
        verbs = arguments[:1] if arguments[0] in _registry else names()
        program = typer.main.get_command(
            build({verb: command(verb, arguments[1:]) for verb in verbs})
        )
        with warnings.catch_warnings():
            # Not "default": Python forgets what it has shown whenever a filter changes.
            for category in (OutOfDistributionWarning, AmbiguousInputWarning):
                warnings.simplefilter("always", category)
            warnings.showwarning = partial(_print_warning, set(), warnings.showwarning)
            return program.main(arguments, prog_name="ptrnet", standalone_mode=False) or 0
    except PtrnetError as error:
        return _print_error(str(error), error.exit_code)
    except usage_error as error:
        return _print_error(_usage_message(error), 2)
    except OSError as error:
        if error.errno not in _DISK:
            raise
        # In errors of TensorBoard, the file's name is bytes.
        name = os.fsdecode(error.filename) if error.filename else "a file"
        return _print_error(f"{name}: {error.strerror}", 2)
    except (KeyboardInterrupt, typer.Abort) as error:
        # typer also turns EOFError into Abort. numba raises it for an empty file of its cache.
        if isinstance(error.__context__, EOFError) and _is_of_cache(error):
            return _print_error(_damaged_cache(), 2)
        return 130
    except Exception as error:
        if _is_of_cache(error):
            return _print_error(_damaged_cache(), 2)
        raise


def _is_of_cache(error: BaseException) -> bool:
    """Whether numba could not load compiled code from its cache, here or in another process."""
    return "numba/core/caching.py" in "".join(traceback.format_exception(error))


def _damaged_cache() -> str:
    folder = os.environ.get("NUMBA_CACHE_DIR", "__pycache__")
    return f"the cache of compiled code is damaged; remove the folder {folder}"


def _usage_message(error: Any) -> str:
    """Return typer's message. If the option exists under another name in ptrnet, suggest this name.

    For example, other libraries call the learning rate `--lr`. The message for `train --lr`
    suggests `--learning-rate`.
    """
    option = getattr(error, "option_name", "").lstrip("-")
    if option and getattr(error.ctx, "info_name", "") in ("train", "tune"):
        from ptrnet.training.recipe import ELSEWHERE

        if meant := ELSEWHERE.get(option.replace("-", "_")):
            name, _, rest = meant[1:].partition("'")
            return f"no such option: --{option}; did you mean --{name.replace('_', '-')}{rest}?"
    return str(error.format_message())


def _with_plugins(arguments: list[str]) -> list[str]:
    """Register the files of `--plugins FILE` as plug-ins, and return the other arguments.

    TASK may also be a file that defines a problem (`ptrnet train my_problem.py`). Such a file
    becomes a plug-in, too. In the returned arguments, the problem's name replaces the file's name.

    Raises:
        InputError: the option has no file, or a file instead of TASK does not define a problem.
    """
    from ptrnet import plugins

    rest, words = [], iter(arguments)
    for word in words:
        name, equals, path = word.partition("=")
        if name != "--plugins" and word.endswith(".py") and not word.startswith("-"):
            from ptrnet import problems

            word = problems.register_file(word)
        if name != "--plugins":
            rest.append(word)
            continue
        path = path if equals else next(words, "")
        if not path:
            raise InputError("--plugins: expected a Python file")
        plugins.add(path)
    return rest


def _print_warning(
    printed: set[str], otherwise: Any, message: Any, category: type, *place: Any
) -> None:
    """Print a warning of ptrnet as one line, once. Pass all other warnings to `otherwise`."""
    from ptrnet.errors import AmbiguousInputWarning, OutOfDistributionWarning

    if issubclass(category, OutOfDistributionWarning | AmbiguousInputWarning):
        if str(message) not in printed:
            printed.add(str(message))
            print(f"ptrnet: {message}", file=sys.stderr)
    else:
        otherwise(message, category, *place)


def _print_error(message: str, exit_code: int) -> int:
    """Print the message as one line, and return the exit code."""
    line = " ".join(message.split())
    print(f"ptrnet: {line}", file=sys.stderr)
    return exit_code
