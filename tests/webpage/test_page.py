"""The page in a browser, with answers from a service.

The service may also be gone or slow, need a token, or have no model.
"""

import re
import threading

import numpy as np
import pytest

import ptrnet
from ptrnet import labellers
from ptrnet.serve import tracing
from ptrnet.serve.app import create_app
from ptrnet.webpage import FOLDER, INDEX, parts
from tests.webpage.conftest import TASKS, fragment, place, running


@pytest.mark.parametrize("task", TASKS)
def test_each_task_is_answered_and_stepped_through(page, models, task):
    page.open(fragment(task))
    page.see("#verdict", "^Right")
    answer = models[task].answer(np.array(page.elements()))
    total = int(page.tab.locator("#position").get_attribute("max"))
    page.see("#step-title", f"^Step {total} of {total}$")
    assert page.tab.locator(".point.answered").count() == len(np.unique(answer.outputs))
    page.tab.click("#first")
    page.see("#step-title", f"^Step 0 of {total}$")
    assert page.tab.locator(".point.answered").count() == 0
    for step in range(1, 4):
        page.tab.click("#forward")
        page.see("#step-title", f"^Step {step} of {total}$")
        looks = page.tab.locator(".looks .look").evaluate_all(
            "lines => lines.map(line => [line.getAttribute('stroke-width'), "
            "line.dataset.probability].map(Number))"
        )
        assert all(width == pytest.approx(1 + 15 * p, abs=0.01) for width, p in looks)
        assert looks or "Only" in page.tab.inner_text("#step-text")
    page.tab.click("#back")
    page.see("#step-title", f"^Step 2 of {total}$")


def test_points_are_drawn_moved_and_removed(page):
    page.open(fragment("hull"))
    page.tab.click("#clear")
    page.see("#verdict", "Draw 1 more")
    corners = [(0.1, 0.1), (0.9, 0.1), (0.9, 0.9), (0.1, 0.9), (0.6, 0.6)]
    for corner in corners:
        page.tab.mouse.click(*place(page, *corner))
        page.tab.wait_for_timeout(350)  # two quick clicks would remove
    page.see("#verdict", "Right: the hull has these 4 vertices")
    page.tab.mouse.click(*place(page, 0.98, 0.5))
    page.see("#verdict", "these 5 vertices")
    page.tab.click("#undo")
    page.see("#verdict", "these 4 vertices")
    assert np.allclose(page.elements(), corners, atol=2e-3)
    page.tab.mouse.move(*place(page, 0.6, 0.6))
    page.tab.mouse.down()
    page.tab.mouse.move(*place(page, 0.6, 0.98), steps=4)
    page.see("#verdict", "these 5 vertices")  # while the pointer moves
    page.tab.mouse.up()
    assert page.elements()[4] == pytest.approx([0.6, 0.98], abs=2e-3)
    page.tab.click("#undo")
    page.see("#verdict", "these 4 vertices")
    page.tab.mouse.dblclick(*place(page, 0.1, 0.1))
    page.see("#verdict", "these 3 vertices")
    assert len(page.elements()) == 4


def test_the_beams_prefixes_are_seen_on_demand(page):
    page.open(fragment("tsp"))
    assert page.tab.locator("#beam-details").is_hidden()
    page.tab.select_option("#decoder", "beam")
    page.see("#facts", "tsp, beam")
    page.tab.fill("#beam-size", "3")
    page.tab.press("#beam-size", "Tab")
    page.tab.click("#beam-details summary")
    page.tab.click("#back")
    page.see("#prefixes", r"0 \d")
    page.elements()
    assert "beam=3" in page.tab.url
    rows = page.tab.locator("#prefixes button")
    assert 1 < rows.count() <= 3 and page.tab.locator(".other path").count() == 0
    rows.nth(1).focus()
    page.tab.wait_for_selector(".other path", state="attached")


