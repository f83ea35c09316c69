"""Boxes of pages as rows of .csv and .tsv files."""

import pytest

from ptrnet import tasks
from ptrnet.data import formats
from ptrnet.errors import AmbiguousInputWarning, InputError
from ptrnet.types import Example
from tests.support.text import begins

TASK = tasks.get("reading-order")


def read(path, content):
    path.write_text(content)
    return list(formats.read(str(path), TASK))


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("left,top,right,bottom,label", "1,2,4,8,title"),
        ("id,X0,Y0,X1,Y1,label", "7,1,2,4,8,title"),
        ("x1,y1,x2,y2,label", "1,2,4,8,title"),
        ("label,xmin,ymin,xmax,ymax", "title,1,2,4,8"),
        ("label,x,y,width,height", "title,1,2,3,6"),
        ("conf,left,top,width,height,label", "n/a,1,2,3,6,title"),
    ],
)
def test_corners_are_found_by_their_names(tmp_path, header, row):
    (example,) = read(tmp_path / "a.csv", f"{header}\n{row}\n")
    assert example.inputs.tolist() == [[1, 2, 4, 8, 3]]
    (example,) = read(tmp_path / "a.tsv", f"{header}\n{row}\n".replace(",", "\t"))
    assert example.inputs.tolist() == [[1, 2, 4, 8, 3]]


def test_four_columns_without_a_header_are_corners(tmp_path):
    (example,) = read(tmp_path / "a.csv", "1,2,4,8\n0,0,1,1\n")
    assert example.inputs.tolist() == [[1, 2, 4, 8, 0], [0, 0, 1, 1, 0]]
    formats.write(str(tmp_path / "b.csv"), [example.replace(outputs=[1, 0])], TASK)
    assert (tmp_path / "b.csv").read_text() == "0,0,1,1\n1,2,4,8\n"


def test_each_page_is_an_instance_and_rows_are_sorted_within_it(tmp_path):
    text = "page,x,y,width,height,label,text\n9,0,5,1,1,,b\n2,0,0,1,1,text,c\n9,0,1,1,1,,a\n"
    first, second = read(tmp_path / "a.csv", text)
    assert first.inputs[:, 1].tolist() == [5, 1] and len(second.inputs) == 1
    target = tmp_path / "b.csv"
    answered = [first.replace(outputs=[1, 0]), second.replace(outputs=[0])]
    formats.write(str(target), answered, TASK)
    assert target.read_text() == (
        "page,x,y,width,height,label,text\n9,0,1,1,1,,a\n9,0,5,1,1,,b\n2,0,0,1,1,text,c\n"
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "left,top,right,bottom,Class\n0,0,1,1,title\n"),
        ("a.jsonl", '{"boxes": [[0, 0, 1, 1]], "class": ["title"]}\n'),
    ],
)
def test_classes_of_another_name_are_doubted(tmp_path, name, content):
    with pytest.warns(AmbiguousInputWarning, match='"class" is not read as .* name them "label'):
        (example,) = read(tmp_path / name, content)
    assert example.inputs.tolist() == [[0, 0, 1, 1, 0]]


def test_rows_of_tesseract_are_read_if_they_have_one_level(tmp_path):
    header = "level\tpage_num\tblock_num\tleft\ttop\twidth\theight\tconf\ttext\n"
    blocks = "2\t1\t1\t5\t6\t7\t8\t-1\t\n2\t2\t1\t1\t2\t3\t4\t-1\t\n"
    first, second = read(tmp_path / "a.tsv", header + blocks)
    assert first.inputs.tolist() == [[5, 6, 12, 14, 0]]
    assert second.inputs.tolist() == [[1, 2, 4, 6, 0]]
    with pytest.raises(InputError, match="has nested boxes of levels 1, 2; keep the rows"):
        read(tmp_path / "b.tsv", f"{header}1\t1\t0\t0\t0\t99\t99\t-1\t\n{blocks}")


def test_boxes_of_other_files_have_a_header_and_labels(tmp_path):
    target = tmp_path / "a.csv"
    example = Example([[0.5, 0, 1, 1, 3], [0, 0, 0.25, 1, 0]], [1, 0])
    formats.write(str(target), [example], TASK)
    assert target.read_text() == (
        "left,top,right,bottom,label\n0.0,0.0,0.25,1.0,\n0.5,0.0,1.0,1.0,title\n"
    )
    (copy,) = formats.read(str(target), TASK)
    assert copy.inputs.tolist() == example.inputs[[1, 0]].tolist()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("a,b,c,d\n1,2,3,4\n", ":1: expected the columns left, top, right, bottom; ... got a"),
        ("1,2,3,4,5\n", ":1: expected the columns"),
        ("x1,y1,x2,y2,x3,y3,x4,y4\n0,0,1,0,1,1,0,1\n", ":1: expected the columns"),
        ("left,top,right,bottom\n", ": expected boxes below the header, got none"),
        ("left,top,right,bottom\n1,2,3,4\n1,x,3,4\n", ":3: column 2: expected a number, got 'x'"),
        ("left,top,right,bottom\n1,2,3,4\n5,2,3,4\n", ":3: expected left <= right and top <= b"),
        ("x,y,width,height\n1,2,-3,4\n", ":2: expected left <= right"),
        ("left,top,right,bottom,label\n1,2,3,4,txt\n", ":2: unknown label 'txt'; did you mean"),
    ],
)
def test_refused_with_file_and_line(tmp_path, content, complaint):
    path = tmp_path / "a.csv"
    with pytest.raises(InputError) as error:
        read(path, content)
    assert begins(str(error.value), f"{path}{complaint}"), str(error.value)
