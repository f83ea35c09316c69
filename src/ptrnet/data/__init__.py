"""Examples: read from files, drawn and labelled, checked, padded into batches.

`formats/` reads and writes files; `streams/` feeds examples to a training; `bulk/` draws and
labels many of them, resumably.
"""
