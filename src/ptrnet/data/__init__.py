"""Read examples from files and from memory, check them, infer their task, and batch them.

Read the modules in this order:

- `dataset`: `Dataset`, which the other modules take and return, and functions that make datasets of
  values in memory
- `arrays`: arrays, tensors and frames of other libraries as NumPy arrays
- `checks`: what an instance and an answer have to be; `cells`: what the cells of a table mean
- `formats/`: reads and writes files, one module for each format
- `tables`: makes datasets of long tables, in which each row is an element
- `stored`: opens the examples of a file as memory maps
- `infer_schema`, `infer_task`: infer the fields and the kind of answers of a user's own examples
- `batches`: pads examples into batches; `symmetries`: augments examples; `streams`: draws
  training batches
- `sizes`: parses texts such as `5-50`; `random_streams`: the random streams of a seed

Rows are validated once, before they are put into a `Dataset`.
"""
