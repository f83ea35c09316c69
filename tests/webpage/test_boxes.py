"""The page with the boxes of a page: drawing, text, labels, links and answers in all directions."""

import json

import numpy as np
import pytest

from ptrnet.serve.app import create_app
from tests.webpage.conftest import BOXES, fragment, place, running, to_rows


def at(page, x, y):
    """Return the pixel of a point of the page, whose y goes down."""
    return place(page, x, 1 - y)


def drag(page, *points):
    """Press the mouse at the first point, and release it at the last one."""
    mouse, (start, *others) = page.tab.mouse, [at(page, *point) for point in points]
    mouse.move(*start)
    mouse.down()
    for other in others:
        mouse.move(*other, steps=4)
    mouse.up()


def shown_order(page):
    """Return the order of the boxes from the numbers that they show."""
    numbers = page.tab.locator(".point text:not(.label)").all_text_contents()
    return np.argsort([int(number.removesuffix(".")) for number in numbers]).tolist()


def near(*boxes):
    return [pytest.approx(box, abs=3e-3) for box in boxes]


@pytest.mark.parametrize(("n", "labelled"), [(1, True), (6, True), (14, False), (60, True)])
def test_a_drawn_page_is_read_as_by_the_solver(page, models, n, labelled):
    solver = models["reading-order"]
    rng = np.random.default_rng(n)
    boxes = solver.task.sample(rng, 1, n)[0][rng.permutation(n)].round(4)
    boxes[:, 4] *= labelled
    elements = ";".join(",".join(map(str, row)) for row in to_rows(boxes))
    page.open(f"#task=reading-order&elements={elements}")
    page.see("#step-title", f"^Step {n + 1} of {n + 1}$")
    assert shown_order(page) == solver.solve(boxes).tolist()
    line = page.tab.locator(".shape path")
    assert line.count() == (n > 1) and "Z" not in (line.get_attribute("d") if n > 1 else "")


def test_an_answer_is_stepped_through_and_compared_with_nothing(page):
    page.open(fragment("reading-order"))
    page.see("#verdict", r"^Read in this order, [\d.]+% sure\.$")
    assert shown_order(page) == [1, 3, 0, 2, 4]
    text = page.tab.inner_text("main")
    assert "exact" not in text and "compared" not in text
    page.tab.click("#first")
    assert page.tab.locator(".point.answered").count() == 0
    page.tab.click("#forward")
    page.see("#step-text", "^It points at box 1, ")
    page.tab.click("#forward")
    page.see("#step-text", "^It points at box 3, ")
    assert page.tab.locator(".looks .look.chosen").count() == 1
    assert page.tab.locator(".point.answered").count() == 2
    page.tab.click("label[for=task-hull]")
    assert page.tab.locator("#exact-field").is_visible()


def test_the_first_page_has_a_dozen_labelled_boxes(page):
    page.open("#task=reading-order")
    labels = sorted(box[4] for box in page.elements())
    assert labels == ["caption", "page_footer", "picture", *["text"] * 8, "title"]
    page.tab.fill("#count", "200")
    page.tab.click("#random")
    assert len(page.elements()) == 200
    drag(page, (0.02, 0.1), (0.08, 0.2))
    page.see("#error", "at most 200 elements")


def test_boxes_are_drawn_moved_resized_and_removed(page):
    page.open(fragment("reading-order"))
    page.tab.click("#clear")
    page.see("#verdict", "Draw 1 more")
    drag(page, (0.1, 0.1), (0.4, 0.3))
    page.see("#verdict", "^Read")
    drag(page, (0.9, 0.8), (0.6, 0.5))  # from the lower right corner
    drag(page, (0.2, 0.7), (0.2005, 0.7), (0.2, 0.7))  # no box
    page.tab.mouse.click(*at(page, 0.3, 0.6))  # no box either
    first, second = [0.1, 0.1, 0.4, 0.3], [0.6, 0.5, 0.9, 0.8]
    assert page.elements() == near(first, second)
    drag(page, (0.25, 0.25), (0.3, 0.25))
    assert page.elements() == near([0.15, 0.1, 0.45, 0.3], second)
    drag(page, (0.25, 0.25), (0.3, 0.0))  # no farther than the board
    assert page.elements() == near([0.2, 0.0, 0.5, 0.2], second)
    drag(page, (0.9, 0.6), (0.95, 0.7))  # the right edge
    assert page.elements() == near([0.2, 0.0, 0.5, 0.2], [0.6, 0.5, 0.95, 0.8])
    drag(page, (0.6, 0.5), (0.5, 0.45))  # the corner on the upper left
    assert page.elements() == near([0.2, 0.0, 0.5, 0.2], [0.5, 0.45, 0.95, 0.8])
    drag(page, (0.5, 0.1), (0.1, 0.1))  # the right edge, beyond the left one
    assert page.elements() == near([0.1, 0.0, 0.2, 0.2], [0.5, 0.45, 0.95, 0.8])
    page.tab.click("#undo")
    assert page.elements() == near([0.2, 0.0, 0.5, 0.2], [0.5, 0.45, 0.95, 0.8])
    page.tab.mouse.dblclick(*at(page, 0.3, 0.1))
    page.see("#step-title", "^Step 2 of 2$")
    assert page.elements() == near([0.5, 0.45, 0.95, 0.8])


