"""Tables at the command line: which columns are read, and that none is lost."""

import pytest

TABLE = "id,x,y\n7,0,0\n8,1,0\n9,0,1\n10,0.2,0.2\n"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text(TABLE)
    return path


@pytest.mark.parametrize("header", ["id,x,y", "Index,lon,lat", ",x,y", "#,y,x"])
def test_numbers_that_are_ids_are_no_coordinates(ptrnet, table, header):
    table.write_text(TABLE.replace("id,x,y", header))
    code, out, _ = ptrnet("solve", "hull", table)
    expected = {"7,0,0", "8,1,0", "9,0,1"}
    assert code == 0 and out.splitlines()[0] == header and {*out.splitlines()[1:]} == expected


@pytest.mark.parametrize("header", ["x,y,z", "height,x,y", "7,0,0"])
def test_other_numbers_are_not_left_out(ptrnet, table, header, refused):
    """Of points in space two coordinates would be answered."""
    table.write_text(TABLE.replace("id,x,y", header))
    refused(ptrnet("solve", "hull", table), "expected 2 numeric columns and any number of others")


@pytest.mark.parametrize("verb", [("solve",), ("solve", "--json"), ("label",)])
def test_the_answer_does_not_take_the_place_of_its_instance(ptrnet, table, verb, refused):
    name, *options = verb
    answered = ptrnet(name, "hull", table, "--output", table.parent / "." / table.name, *options)
    refused(answered, "holds the instance, and only its answer would be left")
    assert table.read_text() == TABLE


def test_on_standard_input_it_is_said_that_a_table_is_a_file(ptrnet, table, refused, monkeypatch):
    with table.open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        refused(ptrnet("solve", "hull", "-"), "if this is a .csv, name the file so")
