"""The formulas that cost time, each with a plain reference and a fast implementation.

Nothing here knows a model or a task.
"""

from ptrnet.kernels.additive import additive_scores, prepared_scores
from ptrnet.kernels.lstm import lstm

__all__ = ["additive_scores", "lstm", "prepared_scores"]
