"""The page with a service that is gone or slow, needs a token, or has no model."""

import threading

from ptrnet.serve import tracing
from ptrnet.serve.app import create_app
from tests.page.conftest import fragment, place, running


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
    monkeypatch.setattr("ptrnet.serve.service.EXACT_SECONDS", 0.0)
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
