"""Answer one instance with the two graphs next to this file, by onnxruntime and NumPy alone.

    python example.py points.csv     # one element a row; prints the 0-based indices of the answer
    python example.py points.csv --scores     # also prints a score and a probability of each row
    python example.py shop.jsonl     # a problem: its first line is the instance

A header and columns of names are skipped. But if the manifest names fields, the file must have a
header with the names of these fields.

manifest.json describes the steps of this program; docs/export.md of ptrnet explains them.
"""

import csv
import hashlib
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

BITS = 20  # number of bits to which coordinates are rounded, for Hilbert's curve
MISSING = {"", "--", ".", "?", "#n/a", "n/a", "na", "nan", "nil", "null", "missing"}
BOOLEANS = {"true": "1", "false": "0"}  # as Python, R and polars write them, in lower case


def read(path: str, fields: list[dict[str, Any]], inputs: dict[str, Any] | None = None) -> Any:
    """Return the elements `(n, d)` of a file. Each category of a field becomes a feature.

    `inputs` of the manifest may say which elements a set must have or cannot have.
    """
    with Path(path).open(newline="", encoding="utf-8-sig") as file:
        table = [[cell.strip() for cell in row] for row in csv.reader(file)]
    rows = [row for row in table if row not in ([], [""])]  # a row of empty cells stays
    first = 0 if fields or (rows and any(map(is_number, rows[0]))) else 1
    if not rows[first:]:
        sys.exit(f"{path}: expected an element in each line, got none")
    if not fields:
        if len({*map(len, rows)}) > 1:
            sys.exit(f"{path}: expected the same number of cells in each line, between commas")
        return finite(numbers(rows[first:]), path)
    header, *rows = rows
    if not rows or {*map(len, rows)} != {len(header)}:
        sys.exit(f"{path}: expected a header and rows of {len(header)} columns")
    check_set(path, header, rows, inputs or {})
    features = []
    for field in fields:
        if header.count(field["name"]) != 1:
            sys.exit(f"{path}: expected one column {field['name']}, got {', '.join(header)}")
        column, texts = [row[header.index(field["name"])] for row in rows], field["categories"]
        fill, unseen = field["missing"], Counter[str]()
        if not texts:
            gaps = [fill is not None and cell.lower() in MISSING for cell in column]
            pairs = zip(gaps, column, strict=True)
            values = np.array(
                ["nan" if gap else BOOLEANS.get(cell.lower(), cell) for gap, cell in pairs], float
            )
            features.append(np.where(gaps, fill or 0, values))
            if field["marks_missing"]:
                features.append(np.array(gaps, float))
            elif any(gaps):
                unseen["no value"] = sum(gaps)
            features += [
                np.array(np.float32(values) == np.float32(number), float)
                for number in field["common"]
            ]
        else:
            column = [category(cell, texts) for cell in column]
            unseen = Counter(cell for cell in column if cell not in texts)
            is_strict = field["unknown"] == "refuse"
            refused = [cell for cell in unseen if is_strict or (not cell and fill is None)]
            if refused:
                sys.exit(f"{path}: unknown in {field['name']}: {', '.join(refused)}")
            column = [cell if cell in texts else "" for cell in column]
        features += [np.array([cell == text for cell in column], float) for text in texts]
        if unseen:
            shown = ", ".join(f"{value or 'no value'} ({n})" for value, n in unseen.most_common())
            reason = "treated as missing, because no training example had it"
            print(f"{path}: {reason}: {field['name']}: {shown}", file=sys.stderr)
    return finite(np.column_stack(features), path)


def check_set(path: str, header: list[str], rows: list[list[str]], inputs: dict[str, Any]) -> None:
    """End the program if a row cannot be chosen, or if the row for choosing none is missing."""
    name, outside = inputs.get("available"), inputs.get("outside")
    if name in header:
        cells = [row[header.index(name)].lower() for row in rows]
        if not set(cells) <= {"1", "1.0", "true", "yes"}:
            sys.exit(f"{path}: leave out the elements that cannot be chosen: {name} is not 1")
    if outside:
        field, value = outside["field"], outside["value"]
        cells = [row[header.index(field)] for row in rows] if field in header else []
        if [category(cell, [value]) for cell in cells].count(value) != 1:
            sys.exit(f"{path}: expected one row with {field} {value}, the option to choose none")


