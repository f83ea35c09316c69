"""`ptrnet generate`."""

from json import loads


def test_generate_is_deterministic_by_seed(tmp_path, ptrnet, points):
    again, other = tmp_path / "again.txt", tmp_path / "other.txt"
    ptrnet("generate", "hull", "--n", "3-9", "--count", "30", "--output", again, "--jobs", "2")
    ptrnet("generate", "hull", "--n", "3-9", "--count", "30", "--output", other, "--seed", "1")
    assert points.read_bytes() == again.read_bytes() != other.read_bytes()
    assert len(points.read_text().splitlines()) == 30


def test_points_option_changes_the_distribution(ptrnet, refused):
    arguments = ("generate", "hull", "--n", "30", "--count", "4", "--output", "-")
    code, out, _ = ptrnet(*arguments, "--points", "duplicates")
    assert code == 0
    for line in out.splitlines():
        numbers = line.split(" output ")[0].split()
        assert len(set(zip(numbers[::2], numbers[1::2], strict=True))) < 30
    refused(ptrnet(*arguments, "--points", "square"), "task hull: unknown points 'square'")


def test_settings_of_a_problem_are_options(ptrnet, refused):
    arguments = ("generate", "knapsack", "--n", "8", "--count", "3", "--output", "-")
    code, out, _ = ptrnet(*arguments, "--fill", "0.5")
    assert code == 0
    assert [loads(line)["capacity"] for line in out.splitlines()] == [4, 4, 4]  # half of n
    refused(ptrnet(*arguments, "--fill", "2"), "task knapsack: fill: expected a number above 0 ")
    refused(ptrnet(*arguments, "--machines", "3"), "unknown setting of task knapsack 'machines'")
