"""The playground in a real browser."""

import json
import re

import pytest
from playground.visitor import eventually, way_to
from playwright.sync_api import expect

import planvec as pv
from planvec.errors import InputError
from planvec.playground import sharing

START = "#world=crafting&A=ChopTree~0&B=MakeBread%2CEatBread~1&plan=A+%2B+B&scene=0&agent=crafting"


def finish(page):
    """Run, as fast as the page can, to the verdict."""
    page.locator("#speed").select_option("4")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#verdict span").first).to_be_visible()


def ticks(page, skill):
    return page.locator(".stage").first.get_by_role("row", name=re.compile(skill)).locator(".check")


def write(page, plan):
    page.get_by_label("Add, subtract and multiply").fill(plan)


def test_add_two_demonstrations_and_watch(open_page):
    """What a first visitor does: nothing but press Run."""
    page = open_page()
    expect(page.locator(".letter").first).to_be_visible()
    expect(page.locator("#plan-words")).to_have_text("In words: chop tree, make bread and eat bread")
    finish(page)
    for skill in ("chop tree", "make bread", "eat bread"):
        expect(ticks(page, skill)).to_have_text("☑")
    expect(ticks(page, "break rock")).to_have_text("–")
    expect(page.locator("#verdict")).to_contain_text("Done in")


def test_the_guide_leads_through_the_page(open_page):
    """From the first Run to the end, with what it suggests."""
    page = open_page()
    guide = page.locator("#guide")
    expect(guide).to_have_text("New here? Press Run.")
    finish(page)
    expect(guide).to_contain_text("It did both. Now take A away: try C − A")
    guide.get_by_role("button", name="C − A").click()
    expect(page.locator("#plan-words")).to_have_text("In words: make bread and eat bread")
    expect(page.locator("table.sum thead th")).to_have_text(["C", "− A", "= plan"])
    expect(guide).to_have_text("Press Run.")
    finish(page)
    expect(page.locator("#verdict")).to_contain_text("make bread and eat bread. And nothing else.")
    expect(ticks(page, "chop tree")).to_have_text("–")
    expect(guide).to_contain_text("New scene")
    page.get_by_role("button", name="New scene").click()
    expect(guide).to_contain_text("often fails")
    guide.get_by_role("button", name="8×A").click()
    expect(page.locator("#plan-words")).to_have_text("In words: chop tree 8 times")


def test_board_and_checklist_are_in_sight_together(open_page):
    page = open_page(START, viewport={"width": 1280, "height": 800})
    page.get_by_role("button", name="Run").click()
    board, rows = page.locator(".stage .board").bounding_box(), page.locator(".left tr")
    expect(rows).to_have_count(5)
    for row in rows.all():
        box = row.bounding_box()
        assert box["x"] >= board["x"] + board["width"] and box["y"] + box["height"] <= 800


def test_the_sum_is_drawn_in_bars_and_on_the_map(open_page):
    page = open_page(START)
    rows = page.locator("table.sum tbody tr")
    expect(rows).to_have_count(5)
    expect(page.locator("table.sum thead th")).to_have_text(["A", "+ B", "= plan"])
    figures = [
        [float(text.replace("−", "-")) for text in row.locator(".figure").all_inner_texts()] for row in rows.all()
    ]
    for a, b, plan in figures:
        assert plan == pytest.approx(a + b, abs=0.16)
    expect(page.locator("#map .arrow")).to_have_count(4)  # A, then B; both; and B from the middle
    expect(page.locator("#map .tag.whole")).to_have_text("A + B")
    assert page.locator("#map .dots > g").count() > 100
    write(page, "2*A - B")
    expect(page.locator("table.sum thead th")).to_have_text(["2 × A", "− B", "= plan"])
    expect(page.locator("#map .tag.whole")).to_have_text("2×A − B")
    below = page.get_by_role("row", name="eat bread").first.locator("td").nth(1)
    bar, line = (below.locator(part).bounding_box() for part in (".bar.below", ".origin"))
    assert bar["width"] > 10 and bar["x"] + bar["width"] <= line["x"] + 2  # to the left of zero
    write(page, "A + B - A")
    expect(page.locator("table.sum thead th")).to_have_text(["A", "+ B", "− A", "= plan"])
    expect(page.locator("#map .arrow.minus")).to_have_count(1)
    write(page, "A + ")
    expect(page.locator("#map .arrow")).to_have_count(0)