def read_problem(path: str, instance: dict[str, Any]) -> Any:
    """Return the elements `(n, d)` of a problem in a line of JSON, such as the first of .jsonl."""
    with Path(path).open(encoding="utf-8-sig") as file:
        values = json.loads(file.readline())
    if instance["kind"] == "jobs":
        most, jobs = instance["most"], values["jobs"]
        elements = np.full((len(jobs), 2 * most), -1.0)
        elements[:, most:] = 0
        for k, job in enumerate(jobs):
            elements[k, : len(job)], elements[k, most : most + len(job)] = np.transpose(job)
        return finite(elements, path)
    if instance["kind"] == "boxes":
        numbers = {None: 0, **{label: k for k, label in enumerate(instance["labels"], 1)}}
        labels = [numbers[label] for label in values.get("labels") or [None] * len(values["boxes"])]
        return finite(np.column_stack([np.array(values["boxes"], float), labels]), path)
    values = {**instance["optional"], **values}
    columns = [np.array(values[name], float) for name in instance["elements"]]
    n = len(columns[0])
    columns += [np.tile(np.array(values[name], float), (n, 1)) for name in instance["shared"]]
    return finite(np.concatenate([column.reshape(n, -1) for column in columns], 1), path)


def category(cell: str, texts: list[str]) -> str:
    """Return the category that a cell means: `1` for 1.0, unless 1.0 is a category itself."""
    whole, _, zeros = cell.partition(".")
    is_written_so = cell not in texts and whole in texts and not zeros.strip("0")
    return whole if is_written_so and is_number(cell) else cell


def numbers(rows: list[list[str]]) -> Any:
    """Return the columns of numbers, without the columns of names.

    Raises ValueError if there is no column of numbers, or if only some cells of a column are
    numbers. Also raises ValueError if a column without numbers has an empty cell, or has digits in
    all cells. Such cells may be numbers in another notation, such as 1,234.5.
    """
    columns = []
    for cells in zip(*rows, strict=True):
        if any(map(is_number, cells)):
            columns.append(cells)
        elif "" in cells or all(any(map(str.isdigit, cell)) for cell in cells):
            raise ValueError(
                f"leave out the column of {cells[0]!r}, or write its numbers as 1234.5"
            )
    if not columns:
        raise ValueError("no column of numbers, between commas")
    for cell in (cell for cells in columns for cell in cells):
        if not is_number(cell) or "_" in cell:
            raise ValueError(f"expected a number in each row of its column, got {cell!r}")
    return np.array(columns, float).T


