"""An interrupt while code is compiled: one KeyboardInterrupt, and nothing else."""

import signal

import pytest

from ptrnet.jit import interruptible, jit


def interrupted_in_llvmlite(_):
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise AttributeError("'ObjectRef' object has no attribute '_ptr'") from None


def interrupted_where_python_ignores_it(_):
    class Freed:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    Freed()


@pytest.mark.parametrize(
    "compile", [interrupted_in_llvmlite, interrupted_where_python_ignores_it, signal.raise_signal]
)
def test_an_interrupt_while_code_is_compiled_is_one(compile, capsys):
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt) as interrupt:
        interruptible(compile)(signal.SIGINT)
    assert interrupt.value.__suppress_context__ or interrupt.value.__context__ is None
    assert capsys.readouterr().err == ""
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_program_may_note_interrupts_itself():
    noted = []
    former = signal.signal(signal.SIGINT, lambda number, frame: noted.append(number))
    try:
        interruptible(signal.raise_signal)(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, former)
    assert noted == [signal.SIGINT]


def test_other_errors_of_a_compiler_stay():
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda _: 1 / 0)(None)
    assert interruptible(len)("ab") == 2


def test_compiled_functions_are_interruptible():
    compiled = jit(lambda x: x + 1)
    assert compiled.compile.__wrapped__ and compiled(1) == 2
