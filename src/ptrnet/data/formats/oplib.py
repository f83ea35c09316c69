"""OPLib's `.oplib` (Kobeaga et al. 2018): the whole file is one instance of `orienteering`.

Distances are EUC_2D, rounded to the nearest whole number. The depot becomes element 0. The format
cannot hold answers, so write them to `.jsonl`.
"""

from ptrnet.data.formats import Capabilities
from ptrnet.data.formats.parts.depots import read, write

__all__ = ["CAPABILITIES", "read", "write"]

CAPABILITIES = Capabilities(
    multiple=False, answers=False, task="orienteering", stdout_format="jsonl"
)
