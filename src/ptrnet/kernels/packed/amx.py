"""Products of bfloat16 by the matrix tiles of Intel's processors (AMX), compiled.

The processor has eight tiles of 16 rows of 64 bytes. One instruction (TDPBF16PS) adds to a tile of
16 by 16 float32 the product of a tile of `a`, 16 rows of 32 numbers, and one of `b`, in which 16
columns of 32 numbers lie pair by pair. Four tiles hold sums, of 32 rows by 32 columns:

                          columns 0..15   16..31
                            ┌──────────┬──────────┐
    one step of b:          │  tile 6  │  tile 7  │   16 pairs of rows each
                            └──────────┴──────────┘
    rows  0..15   ┌────────┐┌──────────┬──────────┐
    of a          │ tile 4 ││  tile 0  │  tile 1  │   sums
                  ├────────┤├──────────┼──────────┤
    rows 16..31   │ tile 5 ││  tile 2  │  tile 3  │   sums
                  └────────┘└──────────┴──────────┘
              32 numbers a step

so that each tile that is loaded is used twice. Rows that are left over, fewer than 32, go through
the upper half, the last of them with tiles of so few rows.

Packing lays b out tile after tile in the order in which they are read: PyTorch, which does so in
every call, takes 1.7 to 2.8 times as long for a recurrent step (`benchmarks/log.md`). Sums stay
in float32. As in `avx512.py`, all of it is one file, and written in LLVM's own terms.
"""

import ctypes
import platform
import sys
from functools import cache

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic

from ptrnet.kernels.numerics import reassociating_inline, reassociating_jit

TILE_ROWS = 16  # also the columns of a tile of sums, and the pairs in a row of one of `a`
PANEL_COLUMNS = 2 * TILE_ROWS
STEP_DEPTH = 2 * TILE_ROWS  # numbers of a row of `a` in a step
_ROW_BYTES = 64  # of any tile
_TILE_BYTES = TILE_ROWS * _ROW_BYTES
_A, _B = 4, 6  # the first of the tiles of `a`, and of `b`

_ARCH_REQ_XCOMP_PERM, _XTILEDATA, _SYS_ARCH_PRCTL = 0x1023, 18, 158  # of Linux on x86-64

_I8, _I64 = ir.IntType(8), ir.IntType(64)
_POINTER = _I8.as_pointer()


@cache
def is_permitted() -> bool:
    """Whether the processor has the tiles, and the system lets this process use them."""
    if "+amx-bf16" not in get_host_cpu_features().split(","):
        return False
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return False
    # Linux keeps room for a thread's tiles only where it was asked to. Once is for all threads.
    request = (_SYS_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XTILEDATA)
    return ctypes.CDLL(None).syscall(*map(ctypes.c_long, request)) == 0


def _call(builder, name, *arguments):
    kinds = [argument.type for argument in arguments]
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(ir.VoidType(), kinds), name)
    builder.call(function, arguments)


def _multiply_tiles(row_tiles: int):
    """The product of 1 or 2 tiles of rows, 16 or 32 of them, and one panel of 32 columns.

    It is an intrinsic for compiled functions.

    Its arguments: the address of a's first row and the bytes from row to row; the address of a
    panel and the number of its steps, at least 1; the address of the sums in `out` and the bytes
    from row to row; whether to add to what is in `out` instead of replacing it.
    """
    tile_sums = [(r, c) for r in range(row_tiles) for c in range(2)]

    def generate(context, builder, signature, arguments):
        a, a_stride, panel, steps, out, out_stride, adds = arguments

        def at(address, offset):
            return builder.inttoptr(builder.add(address, offset), _POINTER)

        def down(stride, tiles):
            return builder.mul(stride, _I64(TILE_ROWS * tiles))

        outputs = {
            _I8(2 * r + c): at(builder.add(out, down(out_stride, r)), _I64(_ROW_BYTES * c))
            for r, c in tile_sums
        }
        with builder.if_else(adds) as (to_add, to_replace):
            with to_add:
                for tile, output in outputs.items():
                    _call(builder, "llvm.x86.tileloadd64", tile, output, out_stride)
            with to_replace:
                for tile in outputs:
                    _call(builder, "llvm.x86.tilezero", tile)
        entry = builder.block
        loop, done = builder.append_basic_block("loop"), builder.append_basic_block("done")
        builder.branch(loop)

        builder.position_at_end(loop)
        step = builder.phi(_I64)
        step_of_a = builder.add(a, builder.mul(step, _I64(_ROW_BYTES)))
        step_of_b = builder.add(panel, builder.mul(step, _I64(2 * _TILE_BYTES)))
        for r in range(row_tiles):
            row = at(step_of_a, down(a_stride, r))
            _call(builder, "llvm.x86.tileloadd64", _I8(_A + r), row, a_stride)
        for c in range(2):
            tile = at(step_of_b, _I64(_TILE_BYTES * c))
            _call(builder, "llvm.x86.tileloadd64", _I8(_B + c), tile, _I64(_ROW_BYTES))
        for r, c in tile_sums:
            _call(builder, "llvm.x86.tdpbf16ps", _I8(2 * r + c), _I8(_A + r), _I8(_B + c))
        next_step = builder.add(step, _I64(1))
        step.add_incoming(_I64(0), entry)
        step.add_incoming(next_step, loop)
        builder.cbranch(builder.icmp_signed("<", next_step, steps), loop, done)

        builder.position_at_end(done)
        for tile, output in outputs.items():
            _call(builder, "llvm.x86.tilestored64", tile, output, out_stride)
        return context.get_dummy_value()

    @intrinsic
    def product(typing, a, a_stride, panel, steps, out, out_stride, adds):
        return types.void(*[types.intp] * 6, types.boolean), generate

    return product