def test_small_letters_and_halves(open_page):
    page = open_page(START)
    expect(page.get_by_role("button", name="Run")).to_be_enabled()
    write(page, "a/2 − b")
    words = page.locator("#plan-words")
    expect(words).to_contain_text("In words: half of chop tree, minus make bread and eat bread")
    expect(words).to_contain_text("judged by whole skills, halves are none: nothing")
    write(page, "½a")
    expect(words).to_contain_text("half of chop tree")
    finish(page)
    expect(page.locator("#verdict")).to_contain_text("The plan asks for no whole skill")


def test_what_comes_too_late_is_not_shown(open_page):
    """A run that is asked for, and another agent chosen before it begins."""
    page = open_page(START)
    expect(page.get_by_role("button", name="Run")).to_be_enabled()
    page.evaluate(
        """() => {
            document.querySelector("#run").click();
            const other = document.querySelector("#other");
            other.value = "crafting-te-full";
            other.dispatchEvent(new Event("change"));
        }"""
    )
    page.wait_for_timeout(500)
    expect(page.locator(".stage")).to_have_count(0)
    finish(page)
    expect(page.locator(".stage")).to_have_count(2)


def test_the_skip_link_disturbs_nothing(open_page):
    page = open_page(START.replace("plan=A+%2B+B", "plan=9*A"))
    page.get_by_role("button", name="Run").click()
    expect(page.locator(".steps")).to_have_text(re.compile("step [1-9]"))
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#plan-text")).to_be_focused()
    page.evaluate("location.hash = '#act'")
    page.wait_for_timeout(300)
    expect(page.locator(".stage")).to_have_count(1)
    assert "plan=9" in page.url


def test_trouble_with_the_server_is_told_and_passes(open_page):
    """A mistake while recording, then a server that is gone for a while."""
    sockets = []

    def between(socket):
        server = socket.connect_to_server()

        def told(text):
            message = json.loads(text)
            if message["do"] == "move":
                socket.send(json.dumps({"is": "mistake", "reason": "no more", "number": message["number"]}))
            else:
                server.send(text)

        socket.on_message(told)
        sockets.append(socket)

    page = open_page(START, route=between)
    expect(page.get_by_role("button", name="Run")).to_be_enabled()
    page.get_by_role("button", name="Record your own").click()
    expect(page.locator("#record-held")).to_contain_text("0 steps")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("dialog").get_by_role("alert")).to_have_text("no more")
    sockets[0].close(code=1001)
    expect(page.locator("#notice")).to_contain_text("Start planvec play again")
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert page.locator("#new").evaluate("button => Boolean(button.closest('[inert]'))")
    expect(page.locator("#notice")).to_be_hidden()  # it has reconnected by itself
    expect(page.locator("#plan-words")).to_have_text("In words: chop tree, make bread and eat bread")
    assert len(sockets) == 2
    finish(page)


def test_the_shelf_full_and_empty(open_page):
    demos = "&".join(f"{letter}=EatBread~0" for letter in "ABCDEFGHIJKL")
    page = open_page(f"#world=crafting&{demos}&plan=A&scene=0&agent=crafting")
    expect(page.locator(".card-task")).to_have_count(12)
    page.get_by_role("button", name="New demonstration").click()
    page.get_by_role("dialog").get_by_role("button", name="break rock").click()
    page.get_by_role("dialog").get_by_role("button", name="Demonstrate").click()
    expect(page.locator("#notice")).to_contain_text("The shelf is full")
    page.locator("#about").scroll_into_view_if_needed()
    expect(page.locator("#notice")).to_be_in_viewport()
    for letter in "ABCDEFGHIJKL":
        page.get_by_role("button", name=f"Remove demonstration {letter}").click()
        expect(page.locator("#notice")).to_be_hidden()
    expect(page.locator("#no-cards")).to_be_visible()


def test_bad_expressions_are_told_and_cannot_be_run(open_page):
    page = open_page(START)
    expect(page.get_by_role("button", name="Run")).to_be_enabled()
    write(page, "A + + B")
    expect(page.get_by_role("alert")).to_contain_text("expected a name")
    expect(page.locator(".caret mark")).to_have_text("+")
    expect(page.get_by_role("button", name="Run")).to_be_disabled()
    write(page, "<img src=x onerror=alert(1)>")
    expect(page.get_by_role("alert")).to_contain_text("'<' has no place in a plan")
    write(page, "A * B")
    expect(page.get_by_role("alert")).to_contain_text("a plan times a plan")
    write(page, "A")
    expect(page.get_by_role("alert")).to_be_hidden()
    expect(page.get_by_role("button", name="Run")).to_be_enabled()