def test_invalid_pasted_instances_show_an_error(page):
    page.open(fragment("hull"))
    page.tab.click("#text-details summary")
    page.tab.fill("#text", "0.1, 0.2\n0.3 nothing\n")
    page.see("#text-error", 'line 2: expected a number, got "nothing"')
    assert page.tab.get_attribute("#text", "aria-invalid") == "true"
    page.tab.fill("#text", "[[0, 0], [40, 0], [40, 30], [0, 30], [20, 10]]")
    page.see("#verdict", "these 4 vertices")
    assert page.tab.inner_text("#text-error") == ""
    page.tab.click("label[for=task-sort]")
    page.tab.fill("#text", "\n1\n0,7\n0,2")  # once, this was read as 1, 0, 7, 0 and 2
    page.see("#text-error", 'line 3: expected a number such as 0.5, got "0,7"')
    page.tab.click("label[for=task-delaunay]")
    page.tab.fill("#text", "[[0, 0], [40, 0], [40, 30], [0, 30], [20, 10]]")
    page.see("#verdict", "these 4 triangles")
    page.tab.fill("#text", "0 0\n1 1\n2 2")
    page.see("#error", "all points lie on one line")
    page.complaints = [c for c in page.complaints if "422" not in c]  # the browser's own message


def test_sizes_outside_the_training_are_marked(page):
    page.open("#task=delaunay&elements=0.1,0.2;0.8,0.1;0.9,0.7")
    page.see("#warning", "trained on instances of 5-15 elements, this one has 3")
    page.open(fragment("delaunay"))
    assert page.tab.locator("#warning").is_hidden()


def test_a_link_holds_the_instance(open_page, service):
    page = open_page(service)
    page.open(fragment("tsp", decoder="beam", beam=5))
    elements, verdict = page.elements(), page.tab.inner_text("#verdict")
    link = page.tab.url
    other = open_page(service)
    other.open("#" + link.split("#")[1])
    assert (other.elements(), other.tab.inner_text("#verdict")) == (elements, verdict)
    assert other.tab.input_value("#beam-size") == "5"
    assert other.tab.locator("#error").is_hidden()
    other.check()


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("#task=nothing&elements=what", "for task nothing, but there is no model"),
        ("#task=constructor", "for task constructor, but there is no model"),
        ("#task=hull&elements=0.1,0.2;0.3", "invalid: line 2: expected 2 numbers, got 1"),
        ("#task=sort&elements=" + ";".join("1" * 201), "invalid: expected at most 200 elements"),
        (
            "#task=sort&model=mine&elements=2;1",
            "for model mine, which is not here; sort answers instead",
        ),
    ],
)
def test_a_link_with_invalid_fields_shows_an_error(page, link, message):
    """The page shows a random instance instead, and must not present it as the link's."""
    page.open(link)
    page.see("#error", message)


def test_the_field_shows_how_many_random_points_were_drawn(page):
    page.open(fragment("hull"))
    for text, count in (("-3", 1), ("2.6", 3), ("201", 200), ("", 1)):
        page.tab.fill("#count", text)
        page.tab.click("#random")
        assert page.tab.input_value("#count") == str(count) and len(page.elements()) == count
    page.wait()


def test_a_link_that_is_followed_is_not_overwritten(open_page, service):
    """A change before the link is not yet in the address when the user follows the link."""
    page = open_page(service)
    hold = "addEventListener('hashchange', event => held && event.stopImmediatePropagation())"
    page.tab.add_init_script(f"window.held = false; {hold}")
    page.open(fragment("hull"))
    page.tab.evaluate(
        """hash => {
            window.held = true;
            document.getElementById("clear").click();
            location.hash = hash;
        }""",
        fragment("tsp"),
    )
    page.tab.wait_for_timeout(1000)
    assert "task=tsp" in page.tab.evaluate("location.hash")
    page.tab.evaluate("held = false; dispatchEvent(new HashChangeEvent('hashchange'))")
    page.see("#model", "tsp")
    page.check()


def test_an_answer_appears_point_by_point(open_page, service):
    page = open_page(service, reduced_motion="no-preference")
    page.open(fragment("hull"))
    total = int(page.tab.locator("#position").get_attribute("max"))
    page.see("#step-title", f"^Step [1-{total - 1}] of {total}$")
    page.see("#step-title", f"^Step {total} of {total}$")
    page.check()


