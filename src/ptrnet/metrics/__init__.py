"""The metrics of all tasks, as pure functions. `interval` computes means and 95% intervals.

Metrics accept valid and invalid answers, so the caller need not check the answers.
"""
