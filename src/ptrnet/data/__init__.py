"""Examples: from files and from memory, checked, inferred, and padded into batches.

Read the modules in this order:

- `dataset`: `Dataset`, which everything else takes and returns, and its makers for values in memory
- `arrays`: arrays, tensors and frames of other libraries as NumPy arrays
- `checks`: what an instance and an answer have to be; `cells`: what the cells of a table mean
- `formats/`: reads and writes files, a module for each format
- `tables`: long tables, in which a row is an element, as datasets
- `stored`: the examples of a file as memory maps
- `infer_schema`, `infer_task`: what the elements and the answers of a user's own examples are
- `batches`: pads examples into batches; `symmetries`: augments examples; `streams`: draws the
  batches of a training
- `sizes`: parses texts such as `5-50`; `random_streams`: the random streams of a seed

Rows are validated once, on the way into a `Dataset`.
"""