def test_the_page_works_by_keyboard_alone(page):
    page.open(fragment("hull"))
    page.tab.focus("#clear")
    page.tab.keyboard.press("Enter")
    page.tab.focus("#board")
    for key in ("Enter", "Shift+ArrowRight", "Enter", "Shift+ArrowUp", "Enter"):
        page.tab.keyboard.press(key)
    page.see("#verdict", "these 3 vertices")
    for key in ("Enter", "ArrowUp", "ArrowUp", "Enter"):  # picked up, moved, dropped
        page.tab.keyboard.press(key)
    assert page.elements()[2] == pytest.approx([0.625, 0.675], abs=2e-3)
    page.tab.keyboard.press("Delete")
    page.see("#verdict", "these 2 vertices")
    page.tab.focus("#position")
    page.tab.keyboard.press("Home")
    page.see("#step-title", "^Step 0 of 3$")
    page.tab.keyboard.press("ArrowRight")
    page.see("#step-title", "^Step 1 of 3$")
    assert "step 1 of 3" in page.tab.get_attribute("#position", "aria-valuetext")


@pytest.mark.parametrize("task", ["hull", "reading-order"])
def test_every_control_has_a_name(page, task):
    page.open(fragment(task, decoder="beam"))
    page.tab.mouse.click(*place(page, 0.1, 0.2))  # shows the controls of the selected element
    nameless = page.tab.locator("button, input, select, textarea, svg[tabindex]").evaluate_all(
        "all => all.filter(e => !e.getAttribute('aria-label') && !e.textContent.trim())"
        ".filter(e => !e.labels?.length)"
        ".map(e => e.outerHTML)"
    )
    assert nameless == []
    assert page.tab.get_attribute("#verdict", "aria-live") == "polite"
    assert page.tab.get_attribute("html", "lang") == "en"


@pytest.mark.parametrize("width", [320, 360])
def test_the_page_fits_a_phone_and_its_buttons_a_finger(open_page, service, width):
    page = open_page(
        service, viewport={"width": width, "height": 740}, has_touch=True, is_mobile=True
    )
    page.open(fragment("hull"))
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= width
    assert page.tab.locator("#board").bounding_box()["width"] > 0.8 * width
    page.tab.touchscreen.tap(*place(page, 0.97, 0.97))
    page.see("#verdict", "^Right")
    assert len(page.elements()) == 7
    page.open(fragment("reading-order"))  # whose model has a long list of trained sizes
    page.tab.touchscreen.tap(*place(page, 0.25, 0.5))
    assert page.tab.locator("#label").is_visible()
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= width
    page.check()


def test_the_page_is_small_and_loads_nothing_from_elsewhere():
    contents = {**parts(), INDEX: (FOLDER / INDEX).read_bytes()}
    assert sum(map(len, contents.values())) < 200_000
    for name, content in contents.items():
        text = content.decode()
        urls = set(re.findall(r"https?://[^\s\"'<>]+", text)) - {"http://www.w3.org/2000/svg"}
        assert not urls, name
        assert not re.search(r"<script(?![^>]*src=)|\sstyle=|\son\w+=\"|<style", text), name


def test_the_page_shows_the_labellers_numbers(page):
    """Exact answers in JavaScript, also for instances in which rounding matters."""
    page.open(fragment("hull"))
    rng = np.random.default_rng(3)
    grid = np.stack(np.meshgrid(*[np.arange(4) / 10] * 2), -1).reshape(-1, 2)
    clouds = [rng.random((n, 2)) for n in (1, 2, 3, 5, 9, 30)]
    clouds += [grid, rng.permutation(grid), rng.integers(0, 5, (20, 2)) / 10.0]
    clouds += [np.repeat(rng.random((4, 2)), 2, axis=0), np.outer(np.arange(5), [0.1, 0.3]) + 0.1]
    clouds += [rng.random((8, 2)) * 1e-9 + 0.3, rng.random((9, 2)) * 1e12]
    module = "await import(new URL('page/exact/label.js', document.baseURI))"
    labels = page.tab.evaluate(
        f"async all => {{ const {{ label, compare }} = {module};"
        "return all.map(([task, instance]) => { const exact = label(task, instance);"
        "return exact && {...exact, ...compare(task, instance, exact.outputs, exact)}; }) }",
        [["hull", cloud.tolist()] for cloud in clouds]
        + [["delaunay", cloud.tolist()] for cloud in clouds]
        + [["tsp", cloud.tolist()] for cloud in clouds]
        + [["sort", cloud[:, :1].tolist()] for cloud in clouds],
    )
    count = len(clouds)
    for k, cloud in enumerate(clouds):
        hull, triangles, tour, order = (labels[k + j * count] for j in range(4))
        check_hull(cloud, hull)
        check_triangles(cloud, triangles)
        check_tour(cloud, tour)
        assert order["outputs"] == np.argsort(cloud[:, 0], kind="stable").tolist()
        assert order["correct"]


