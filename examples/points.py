"""Find the convex hull of random points with the shipped network."""

import numpy as np

import ptrnet

model = ptrnet.load("hull")
points = np.random.default_rng(7).random((30, 2))
answer = model.solve(points)
wider = model.solve([points, points[:10]], decoder=ptrnet.Beam(8))
print("vertices, counter-clockwise:", answer)
print("the same by beam search, and for the first ten points:", *wider)
