"""The convex hull of random points, pointed out by the shipped network."""

import numpy as np

import ptrnet

model = ptrnet.load("hull")
points = np.random.default_rng(7).random((30, 2))
answer = model.solve(points)
wider = model.solve([points, points[:10]], decoder=ptrnet.Beam(8))
print("vertices, counter-clockwise:", answer)
print("by beam search, and of the first ten points:", *wider)
