"""Read examples from files and from memory, check them, infer their task, and batch them.

Read the modules in this order:

- `dataset`: `Dataset`, which most modules take or return, and functions that convert values in
  memory to a `Dataset`
- `arrays`: converts arrays, tensors and frames of other libraries to NumPy arrays
- `checks`: validates instances and answers; `cells`: decides which cells of a table are numbers
- `formats/`: reads and writes files, one module for each format
- `tables`: converts long tables, in which each row is an element, to datasets
- `stored`: opens the examples of a file as memory maps
- `infer_schema`: infers which fields the elements of a user's own examples have; `infer_task`:
  infers which kind of answers the examples have
- `batches`: augments examples and pads them into batches; `streams`: draws training batches

Each instance and its answer are validated once, before they become a row of a `Dataset`.
"""
