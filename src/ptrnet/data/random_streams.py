"""The random streams of a seed: draws from two of them share nothing.

A stream is `np.random.default_rng([seed, stream, ...])`. A number once given stays: by it a
training that was stopped draws what it would have drawn.
"""

TRAIN, VALID = 0, 1  # fresh examples
GENERATED = 2  # those of `ptrnet generate`
FILE_ORDER, FILE_TRANSFORMS = 3, 4  # of examples of a file
HELD_OUT = 5  # those of a file that validate
CUTS = 6  # of answers
INSTANCE_ORDER = 7  # of instances without answers
EXPORTED = 8  # instances by which graphs are compared with their model
DROPOUT = 9  # units that are left out at a step of a training
