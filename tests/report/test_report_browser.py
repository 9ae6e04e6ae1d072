"""Reports in a real browser, headless Chromium: `make test-browser` installs what these tests need."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from report_runs import EMOJI, IMAGE, NASTY, bitstrings, own_task, policy, regression, tree_task

import discodso
from discodso import DisCoSettings, OpenSequence, Space, Task, Token, search
from discodso.disco.settings import RestartSettings
from discodso.report.writing import write_report

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))),
    None,
)
WIDTHS = {"desktop": 1280, "phone": 390}


@pytest.fixture(scope="module")
def browser():
    missing = "" if CHROMIUM else "there is no Chromium"
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing = "playwright is not installed"
    if missing:
        if os.environ.get("DISCODSO_BROWSER") == "required":
            pytest.fail(missing)
        pytest.skip(f"{missing}; run `make test-browser`, which installs it")
    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory, browser):
    """One report of each kind."""
    place = tmp_path_factory.mktemp("reports")
    bits = bitstrings(place / "bitstring")
    long = tuple(f"a_long_name_of_part_{n}_of_this_tree" for n in range(3))
    return {
        "bitstring": write_report(bits[:1], place / "bitstring.html"),
        "regression": write_report([regression(place / "regression")], place / "regression.html"),
        "one-input": write_report([regression(place / "one-input", ("speed",))], place / "one-input.html"),
        "policy": write_report([policy(place / "policy")], place / "policy.html"),
        "own": write_report([own_task(place / "own")], place / "own.html"),
        "tree": write_report([tree_task(place / "tree")], place / "tree.html"),
        "wide": write_report([tree_task(place / "wide", long, (40, 40))], place / "wide.html"),
        "comparison": write_report(bits, place / "comparison.html"),
        "several": write_report([bits[0], place / "policy", place / "own"], place / "several.html"),
        "nasty": write_report(
            [
                own_task(place / "run <b>&'\"", (NASTY, IMAGE, EMOJI), f"{NASTY} {IMAGE}"),
                regression(place / "nasty", (NASTY, f"{IMAGE} {EMOJI}".replace("\u2028", "")), "<script>"),
            ],
            place / "nasty.html",
        ),
    }


KINDS = [
    "bitstring",
    "regression",
    "one-input",
    "policy",
    "own",
    "tree",
    "wide",
    "comparison",
    "several",
    "nasty",
]


class Watched:
    """A page, and what it has done that it should not."""

    def __init__(self, browser, width=1280, scheme="light", **options):
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, **options
        )
        self.context.set_default_timeout(240_000)  # a busy machine is no fault of the page
        self.page = self.context.new_page()
        self.complaints = []
        self.requests = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append("dialog"), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def open(self, path: Path):
        address = path.as_uri()
        self.requests.clear()
        self.page.goto(address)
        self.page.wait_for_selector("section.card")
        self.page.wait_for_selector(".chart svg")
        outside = [url for url in self.requests if url != address and not url.startswith("data:")]
        assert not outside
        return self.page


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_a_wide_tree_scrolls_and_begins_with_its_root(browser, reports, width):
    with Watched(browser, width) as watched:
        page = watched.open(reports["wide"])
        page.click("button.open")
        page.locator(".picture img[style*=min-width]").nth(1).wait_for()
        pictures = page.evaluate(
            "[...document.querySelectorAll('.picture')].map(p => [p.clientWidth, p.scrollWidth, p.scrollLeft,"
            " p.firstChild.clientWidth / p.firstChild.naturalWidth])"
        )
        assert len(pictures) == 2
        for own, content, left, scale in pictures:
            assert content > own
            assert left > 0
            assert scale >= 0.89
        fits = "t => t.offsetWidth <= t.parentNode.clientWidth + 1"
        assert page.eval_on_selector(".designs", fits)
        assert watched.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_report_opens_quietly_and_fits_its_width(browser, reports, kind, width, scheme):
    with Watched(browser, width, scheme) as watched:
        page = watched.open(reports[kind])
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor").strip("rgb()").split(",")
        assert (sum(map(int, dark)) < 200) == (scheme == "dark")
        drawn = page.evaluate(
            "[...document.querySelectorAll('.chart svg .line')].filter(l => l.getAttribute('d')).length"
        )
        assert drawn >= 3
        for button in page.query_selector_all("summary"):
            button.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert watched.complaints == []


def axe_script() -> str:
    import axe_core_python

    return (Path(axe_core_python.__file__).parent / "axe.min.js").read_text()


@pytest.mark.parametrize(
    ("kind", "scheme"),
    [*((kind, "light") for kind in KINDS if kind != "several"), ("several", "dark"), ("regression", "dark")],
)
def test_no_serious_finding_of_axe(browser, reports, kind, scheme):
    # The policy of the page would refuse axe as it refuses any other script.
    with Watched(browser, scheme=scheme, bypass_csp=True) as watched:
        page = watched.open(reports[kind])
        for button in page.query_selector_all(".open")[:2]:
            page.evaluate("button => button.click()", button)
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        page.wait_for_timeout(100)
        page.evaluate(axe_script())
        found = page.evaluate("axe.run()")
        bad = [
            (v["id"], v["impact"], [n["html"][:150] for n in v["nodes"]][:3])
            for v in found["violations"]
            if v["impact"] in ("serious", "critical")
        ]
        assert bad == []
        assert len(found["passes"]) > 15


def test_the_table_sorts_filters_and_draws(browser, reports):
    with Watched(browser) as watched:
        page = watched.open(reports["own"])
        column = lambda name: page.locator(f".designs .cell-{name}").all_inner_texts()  # noqa: E731
        rewards = [float(text.replace("−", "-")) for text in column("reward")]
        assert rewards == sorted(rewards, reverse=True)
        assert len(rewards) == 10
        head = page.get_by_role("columnheader", name="tokens")
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == "ascending"
        lengths = list(map(int, column("length")))
        assert lengths == sorted(lengths)
        head.get_by_role("button").press("Enter")
        assert head.get_attribute("aria-sort") == "descending"
        assert list(map(int, column("length"))) == sorted(lengths, reverse=True)
        wanted = sum("resistor" in line for line in column("line"))
        page.get_by_role("searchbox").fill("resistor")
        assert len(column("line")) == wanted
        page.get_by_role("searchbox").fill("nothing has this")
        assert column("line") == []
        page.get_by_role("searchbox").fill("")
        button = page.locator(".designs .open").first
        assert button.get_attribute("aria-expanded") == "false"
        button.focus()
        page.keyboard.press("Enter")
        assert page.locator(".designs .open").first.get_attribute("aria-expanded") == "true"
        tokens = page.locator(".designs .more .chips li").all_inner_texts()
        assert len(tokens) == int(column("length")[0])
        page.keyboard.press("Enter")
        assert page.locator(".designs .more").count() == 0
        assert watched.complaints == []


def test_hovering_and_arrow_keys_show_the_point(browser, reports):
    with Watched(browser) as watched:
        page = watched.open(reports["regression"])
        point = page.locator("section[id$=front] circle[data-point]").nth(1)
        point.hover()
        tip = page.locator("section[id$=front] .tip")
        assert tip.is_visible()
        assert re.search(r"complexity \d+, loss", tip.inner_text())
        assert tip.locator("math").count() == 1
        page.mouse.move(5, 5)
        assert tip.is_hidden()
        chart = page.locator("section[id$=learning] .chart").first
        chart.focus()
        page.keyboard.press("End")
        # The last row of the history; the rest of the 1000 calls is left for the choice of the model.
        tip = page.locator("section[id$=learning] .tip").first.inner_text()
        assert re.search(r"9[0-5]0 objective calls", tip)
        spoken = page.locator("section[id$=learning] [aria-live]").first.inner_text()
        page.keyboard.press("ArrowLeft")
        assert page.locator("section[id$=learning] [aria-live]").first.inner_text() != spoken
        page.keyboard.press("Escape")
        assert page.locator("section[id$=learning] .tip").first.is_hidden()
        assert watched.complaints == []


def test_the_tree_and_the_equation_are_in_the_page(browser, reports):
    with Watched(browser) as watched:
        page = watched.open(reports["policy"])
        tree = page.locator("section[id$=found] .picture img")
        assert tree.evaluate("image => image.complete && image.naturalWidth") > 100
        assert "push left" in tree.get_attribute("alt")
        page = watched.open(reports["regression"])
        formula = page.locator("section[id$=found] .formula math")
        assert formula.bounding_box()["width"] > 50
        assert "energy" in formula.text_content()
        assert page.locator("section[id$=fit] circle[data-point]").count() == 2 * 60  # and residuals
        assert page.locator("section[id$=inputs] circle[data-point]").count() == 2 * 2 * 60  # by two inputs
        rows = page.locator("section[id$=front] .equations tbody tr")
        assert rows.count() == page.locator("section[id$=front] circle[data-point]").count()
        assert page.locator("section[id$=front] .equations math").count() == rows.count()
        assert page.locator("section[id$=front] .equations .chosen").count() == 1
        page = watched.open(reports["one-input"])
        assert page.locator("section[id$=inputs] .line.c1").get_attribute("d").count("L") > 100
        assert watched.complaints == []


def test_the_law_comes_first_and_the_search_last(browser, reports):
    with Watched(browser) as watched:
        page = watched.open(reports["regression"])
        parts = page.locator("main section").evaluate_all("all => all.map(s => s.id.split('-').pop())")
        assert parts[:6] == ["found", "front", "fit", "inputs", "search", "learning"]
        page.get_by_text("As text and LaTeX").click()
        assert page.locator("section[id$=found] code").first.inner_text().startswith("energy = ")
        assert watched.complaints == []


def test_the_comparison_shows_methods_and_statistics(browser, reports):
    with Watched(browser) as watched:
        page = watched.open(reports["comparison"])
        section = page.locator("section[id$=comparison]")
        assert section.locator(".line").count() == 2
        assert section.locator(".band").count() == 2
        assert section.locator("tbody th").all_inner_texts() == ["DisCo-DSO", "random search"]
        widths = section.locator(".bar").evaluate_all("bars => bars.map(b => parseFloat(b.style.width))")
        assert sum(widths) == pytest.approx(100)
        assert watched.complaints == []


def test_fresh_starts_are_drawn(browser, tmp_path):
    task = Task(Space([Token("v", range=(0, 1))], OpenSequence(1, 3)), lambda design: -len(design))
    method = DisCoSettings(batch_size=20, restarts=RestartSettings(batches=3, patience=0.0))
    result = search(task, budget=300, method=method, out=tmp_path / "run")
    count = sum(row.restarted for row in result.history)
    assert count >= 3
    with Watched(browser) as watched:
        page = watched.open(write_report([tmp_path / "run"], tmp_path / "report.html"))
        assert page.locator(".restart").count() == count
        assert page.get_by_text(f"the method began anew, {count} times").count() == 1
        assert watched.complaints == []


def test_text_of_the_data_is_shown_as_text(browser, reports):
    with Watched(browser) as watched:
        page = watched.open(reports["nasty"])
        for button in page.locator(".open").all()[:3]:
            button.click()
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        page.wait_for_timeout(200)
        assert page.evaluate("window.hacked") is None
        assert page.locator("img[src=x], main script").count() == 0
        words = page.locator("body").inner_text()
        for text in (NASTY, IMAGE, EMOJI.split("\u2028")[0].strip(), "run <b>&"):
            assert text in words
        assert page.locator("math", has_text="<script>").count() >= 1
        assert watched.complaints == []


def test_numbers_and_pictures_can_be_saved(browser, reports, tmp_path):
    import xml.etree.ElementTree as ElementTree

    with Watched(browser, scheme="dark") as watched:
        page = watched.open(reports["comparison"])
        for kind in ("SVG", "CSV"):
            with page.expect_download() as waiting:
                page.locator("section[id$=comparison]").get_by_text(kind, exact=True).click()
            waiting.value.save_as(tmp_path / kind)
        drawn = (tmp_path / "SVG").read_text()
        assert ElementTree.fromstring(drawn).tag.endswith("svg")
        assert "rgb(0, 114, 178)" in drawn  # of the light page, also from a dark one
        lines = (tmp_path / "CSV").read_text().splitlines()
        assert lines[0].startswith("objective calls,")
        assert len(lines) == 11
        assert watched.complaints == []


def test_it_prints(browser, reports, tmp_path):
    with Watched(browser) as watched:
        page = watched.open(reports["regression"])
        page.emulate_media(media="print")
        assert page.locator("nav").is_hidden()
        assert page.locator("section[id$=learning] .chart svg").first.is_visible()
        page.pdf(path=tmp_path / "report.pdf")
        assert (tmp_path / "report.pdf").stat().st_size > 10_000


SLOW_TASK = """
import time
from pathlib import Path
from discodso import FixedSequence, Space, Task, Token

