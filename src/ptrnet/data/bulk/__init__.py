"""Many examples to a file or a list: drawn, labelled or solved in chunks, by many processes.

Work that is stopped goes on where it was.
"""