def test_unmoved_sides_keep_their_digits(page):
    page.open("#task=reading-order&elements=0.123456,0.2,0.4,0.654321,text;0.5,0.2,0.9,0.6")
    drag(page, (0.4, 0.4), (0.45, 0.4))
    assert page.elements()[0] == [0.123456, 0.2, pytest.approx(0.45, abs=3e-3), 0.654321, "text"]


def test_the_pointer_shows_what_it_would_do(page):
    page.open("#task=reading-order&elements=0.2,0.2,0.6,0.6;0.3,0.3,0.4,0.4")
    cursors = {
        (0.2, 0.5): "ew-resize",
        (0.5, 0.6): "ns-resize",
        (0.2, 0.2): "nwse-resize",
        (0.6, 0.2): "nesw-resize",
        (0.303, 0.35): "ew-resize",  # of the box inside the other one
        (0.5, 0.5): "move",
        (0.8, 0.8): "crosshair",
    }
    for point, expected in cursors.items():
        page.tab.mouse.move(*at(page, *point))
        style = "board => getComputedStyle(board).cursor"
        assert page.tab.locator("#board").evaluate(style) == expected, point


def test_boxes_are_drawn_by_keyboard_alone(page):
    page.open(fragment("reading-order"))
    page.tab.focus("#clear")
    page.tab.keyboard.press("Enter")
    page.tab.focus("#board")
    for key in ("Enter", "Shift+ArrowRight", "Shift+ArrowDown", "Enter"):  # from (0.5, 0.5)
        page.tab.keyboard.press(key)
    assert page.elements() == near([0.5, 0.5, 0.625, 0.625])
    for key in ("ArrowLeft", "ArrowLeft", "ArrowUp", "ArrowUp", "Enter"):  # picked up inside
        page.tab.keyboard.press(key)
    for key in ("Shift+ArrowLeft", "Enter"):
        page.tab.keyboard.press(key)
    assert page.elements() == near([0.375, 0.5, 0.5, 0.625])
    for key in ("ArrowRight", "ArrowRight", "Enter", "Shift+ArrowRight", "Enter"):  # by its edge
        page.tab.keyboard.press(key)
    assert page.elements() == near([0.375, 0.5, 0.625, 0.625])
    page.tab.keyboard.press("Delete")
    page.see("#verdict", "Draw 1 more")
    for key in ("Enter", "ArrowRight", "Tab"):  # left before the box has a height
        page.tab.keyboard.press(key)
    assert page.elements() == []


def test_labels_are_chosen_for_the_selected_box(page, models):
    page.open(fragment("reading-order"))
    assert page.tab.locator("#label-field").is_hidden()
    page.tab.mouse.click(*at(page, 0.7, 0.75))
    assert page.tab.input_value("#label") == ""
    options = page.tab.locator("#label option").all_inner_texts()
    assert tuple(options[1:]) == models["reading-order"].task.facts.instance_format["labels"]
    page.tab.select_option("#label", "footnote")
    assert page.elements()[4] == [0.55, 0.6, 0.9, 0.9, "footnote"]
    page.tab.select_option("#label", "")
    assert page.elements()[4] == [0.55, 0.6, 0.9, 0.9]
    page.tab.click("#undo")
    assert page.elements()[4][4] == "footnote"
    assert page.tab.locator("#label-field").is_hidden()  # no box is selected now


