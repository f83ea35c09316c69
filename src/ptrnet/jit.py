"""The decorators of compiled functions, and the cache of what they compiled.

The cache is numba's, with a checksum at the end of each of its files, and no work fails for it:
what is damaged is compiled anew, and what cannot be kept is compiled again in the next process.
"""

import contextlib
import fcntl
import hashlib
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any, BinaryIO

import llvmlite.binding as llvm
import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import _nrt_python

MAX_WAIT = 60.0  # seconds for what another process compiles
_POLL = 0.02
_DIGEST = hashlib.sha256().digest_size
_said: set[str] = set()


class _CheckedFiles(IndexDataCacheFile):
    """The files of one function: an index, and machine code for each of its signatures.

    numba reads no further than what it wrote, so that a checksum can follow it.
    """

    def save(self, key: Any, data: Any) -> None:
        """Writes the machine code first, under a name that is of its source and signature alone.

        numba numbers the files and writes the index first: where the rest failed, the index named
        the code of an older source, or of another signature.
        """
        facts = self._dump((self._version, self._source_stamp, key))
        name = f"{self._index_name}.{hashlib.sha256(facts).hexdigest()[:16]}.nbc"
        overloads = self._load_index()
        self._save_data(name, data)
        overloads[key] = name
        self._save_index(overloads)

    @contextlib.contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[BinaryIO]:
        content = io.BytesIO()
        yield content
        with super()._open_for_write(filepath) as stream:
            stream.write(content.getbuffer())
            stream.write(hashlib.sha256(content.getbuffer()).digest())

    def _load_index(self) -> Any:
        return super()._load_index() if _is_whole(self._index_path) else {}

    def _load_data(self, name: str) -> Any:
        path = self._data_path(name)
        if not _is_whole(path):
            raise FileNotFoundError(path)  # which numba takes as not compiled yet
        return super()._load_data(name)


class _CheckedCache(FunctionCache):
    """What a function was compiled to, kept where numba keeps it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._lock_file: BinaryIO | None = None
        self._cache_file = _CheckedFiles(
            cache_path=self._cache_path,
            # Another name than numba's own files have, in which there is no checksum.
            filename_base=f"{self._impl.filename_base}.kept",
            source_stamp=self._impl.locator.get_source_stamp(),
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """As numba does, but without loading its compiler, which takes 0.3 s and 50 MB.

        Where it has to compile, it loads that then. What was compiled needs no more of it than the
        addresses of the functions that manage memory. Of processes that miss the same function at
        the same time one compiles it, and the others wait for it: `release` ends that.
        """
        for name, address in _nrt_python.c_helpers.items():
            llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)
        loaded = self._loaded(sig, target_context)
        if loaded is None:
            self._lock()
            loaded = self._loaded(sig, target_context)
        if loaded is None and sys.stderr is not None and sys.stderr.isatty():
            _say("ptrnet", "compiles for this processor, which takes some seconds once")
        return loaded

    def _loaded(self, sig: Any, target_context: Any) -> Any:
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def _lock(self) -> None:
        """Waits until no other process compiles the function; MAX_WAIT seconds at most."""
        if self._lock_file is not None:  # this process has it, for another signature
            return
        deadline = time.monotonic() + MAX_WAIT
        with contextlib.suppress(OSError):  # no folder yet, or a file system without locks
            self._impl.locator.ensure_cache_path()
            path = Path(f"{self._cache_file._index_path}.lock")
            self._lock_file = path.open("ab")
            while time.monotonic() < deadline:
                try:
                    fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    time.sleep(_POLL)
                else:
                    return

    def release(self) -> None:
        """Lets other processes compile the function, or load it."""
        if self._lock_file is not None:
            with contextlib.suppress(OSError):
                # Closing would not do: a forked process may have it open, too.
                fcntl.flock(self._lock_file, fcntl.LOCK_UN)
            self._lock_file.close()
            self._lock_file = None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:  # a full disk, or a folder that has become another user's
            _say(self._cache_path, "compiled code is not kept: ", error.strerror or str(error))


def interruptible(compile: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, out of which an interrupt always comes as KeyboardInterrupt, and alone.

    One that comes while llvmlite makes or frees an object comes out as an AttributeError of that
    object; or Python prints it, ignores it, and goes on.
    """

    @wraps(compile)
    def compile_interruptible(*args: Any) -> Any:
        former, former_hook = signal.getsignal(signal.SIGINT), sys.unraisablehook
        if not callable(former) or threading.current_thread() is not threading.main_thread():
            return compile(*args)
        interrupts: list[int] = []

        def note(number: int, frame: Any) -> None:
            try:
                former(number, frame)
            except BaseException:  # not of a program that only notes interrupts itself
                interrupts.append(number)
                raise

        def print_unless_interrupted(unraisable: Any) -> None:
            if not interrupts:
                former_hook(unraisable)

        signal.signal(signal.SIGINT, note)
        sys.unraisablehook = print_unless_interrupted
        try:
            result = compile(*args)
        except Exception:
            if interrupts:
                raise KeyboardInterrupt from None
            raise
        finally:
            signal.signal(signal.SIGINT, former)
            sys.unraisablehook = former_hook
        if interrupts:
            raise KeyboardInterrupt
        return result

    return compile_interruptible


