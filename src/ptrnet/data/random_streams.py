"""The random streams of a seed, which share no random numbers.

A stream is `np.random.default_rng([seed, stream, ...])`. Do not change these numbers: a stopped
training resumes with the draws that they give.
"""

TRAIN, VALID = 0, 1  # fresh instances
GENERATED = 2  # by `ptrnet generate`
FILE_ORDER, FILE_TRANSFORMS = 3, 4  # orders and transforms of the examples of a file
HELD_OUT = 5  # which examples of a file are kept to validate on
CUTS = 6  # of answers, in training
INSTANCE_ORDER = 7  # the order of instances without answers
EXPORTED = 8  # instances on which an exported graph is compared with its model
DROPOUT = 9  # units that are left out at a training step
