"""Sort images of handwritten digits by the numbers that they show.

    pip install scikit-learn
    python examples/digits.py [STEPS [EXAMPLES]]

The images have 8 x 8 pixels and come with scikit-learn. An element is an image, as 64 numbers. Each
example has images of five different digits and their order, but never says which digit is which.
The baseline learns from the same examples: a linear regression predicts the position of an image in
its order, and we sort the images by this prediction.
"""

import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression

import ptrnet

SHOWN = 5


def draw(rng, images, digits):
    """Return images of different digits, and their order."""
    chosen = [rng.choice(np.flatnonzero(digits == d)) for d in rng.permutation(10)[:SHOWN]]
    return images[chosen], np.argsort(digits[chosen])


steps = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
count = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
images, digits = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
shuffled = rng.permutation(len(images))
old, new = shuffled[:1300], shuffled[1300:]  # test images are not used in training
train = [draw(rng, images[old], digits[old]) for _ in range(count)]
test = [draw(rng, images[new], digits[new]) for _ in range(count // 20)]

places = np.concatenate([np.argsort(order) for _, order in train])
line = LinearRegression().fit(np.concatenate([numbers for numbers, _ in train]), places)
baseline = [np.argsort(line.predict(numbers)) for numbers, _ in test]

model = ptrnet.fit(train, "permutation", augment=True, steps=steps, hidden_size=128)
network = model.solve([numbers for numbers, _ in test])

print(f"{len(test)} sets of {SHOWN} digits, from {len(new)} new images")
for name, answers in (("regression and sort", baseline), ("pointer network", network)):
    right = np.mean([np.array_equal(a, o) for a, (_, o) in zip(answers, test, strict=True)])
    print(f"{name:20} right order {right:6.1%}")
