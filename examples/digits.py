"""Real data: images of handwritten digits, to be put in the order of what they show.

    pip install scikit-learn
    python examples/digits.py [STEPS]

The images, 8 x 8, ship inside scikit-learn. An element is an image, as 64 numbers; the examples
show five different digits each and tell their order, but never which digit is which. The plain
baseline learns from the same: a linear regression of an image's place in its order, and a sort.
"""

import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression

import ptrnet

SHOWN = 5


def draw(rng, images, digits):
    """Images of different digits, and their order."""
    chosen = [rng.choice(np.flatnonzero(digits == d)) for d in rng.permutation(10)[:SHOWN]]
    return images[chosen], np.argsort(digits[chosen])


steps = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
images, digits = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
shuffled = rng.permutation(len(images))
old, new = shuffled[:1300], shuffled[1300:]  # no image of the test is ever trained on
train = [draw(rng, images[old], digits[old]) for _ in range(20_000)]
test = [draw(rng, images[new], digits[new]) for _ in range(1000)]

places = np.concatenate([np.argsort(order) for _, order in train])
line = LinearRegression().fit(np.concatenate([numbers for numbers, _ in train]), places)
baseline = [np.argsort(line.predict(numbers)) for numbers, _ in test]

model = ptrnet.fit(train, "permutation", augment=True, steps=steps, hidden_size=128)
network = model.solve([numbers for numbers, _ in test])

print(f"of {len(test)} drawings of {SHOWN} of {len(new)} images that are new")
for name, answers in (("regression and sort", baseline), ("pointer network", network)):
    right = np.mean([np.array_equal(a, o) for a, (_, o) in zip(answers, test, strict=True)])
    print(f"{name:20} in the right order {right:6.1%}")
