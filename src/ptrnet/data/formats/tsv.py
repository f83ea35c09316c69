"""Tables whose columns are separated by tabs: `.csv` with another delimiter, also as `.dat`.

If the header has no tab, commas or semicolons separate the columns.
"""

from functools import partial

from ptrnet.data.formats import csv

CAPABILITIES = csv.CAPABILITIES

read = partial(csv.read, usual="\t")
table = partial(csv.table, usual="\t")
write = partial(csv.write, delimiter="\t")
write_table = partial(csv.write_table, delimiter="\t")