def test_instances_are_text_or_json(page):
    page.open(fragment("reading-order"))
    page.tab.click("#text-details summary")
    text = page.tab.input_value("#text")
    assert text.replace(", ", ",").replace("\n", ";") == BOXES
    boxes = [[550, 100, 950, 900], [50, 100, 450, 900], [50, 20, 950, 60]]
    document = {"boxes": boxes, "labels": ["text", None, "title"], "page": [1000, 1400]}
    page.tab.fill("#text", json.dumps(document))
    page.see("#step-title", "^Step 4 of 4$")
    assert page.elements() == [[*boxes[0], "text"], boxes[1], [*boxes[2], "title"]]
    assert shown_order(page) == [2, 1, 0]
    page.tab.fill("#text", "1 2 3 4\n\n5;6;7;8;caption\n")
    assert page.elements() == [[1, 2, 3, 4], [5, 6, 7, 8, "caption"]]
    page.tab.fill("#text", json.dumps(boxes))
    assert page.elements() == boxes


def test_invalid_boxes_show_an_error(page):
    page.open(fragment("reading-order"))
    page.tab.click("#text-details summary")
    for text, message in (
        ("1 2 3", "line 1: expected 4 numbers, got 3"),
        ("1 2 3 4 text\n1 2 3 4 5", "line 2: expected 4 numbers, got 5"),
        ("1 2 3 4 5%", 'line 1: expected a number, got "5%"'),
        ("3 2 1 4", "line 1: expected left <= right, got 3 and 1"),
        ('{"boxes": [[1, 4, 2, 3]]}', "element 1: expected top <= bottom, got 4 and 3"),
        ('{"boxes": [[1, 2, 3]]}', "element 1: expected 4 numbers, got 3"),
        ('{"boxes": [[1, 2, 3, 4]], "labels": []}', "a label or null for each of 1 boxes, got 0"),
        ('{"boxes": [[1, 2, 3, 4]], "labels": [5]}', "element 1: expected a label such as title"),
        ('{"bxes": []}', "expected a JSON list of elements"),
    ):
        page.tab.fill("#text", text)
        page.see("#text-error", message)


def test_unknown_labels_are_named(page):
    page.open(fragment("reading-order"))
    page.tab.click("#text-details summary")
    page.tab.fill("#text", "1 2 3 4 titel")
    page.see("#error", "unknown label 'titel'; did you mean 'title'")
    page.complaints = [c for c in page.complaints if "422" not in c]  # the browser's own message


def test_a_link_holds_boxes_and_labels(open_page, service):
    page = open_page(service)
    page.open(fragment("reading-order", decoder="beam", beam=3))
    page.tab.mouse.click(*at(page, 0.7, 0.75))
    page.tab.select_option("#label", "drop_capital")
    elements, link = page.elements(), page.tab.url
    assert elements[4][4] == "drop_capital"
    other = open_page(service)
    other.open("#" + link.split("#")[1])
    assert other.elements() == elements
    assert other.tab.input_value("#beam-size") == "3"
    other.check()


@pytest.mark.parametrize("direction", ["rtl", "vertical"])
def test_pages_are_read_in_the_direction_of_the_model(open_page, models, direction):
    name = f"pages-{direction}"
    with running(create_app({name: models[name]})) as address:
        page = open_page(address)
        page.open("#task=reading-order&elements=0.1,0.1,0.45,0.9;0.55,0.1,0.9,0.9")
        page.see("#model", direction)
        page.see("#step-title", "^Step 3 of 3$")
        boxes = [[*box, 0] for box in page.elements()]
        assert shown_order(page) == models[name].solve(boxes).tolist() == [1, 0]
        page.check()


def test_a_box_may_be_removed_while_it_is_moved(page):
    page.open(fragment("reading-order"))
    page.tab.mouse.move(*at(page, 0.7, 0.75))
    page.tab.mouse.down()
    page.tab.mouse.move(*at(page, 0.7, 0.8))
    page.tab.evaluate("document.getElementById('clear').click()")
    page.tab.mouse.move(*at(page, 0.7, 0.7))
    page.tab.mouse.up()
    page.see("#verdict", "Draw 1 more")
    assert page.elements() == []