def _releasing(compile: Callable[..., Any], cache: _CheckedCache) -> Callable[..., Any]:
    """The same function, after which the cache's lock is released, also where it fails.

    Threads take their turns until then: each would release the lock of the one after it.
    """

    @wraps(compile)
    def compile_and_release(*args: Any) -> Any:
        with global_compiler_lock:
            try:
                return compile(*args)
            finally:
                cache.release()

    return compile_and_release


def cached(decorator: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of numba's whose compiled functions are kept on the disk.

    Where no folder can be written they are not, and nothing is said.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        compiled = decorator(function)
        if hasattr(compiled, "enable_caching"):  # not where NUMBA_DISABLE_JIT leaves functions
            compile = interruptible(compiled.compile)
            with contextlib.suppress(OSError, RuntimeError):  # no folder for it
                compiled._cache = _CheckedCache(function)
                compile = _releasing(compile, compiled._cache)
            compiled.compile = compile
        return compiled

    return decorate


def _is_whole(path: str) -> bool:
    """Whether a file is there as it was written. Says so where it is there and is not."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        return False
    except OSError as error:
        _say(path, "compiled anew, as it cannot be read: ", str(error.strerror))
        return False
    if hashlib.sha256(content[:-_DIGEST]).digest() == content[-_DIGEST:]:
        return True
    _say(path, "damaged; compiled anew")
    return False


def _say(path: str, event: str, reason: str = "") -> None:
    """Prints a line of the first event of a kind in this process; it seldom comes alone."""
    if event not in _said:
        _said.add(event)
        print(f"{path}: {event}{reason}", file=sys.stderr)


# A process that is forked while a thread compiles would find numba's lock taken for ever.
_forking = threading.local()


def _before_fork() -> None:
    _forking.has_lock = False
    global_compiler_lock.acquire()  # Python goes on with the fork if Ctrl-C ends the waiting
    _forking.has_lock = True


def _after_fork_in_parent() -> None:
    if _forking.has_lock:
        global_compiler_lock.release()


def _after_fork_in_child() -> None:
    if _forking.has_lock:
        global_compiler_lock.release()
    else:
        global_compiler_lock._lock = threading.RLock()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)

# nogil: training goes on while another thread labels.
jit = cached(numba.njit(nogil=True))


@jit
def assign(target: Any, source: Any) -> None:
    """Writes `(n,)` numbers over as many others, in compiled functions.

    `target[:] = source`, or `rows[k] = source`, would do, but with it numba compiles a complaint
    about shapes, which takes two seconds of every function's first call on a machine.
    """
    for k in range(len(source)):
        target[k] = source[k]