def test_a_reload_and_a_link_bring_everything_back(open_page):
    page = open_page(START)
    expect(page.get_by_role("button", name="Run")).to_be_enabled()
    page.get_by_role("button", name="New demonstration").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="break rock").click()
    dialog.get_by_role("button", name="Demonstrate").click()
    expect(page.locator("#card-C .card-task")).to_have_text("break rock")
    write(page, "A + C")
    expect(page.locator("#plan-words")).to_have_text("In words: chop tree and break rock")
    finish(page)
    verdict = page.locator("#verdict").inner_text()
    link = page.url
    page.reload()
    for again in (page, open_page(link[link.index("#") :])):
        expect(again.locator("#card-C .card-task")).to_have_text("break rock")
        expect(again.locator("#plan-words")).to_have_text("In words: chop tree and break rock")
        finish(again)
        assert again.locator("#verdict").inner_text() == verdict


def test_two_browsers_at_once(open_page):
    one, two = open_page(START), open_page(START.replace("plan=A+%2B+B", "plan=B").replace("scene=0", "scene=1"))
    for page in (one, two):
        expect(page.get_by_role("button", name="Run")).to_be_enabled()
        page.locator("#speed").select_option("2")
        page.get_by_role("button", name="Run").click()
    for page in (one, two):
        expect(page.locator("#verdict")).to_contain_text("Done in")
    expect(ticks(one, "chop tree")).to_have_text("☑")
    expect(ticks(two, "chop tree")).to_have_text("–")


def test_pause_step_and_new_scene(open_page):
    page = open_page(START)
    page.get_by_role("button", name="Run").click()
    steps = page.locator(".steps")
    expect(steps).to_have_text(re.compile("step [1-9]"))
    page.get_by_role("button", name="Pause").click()
    at = int(steps.inner_text().split()[1])
    page.get_by_role("button", name="Step").click()
    expect(steps).to_have_text(re.compile(f"step {at + 1} of"))
    page.wait_for_timeout(250)
    expect(steps).to_have_text(re.compile(f"step {at + 1} of"))
    before = page.locator("canvas.board").first.screenshot()
    page.get_by_role("button", name="New scene").click()
    expect(page.locator("#verdict span").first).to_be_visible()
    assert "scene=0" not in page.url
    assert page.locator("canvas.board").first.screenshot() != before


def test_record_ones_own_with_the_keyboard(open_page):
    page = open_page(START, script="Math.random = () => 4e-6")  # scene 4
    expect(page.get_by_role("button", name="Run")).to_be_enabled()
    page.get_by_role("button", name="Record your own").click()
    held = page.locator("#record-held")
    expect(held).to_have_text("in hand: nothing · 0 steps")
    expect(page.get_by_role("button", name="Keep it")).to_be_disabled()
    scene = pv.make("crafting").player(4).steps[0]
    for number, move in enumerate(way_to("bread", [*scene.cells[0], scene.agent[0], 0]), start=1):
        page.keyboard.press(["ArrowUp", "s", "ArrowLeft", "d"][move])
        expect(held).to_contain_text(f" {number} step")
    expect(page.locator("#record-done")).to_have_text("eat bread")
    page.get_by_role("button", name="Keep it").click()
    expect(page.locator("#card-C")).to_contain_text("by you")
    write(page, "C")
    expect(page.locator("#plan-words")).to_have_text("In words: eat bread")
    page.reload()
    expect(page.locator("#card-C")).to_contain_text("by you")


def test_two_agents_side_by_side(open_page, playground):
    page = open_page(START)
    expect(page.get_by_role("button", name="Run")).to_be_enabled()
    page.get_by_label("compared with").select_option("crafting-te-full")
    finish(page)
    expect(page.locator("#verdict")).to_contain_text("te-full: ")
    page.get_by_label("compared with").select_option(playground.untrained)
    finish(page)
    expect(page.locator(".stage")).to_have_count(2)
    expect(page.locator("#verdict")).to_contain_text("potential: Done in")
    expect(page.locator("#verdict")).to_contain_text("cpv-full, untrained: ")