def is_number(cell: str) -> bool:
    """Whether a cell is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def finite(elements: Any, path: str) -> Any:
    """Return the elements. If a number is not finite, end the program."""
    if not np.isfinite(elements).all():
        sys.exit(f"{path}: expected finite numbers")
    return elements


def scale(points: Any, scaling: dict[str, Any]) -> Any:
    """Return the elements `(n, d)` as the model reads them."""
    if scaling["kind"] == "none":
        return points
    if scaling["kind"] == "standardize":
        center, spread = np.array(scaling["center"]), np.array(scaling["spread"])
        return np.clip((points - center) / spread, -scaling["clip"], scaling["clip"])
    if scaling["kind"] == "boxes":
        return scale_boxes(points, scaling)
    low, high = points.min(0), points.max(0)
    is_inside = (low >= 0).all() and (high <= 1).all()
    part = 1 if is_inside else 0.5  # so that the range of 1e308 and -1e308 does not overflow
    width = (high * part - low * part).max()  # one scale for all features keeps proportions
    if is_inside and (width == 0 or width >= scaling["smallest_range"]):
        return points
    return np.clip((points * part - low * part) / (width if width > 0 else 1), 0, 1)


def scale_boxes(boxes: Any, scaling: dict[str, Any]) -> Any:
    """Return boxes `(n, 5)` in the unit square, turned so that lines run from left to right."""
    left, top, right, bottom, label = boxes.T
    if scaling["direction"] == "rtl":
        left, right = -right, -left
    elif scaling["direction"] == "vertical":
        left, top, right, bottom = top, -right, bottom, -left
    low, high = np.array([left, top]).T, np.array([right, bottom]).T
    extent = high.max(0) - low.min(0)
    extent[extent == 0] = 1
    low, high = ((edges - low.min(0)) / extent for edges in (low, high))
    return np.column_stack([low, high, label / scaling["labels"]])


def reading_order(points: Any, order: str) -> Any:
    """Return the indices of the elements `(n, d)` in the order in which the model reads them."""
    if order == "lexicographic":
        return np.lexsort(tuple(points.T[::-1]))
    if order == "given":
        return np.arange(len(points))
    width = (points.max(0) - points.min(0)).max()  # hilbert
    cells = (points - points.min(0)) / (width if width > 0 else 1) * (2**BITS - 1)
    x, y = cells.astype(np.int64).T
    index = np.zeros(len(points), np.int64)
    for bit in reversed(range(BITS)):
        side = 1 << bit
        right, upper = (x & side) > 0, (y & side) > 0
        index = index * 4 + ((3 * right) ^ upper)
        x, y = x & (side - 1), y & (side - 1)
        mirrored = right & ~upper
        x, y = np.where(mirrored, side - 1 - x, x), np.where(mirrored, side - 1 - y, y)
        x, y = np.where(upper, x, y), np.where(upper, y, x)
    return np.argsort(index, kind="stable")


def allowed(tokens: list[int], num_tokens: int, constraint: dict[str, Any]) -> Any:
    """Return the mask `(num_tokens,)` of the tokens that may come next.

    If this program does not know the constraint, all tokens may come next, except END before
    `min_length` tokens.
    """
    kind, mask = constraint["kind"], np.ones(num_tokens, bool)
    if kind == "any":  # the graphs know what is allowed
        return mask
    mask[0] = len(tokens) >= constraint["min_length"]
    if kind in ("subset", "permutation", "tour", "closed-subset"):
        mask[tokens] = False
    if kind in ("permutation", "tour"):
        mask[0] = not mask[1:].any()
    if kind == "tour" and not tokens:
        mask[2:] = False  # the first element comes first
    if kind == "closed-subset":
        mask[0] = len(tokens) > 1 and tokens[-1] == tokens[0]
        mask[tokens[:1]] = True
        mask[1:] &= not mask[0]
    if kind == "apexes":
        waiting = len(tokens) < 2 or bool(grow(tokens)[1])
        mask[0], mask[1:] = not waiting, waiting
        mask[1], mask[tokens[:1]] = mask[1] and len(tokens) > 1, len(tokens) > 1
    return mask


def grow(tokens: list[int]) -> tuple[list[list[int]], list[tuple[int, int]]]:
    """Return the triangles of a sequence of apexes, and the edges that still wait for an apex.

    The first two tokens are an edge. Each other token is the apex of the oldest waiting edge, or 1
    if that edge has no triangle. The vertices of triangles and edges are tokens.
    """
    edges, triangles = [tuple(tokens[:2])], []
    for apex in tokens[2:]:
        tail, head = edges.pop(0)
        if apex == 1:  # the edge has no triangle
            continue
        triangles.append([tail, head, apex])
        for side in ((head, apex), (apex, tail)):
            if side in edges:
                edges.remove(side)
            else:
                edges.append(side[::-1])
    return triangles, edges  # type: ignore[return-value]


def decode(points: Any, folder: Path) -> tuple[list[int], Any]:
    """Return the tokens of the greedy answer to one instance `(n, d)`, without END.

    Also return the log-probabilities `(m + 1, num_tokens)` at each of the m tokens, and after them.
    """
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    run = onnxruntime.InferenceSession
    encoder, step = (run(folder / manifest[graph]["file"]) for graph in ("encoder", "step"))
    names = [output.name for output in encoder.get_outputs()]
    kinds = {port.name: port.type for port in encoder.get_inputs()}
    exact = np.float64 if kinds["inputs"] == "tensor(double)" else np.float32
    inputs = {"inputs": points[None].astype(exact), "lengths": np.array([len(points)])}
    feeds = {name: inputs[name] for name in kinds}
    values = dict(zip(names, encoder.run(names, feeds), strict=True))
    most = manifest["answer"]["max_tokens"]
    longest = np.ceil(most["per_element"] * len(points)) + most["plus"]
    longest = int(np.clip(longest, most["least"], most["most"]))
    tokens: list[int] = []
    steps = []
    while True:
        values["tokens"] = np.array([tokens[-1:] or [0]])  # END is the first input
        feeds = {port.name: values[port.name] for port in step.get_inputs()}
        log_probs, *state = step.run(None, feeds)
        values.update({f"state_{k}": value for k, value in enumerate(state)})
        steps.append(log_probs[0, 0].astype(float))
        mask = allowed(tokens, log_probs.shape[-1], manifest["constraint"])
        token = int(np.where(mask, steps[-1], -np.inf).argmax())
        if token == 0 or len(tokens) == longest:
            return tokens, np.array(steps)
        tokens.append(token)


def to_scores(tokens: list[int], steps: Any, order: Any, manifest: dict[str, Any]) -> Any:
    """Return the scores `(n,)` of the elements in the file, as `scores` in the manifest says."""
    first, n = len(manifest["tokens"]["specials"]), len(order)
    of_elements, scores = steps[:, first : first + n], np.empty(n)
    if manifest["scores"]["kind"] == "first":
        scores[order] = of_elements[0] - np.logaddexp.reduce(of_elements[0])
        return scores
    chosen = [tokens.index(t) if t in tokens else len(tokens) for t in range(first, first + n)]
    scores[order] = of_elements[chosen, np.arange(n)] - steps[chosen, 0]
    return scores


def to_answer(tokens: list[int], order: Any, manifest: dict[str, Any]) -> list[Any]:
    """Convert tokens to the answer, as indices of the elements in the file."""
    first, kind = len(manifest["tokens"]["specials"]), manifest["answer"]["kind"]
    if kind == "apexes":
        return [[int(order[t - first]) for t in triangle] for triangle in grow(tokens)[0]]
    if kind == "routes":
        pairs = [divmod(token - first, 2) for token in tokens]
        return [index for element, by_depot in pairs for index in [0] * by_depot + [element]]
    indices = [int(order[token - first]) for token in tokens if token >= first]
    if kind == "closed" and len(indices) > 1 and indices[0] == indices[-1]:
        return indices[:-1]
    if kind == "triangles":
        return [indices[k : k + 3] for k in range(0, len(indices), 3)]
    return indices


def near_pair(points: Any, resolution: float) -> tuple[int, int] | None:
    """Return the indices of two unequal elements whose numbers differ by less than the resolution.

    Return None if there is no such pair.
    """
    for k in range(1, len(points)):
        gaps = np.abs(points[:k] - points[k]).max(1)
        near = np.flatnonzero((gaps > 0) & (gaps < resolution))
        if len(near):
            return int(near[0]), k
    return None


def solve(elements: Any, folder: Path) -> list[Any]:
    """Return the answer to one instance `(n, d)`: 0-based indices, or triples of indices."""
    return solve_and_score(elements, folder)[0]


def solve_and_score(elements: Any, folder: Path) -> tuple[list[Any], Any]:
    """As `solve`, but also return the scores `(n,)` of the elements; None if there are none."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    inputs = manifest["inputs"]
    if elements.shape[1] != inputs["features"]:
        sys.exit(f"expected {inputs['features']} numbers in each line")
    if len(elements) < inputs["elements"]["min"]:
        sys.exit(f"expected {inputs['elements']['min']} elements or more")
    points = scale(elements, inputs["scaling"])
    order = reading_order(points, inputs["order"])
    tokens, steps = decode(points[order], folder)
    answer = to_answer(tokens, order, manifest)
    scores = to_scores(tokens, steps, order, manifest) if "scores" in manifest else None
    if manifest["task"]["name"] == "sort":
        # The model cannot distinguish nearly equal numbers, so sort such numbers exactly.
        exact = np.argsort(elements[:, 0], kind="stable")
        is_near = np.abs(points[answer] - points[exact]).max() < inputs["resolution"]
        return list(map(int, exact)) if is_near else answer, scores
    pair = near_pair(points, inputs["resolution"])
    if pair:
        text = "elements {} and {} are nearly equal: the answer may be wrong there"
        print(text.format(*pair), file=sys.stderr)
    return answer, scores