def check_hull(cloud, label):
    task = ptrnet.load("hull").task
    (expected,) = labellers.label(task, cloud[None])
    assert label["outputs"] == expected.tolist() and label["correct"]


def check_triangles(cloud, label):
    task = ptrnet.load("delaunay").task
    if len(cloud) < 3 or task.instance_error(cloud):
        assert label is None or len(cloud) < 3
        return
    from ptrnet.metrics.triangulation import is_delaunay

    assert label["correct"] and is_delaunay(cloud, np.array(label["outputs"]))


def check_tour(cloud, label):
    from ptrnet.labellers.held_karp import shortest_tour

    tour = label["outputs"]
    assert sorted(tour) == list(range(len(cloud))) and tour[0] == 0
    length = np.linalg.norm(cloud[tour] - cloud[np.roll(tour, -1)], axis=1).sum()
    assert label["cost"] == pytest.approx(length)
    assert label["proved"] == (len(cloud) <= 12)
    if 3 <= len(cloud) <= 9:
        dist = np.linalg.norm(cloud[:, None] - cloud[None], axis=-1)
        best = shortest_tour(dist)
        known = dist[best, np.roll(best, -1)].sum()
        assert label["cost"] == pytest.approx(known, rel=1e-9)


def test_a_link_to_a_task_without_a_model_shows_an_error(open_page, models):
    with running(create_app({"hull": models["hull"]})) as address:
        page = open_page(address)
        page.open(fragment("sort"))
        page.see("#error", "there is no model for this task here")
        assert {len(element) for element in page.elements()} == {2}
        page.check()


def test_the_page_says_that_the_service_has_ended(open_page, models):
    with running(create_app({"hull": models["hull"]})) as address:
        page = open_page(address)
        page.open(fragment("hull"))
    page.tab.mouse.click(*place(page, 0.95, 0.95))
    page.see("#error", "The service does not answer")


def test_a_slow_exact_answer_appears_later(open_page, models, monkeypatch):
    monkeypatch.setattr("ptrnet.serve.service.EXACT_SECONDS", 0.1)
    released = threading.Event()
    exact_of = tracing.exact_of
    monkeypatch.setattr(tracing, "exact_of", lambda *of: released.wait(60) and exact_of(*of))
    with running(create_app({"hull": models["hull"]})) as address:
        page = open_page(address)
        page.tab.goto(address + fragment("hull"))
        page.see("#verdict", "the exact answer is still being computed")
        released.set()
        page.see("#verdict", "^Right")
        page.check()


def test_the_page_recovers_when_the_service_returns(open_page, service):
    page = open_page(service)
    page.open(fragment("hull"))
    page.tab.route("**/v1/**", lambda route: route.abort())
    page.tab.mouse.click(*place(page, 0.95, 0.95))
    page.see("#error", "The service does not answer")
    assert page.tab.locator(".shape path").count() == 0
    page.tab.unroute("**/v1/**")
    page.tab.click("#undo")
    page.see("#verdict", "^Right")
    assert page.tab.locator("#error").is_hidden()


def test_the_token_is_asked_for_and_kept_in_memory(open_page, models):
    app = create_app({"hull": models["hull"]}, token="letmein-letmein-letmein")
    with running(app) as address:
        page = open_page(address)
        page.tab.goto(address)
        page.see("#error", "expected Bearer")
        page.tab.mouse.click(*place(page, 0.5, 0.5))  # there is no board to draw on yet
        page.tab.fill("#token", "letmein-letmein-letmein")
        page.tab.keyboard.press("Enter")
        page.wait()
        assert [c for c in page.complaints if "401" not in c] == []
        stores = "[{...localStorage}, {...sessionStorage}, document.cookie]"
        kept = page.tab.evaluate(f"JSON.stringify({stores})")
        assert kept == '[{},{},""]' and "letmein" not in page.tab.url
        assert page.tab.locator("#task-tsp").count() == 0  # this task has no model
        page.context.close()