def test_a_page_that_is_closed_leaves_nothing_running(open_page, playground):
    page = open_page(START.replace("plan=A+%2B+B", "plan=9*A"))
    page.get_by_role("button", name="Run").click()
    expect(page.locator(".steps")).to_have_text(re.compile("step [1-9]"))
    page.close()
    assert eventually(lambda: not playground.shared.rounds.watchers and not playground.state.visitors)


def test_a_foreign_page_gets_no_socket(browser, playground):
    page = browser.new_page()
    page.goto("about:blank")
    outcome = page.evaluate(
        """address => new Promise(resolve => {
            const socket = new WebSocket(address);
            socket.onopen = () => resolve("open");
            socket.onerror = () => resolve("refused");
        })""",
        f"ws://127.0.0.1:{playground.port}/socket",
    )
    page.close()
    assert outcome == "refused"


def test_a_phone(open_page):
    """Nothing is wider than the screen; Enter runs the plan that is written."""
    page = open_page(START, viewport={"width": 360, "height": 740}, color_scheme="dark")
    expect(page.get_by_role("button", name="Run")).to_be_enabled()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    write(page, "A + B - A")
    expect(page.locator("table.sum thead th")).to_have_count(4)
    assert page.locator("#sum").evaluate("sum => sum.scrollWidth <= sum.clientWidth")
    page.get_by_label("Add, subtract and multiply").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#verdict")).to_contain_text("Done in")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(25, 29, 27)"
    page.get_by_role("button", name=re.compile("Colours")).click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(251, 250, 246)"


def press(page, element, key="Enter"):
    """Go to an element with Tab, from wherever the page is, and press a key there."""
    for _ in range(40):
        page.keyboard.press("Tab")
        if element.evaluate("element => element === document.activeElement"):
            return page.keyboard.press(key)
    pytest.fail(f"Tab does not reach {element}")


def test_everything_with_the_keyboard_alone(open_page):
    page = open_page(START)
    run, pause, step, scene, new = (
        page.get_by_role("button", name=name) for name in ("Run", "Pause", "Step", "New scene", "New demonstration")
    )
    expect(run).to_be_enabled()
    press(page, page.get_by_role("button", name=re.compile("Colours")))
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    dialog = page.get_by_role("dialog")
    press(page, new)
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(new).to_be_focused()
    page.keyboard.press("Enter")
    press(page, dialog.get_by_role("button", name="break rock"), "Space")
    press(page, dialog.get_by_role("button", name="Demonstrate"))
    expect(page.locator("#card-C .card-task")).to_have_text("break rock")
    press(page, run)
    steps = page.locator(".steps")
    expect(steps).to_have_text(re.compile("step [1-9]"))
    press(page, pause)
    at = int(steps.inner_text().split()[1])
    press(page, step)
    expect(steps).to_have_text(re.compile(f"step {at + 1} of"))
    press(page, scene, "Space")
    expect(page).not_to_have_url(re.compile("scene=0"))


def test_whoever_wants_little_motion_gets_it(open_page):
    """Films play at the press of a button alone, and bars jump."""
    page = open_page(START)
    film = page.locator("#card-A .when").first
    expect(film).to_have_text(re.compile("step"))
    assert page.locator(".bar").first.evaluate("bar => getComputedStyle(bar).transitionDuration") != "0s"
    page = open_page(START, reduced_motion="reduce")
    film = page.locator("#card-A .when").first
    page.locator("#card-A .pictures").hover()
    page.wait_for_timeout(300)
    assert film.inner_text() == "before"
    assert page.locator(".bar").first.evaluate("bar => getComputedStyle(bar).transitionDuration") == "0s"
    page.get_by_role("button", name="Play demonstration A").click()
    expect(film).to_have_text(re.compile("step"))


def test_a_world_that_cannot_be_opened(open_page, playground, monkeypatch):
    def missing(name):
        raise InputError("the tabletop needs mujoco: pip install 'planvec[tabletop]'")

    monkeypatch.setattr(sharing, "make", missing)
    page = open_page("#world=tabletop")  # which no other test opens
    expect(page.locator("#notice")).to_contain_text("the tabletop needs mujoco: pip install 'planvec[tabletop]'")
    expect(page.locator("#notice")).to_contain_text("If you started with make play")
    expect(page.locator("#shelf")).to_be_hidden()
    monkeypatch.undo()
    page.get_by_role("radio", name="crafting").check(force=True)
    expect(page.get_by_role("button", name="Run")).to_be_enabled()
