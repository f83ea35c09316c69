"""What only the papers and our measurements need: a plug-in that comes with ptrnet.

- `models/`, `labellers/` and `adadelta_rmsprop.py`: networks, algorithms and an optimizer that
  papers use, and that no shipped model needs
- `recipes/` and `reproduce/`: the papers' tables, and `ptrnet reproduce`
- `bench/`: `ptrnet bench`

ptrnet does not import this package by its name. It finds `plugin.py` by the entry point in
`pyproject.toml`.
"""