if __name__ == "__main__":
    paths = [argument for argument in sys.argv[1:] if argument != "--scores"]
    if len(paths) != 1:
        sys.exit("expected one file: python example.py points.csv [--scores]")
    folder = Path(__file__).parent
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    for name, file in manifest["files"].items():
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != file["sha256"]:
            sys.exit(f"{folder / name}: damaged: it is not the file that was exported")
    inputs = manifest["inputs"]
    needed = "an element in each line"
    if "instance" in inputs:
        needed = "an instance as a line of JSON (`ptrnet convert IN OUT.jsonl` writes it)"
    try:
        if "instance" in inputs:
            instance = read_problem(paths[0], inputs["instance"])
        else:
            instance = read(paths[0], inputs.get("fields", []), inputs)
    except (KeyError, OSError, TypeError, ValueError, csv.Error) as error:
        sys.exit(f"expected a file with {needed}: {error!r}")
    answer, scores = solve_and_score(instance, folder)
    if "--scores" not in sys.argv:
        print(json.dumps(answer))
    elif scores is None:
        sys.exit("--scores: the model gives no scores of single elements")
    else:
        is_first = manifest["scores"]["kind"] == "first"
        probabilities = np.exp(scores) if is_first else 1 / (1 + np.exp(-scores))
        document = {"outputs": answer, "scores": scores.tolist()}
        print(json.dumps({**document, "probabilities": probabilities.tolist()}))
