"""Tours in TSPLIB files."""

import numpy as np

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.types import Example, Nodes

TSP = tasks.get("tsp")


def test_writes_the_ids_of_the_tsp_file(tmp_path):
    points = np.array([[0.0, 0.0], [3.0, 0.0], [3.0, 4.0]])
    nodes = Nodes("triangle", [7, 0, 30])
    example = Example(points, np.array([0, 2, 1]), nodes=nodes, distance="EUC_2D")
    path = tmp_path / "t.tour"
    formats.write(str(path), [example], TSP)
    assert path.read_bytes() == (
        b"NAME : triangle\nCOMMENT : length 12\nTYPE : TOUR\nDIMENSION : 3\nTOUR_SECTION\n"
        b"7\n30\n0\n-1\nEOF\n"
    )
    formats.write(str(tmp_path / "t.tsp"), [example.replace(outputs=None)], TSP)
    (copy,) = formats.read(str(path), TSP)
    assert copy.outputs.tolist() == [0, 2, 1] and copy.nodes == nodes