_multiply_32x32, _multiply_16x32 = _multiply_tiles(2), _multiply_tiles(1)


@intrinsic
def _ldtilecfg(typing, address):
    """Loads a thread's tile configuration (LDTILECFG) from the 64 bytes at an address."""

    def generate(context, builder, signature, arguments):
        _call(builder, "llvm.x86.ldtilecfg", builder.inttoptr(arguments[0], _POINTER))
        return context.get_dummy_value()

    return types.void(types.intp), generate


@intrinsic
def _tilerelease(typing):
    """Ends a thread's use of its tiles (TILERELEASE): none is configured then."""

    def generate(context, builder, signature, arguments):
        _call(builder, "llvm.x86.tilerelease")
        return context.get_dummy_value()

    return types.void(), generate


@reassociating_inline
def _configure_tiles(configuration, rows):
    """Loads a configuration: tiles of sums and of `a` have so many rows, those of `b` all 16.

    `configuration` is room for its 64 bytes, whose layout Intel's manual describes.
    """
    configuration[:] = 0
    configuration[0] = 1  # the palette: eight tiles of at most 16 rows of 64 bytes
    for tile in range(8):
        configuration[16 + 2 * tile] = _ROW_BYTES
        configuration[48 + tile] = TILE_ROWS if tile >= _B else rows
    _ldtilecfg(configuration.ctypes.data)


@reassociating_jit
def pack(matrix):
    """The panels of a matrix: `(ceil(columns / 32), depth / 32, 2, 16, 16)` uint32.

    Of 32 columns and of 32 numbers of each it holds two tiles, of 16 columns each. A row of a tile
    has a pair of numbers of each column: `b[2k + 1, column] << 16 | b[2k, column]`. Columns that a
    last panel lacks are zeros.

    The matrix is `(depth, columns)` bfloat16 as uint16, with a depth of a multiple of 32; any
    strides.
    """
    depth, columns = matrix.shape
    panels = -(-columns // PANEL_COLUMNS)
    packed = np.zeros((panels, depth // STEP_DEPTH, 2, TILE_ROWS, TILE_ROWS), np.uint32)
    for panel in range(panels):
        for half in range(2):
            first = (2 * panel + half) * TILE_ROWS
            width = min(TILE_ROWS, columns - first)
            # One loop over pairs: LLVM unrolls two of known lengths, and compiles for 12 seconds.
            for pair in range(depth // 2):
                row = packed[panel, pair // TILE_ROWS, half, pair % TILE_ROWS]
                for column in range(width):
                    lower = matrix[2 * pair, first + column]
                    upper = matrix[2 * pair + 1, first + column]
                    row[column] = np.uint32(lower) | np.uint32(upper) << 16
    return packed


@reassociating_jit
def multiply(a, panels, out):
    """`out = a b`, where `panels` are b packed.

    `a` is `(rows, depth)` bfloat16 as uint16 and `out` `(rows, 32 len(panels))` float32, both with
    the numbers of a row next to each other. Nothing is checked: other shapes would read and write
    beyond the arrays.
    """
    _multiply(a, panels, out, False)


@reassociating_jit
def multiply_add(a, panels, out):
    """`out += a b`; the arguments are those of `multiply`."""
    _multiply(a, panels, out, True)


@reassociating_inline
def _multiply(a, panels, out, adds):
    rows, a_stride, out_stride = a.shape[0], a.strides[0], out.strides[0]
    steps, whole = panels.shape[1], a.shape[0] // TILE_ROWS * TILE_ROWS
    configuration = np.empty(64, np.uint8)
    if whole:
        _configure_tiles(configuration, TILE_ROWS)
        for s in range(panels.shape[0]):
            panel, sums = panels[s].ctypes.data, out.ctypes.data + s * 2 * _ROW_BYTES
            for r in range(0, whole, 2 * TILE_ROWS):
                row, out_row = a.ctypes.data + r * a_stride, sums + r * out_stride
                if r + TILE_ROWS < whole:
                    _multiply_32x32(row, a_stride, panel, steps, out_row, out_stride, adds)
                else:
                    _multiply_16x32(row, a_stride, panel, steps, out_row, out_stride, adds)
    if rows > whole:
        _configure_tiles(configuration, rows - whole)
        row, out_row = a.ctypes.data + whole * a_stride, out.ctypes.data + whole * out_stride
        for s in range(panels.shape[0]):
            sums = out_row + s * 2 * _ROW_BYTES
            panel = panels[s].ctypes.data
            _multiply_16x32(row, a_stride, panel, steps, sums, out_stride, adds)
    _tilerelease()