def objective(design):
    if not Path("hurry").exists():  # however slow the machine is, the run outlasts what is to be seen
        time.sleep(0.05)
    return sum(value for value in design.values if value is not None)

tokens = [Token("a", range=(0, 1)), Token("b", range=(0, 1)), Token("c")]
task = Task(Space(tokens, FixedSequence(4)), objective, name="slow")
"""
SETTINGS = """
[task]
kind = "custom"
task = "slow_task:task"
[method]
batch_size = 25
[run]
budget = 6000
"""


def start(folder: Path, *words: str) -> subprocess.Popen:
    source = str(Path(discodso.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-m", "discodso", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": source},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def calls_shown(page) -> int:
    text = page.locator(".tile dd").nth(1).evaluate("node => node.firstChild.data")
    return int(re.sub(r"\D", "", text))


def until(condition, seconds=240):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def test_live_the_curve_grows_the_place_is_kept_and_it_ends(browser, tmp_path):
    (tmp_path / "slow_task.py").write_text(SLOW_TASK)
    (tmp_path / "settings.toml").write_text(SETTINGS)
    started = [start(tmp_path, "run", "settings.toml", "--out", "run", "--json")]
    try:
        history = tmp_path / "run" / "history.jsonl"
        until(lambda: history.exists() and history.stat().st_size)
        started.append(start(tmp_path, "report", "--live", "run"))
        run, live = started
        address = re.search(r"http://\S+", live.stdout.readline())[0]
        with Watched(browser) as watched:
            page = watched.page
            page.goto(address)
            page.wait_for_selector(".chart svg")
            assert "follows the run" in page.locator("#status").inner_text()
            page.wait_for_selector("input[type=search]", timeout=120_000)
            page.locator("input[type=search]").fill("a")
            page.locator("input[type=search]").focus()
            page.evaluate("window.scrollTo(0, 500)")
            first, line = calls_shown(page), page.locator(".line").first.get_attribute("d")
            until(lambda: calls_shown(page) > first + 50)
            assert page.locator(".line").first.get_attribute("d") != line
            assert page.evaluate("window.scrollY") == 500
            assert page.evaluate("document.activeElement.type + document.activeElement.value") == "searcha"
            (tmp_path / "hurry").touch()
            until(lambda: "has ended" in page.locator("#status").inner_text())
            assert calls_shown(page) == 6000
            run.communicate(timeout=120)
            said = live.communicate(timeout=120)[0]
            assert (run.returncode, live.returncode) == (0, 0)
            assert "report: run/report.html" in said
            assert set(watched.requests) <= {address, address + "data.json", "data:,"}
            page.wait_for_timeout(1500)  # it asks no more
            assert watched.complaints == []
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
                process.wait()
