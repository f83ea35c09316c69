"""The numbers of the random streams.

The generator of a stream is `np.random.default_rng([seed, stream, ...])`. Streams with different
numbers are independent, although they share a seed. Do not change the numbers: a resumed training
would draw other batches.
"""

TRAIN, VALID = 0, 1  # instances that the task draws
GENERATED = 2  # instances of `ptrnet generate`
FILE_ORDER, FILE_TRANSFORMS = 3, 4  # order and augmentation of the examples of a dataset
HELD_OUT = 5  # which examples of a dataset are held out for validation
CUTS = 6  # where answers are cut in training
INSTANCE_ORDER = 7  # order of instances without answers
EXPORTED = 8  # instances on which an exported graph is compared with its model
DROPOUT = 9  # units that dropout leaves out at a training step
