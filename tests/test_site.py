"""The site in headless Chromium, as its readers see it: on wide and on narrow screens, light and dark."""

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
REPOSITORY = "https://example.org/we/tilecore"
pytestmark = [pytest.mark.package, pytest.mark.tree]

# The first page that a search for a word finds.
FIRST = dict.fromkeys(("repeat", "mask", "textures"), "guide") | {"gradient": "pytorch", "collate_fn": "data-loaders"}

# What a page lacks, in words. A wide table may scroll, in its own box, on a narrow screen only.
FAULTS = """
const wide = innerWidth > 1000, faults = [], all = selector => [...document.querySelectorAll(selector)];
const words = element => element.innerText.replace(/\\s+/g, " ").slice(0, 60);
const find = (fault, elements) => elements.forEach(element => faults.push(fault + ": " + words(element)));
const numbers = colour => (colour.match(/[\\d.]+/g) ?? []).map(Number);
const luminance = colour => numbers(colour).slice(0, 3).map(part => (part / 255) ** 2.2)
    .reduce((sum, part, k) => sum + part * [0.21, 0.72, 0.07][k], 0.05);
const ground = element => (colour => !element.parentElement || numbers(colour)[3] !== 0 ? luminance(colour)
    : ground(element.parentElement))(getComputedStyle(element).backgroundColor);
const contrast = element => (pair => Math.max(...pair) / Math.min(...pair))(
    [luminance(getComputedStyle(element).color), ground(element)]);
all("details").forEach(details => { details.open = true; });
if (innerWidth !== WIDTH) faults.push("the window grew to " + innerWidth);
if (ground(document.body) > 0.5 !== LIGHT) faults.push("the other mode");
find("scrolls sideways", [document.documentElement, ...all(".content")].filter(box => box.scrollWidth > WIDTH));
find("is cut", all(".table-wrapper").filter(box => box.scrollWidth > box.clientWidth
    && (wide || getComputedStyle(box).overflowX !== "auto")));
find("sticks out", all("article table, article img").filter(box => !box.closest(".table-wrapper")
    && box.getBoundingClientRect().right > document.querySelector(".content").getBoundingClientRect().right));
find("is no picture", all("img").filter(image => !image.naturalWidth));
find("cannot be read", all("article *").filter(element => element.innerText && contrast(element) < 3));
find("has its contents elsewhere", all(".toc-drawer:not(.no-toc)").filter(box => wide
    && box.getBoundingClientRect().right > WIDTH));
return faults;
"""
SEARCH = """
const [done] = arguments, status = document.querySelector.bind(document, ".search-summary");
const wait = () => /search|match/.test(status()?.innerText)
    ? done([...document.querySelectorAll("ul.search a")].map(link => link.getAttribute("href"))) : setTimeout(wait, 20);
wait();
"""


class Chromium:
    """Driven by chromedriver, over its protocol WebDriver."""

    def __init__(self):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        port = next(filter(None, (re.search(r"success\w* on port (\d+)", line) for line in self.driver.stdout)))[1]
        self.connection, self.session = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60), ""
        options = {"args": ["--headless", *["--no-sandbox"] * (os.geteuid() == 0)]}
        capabilities = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
        self.session = "/" + self.ask("POST", "", capabilities)["sessionId"]

    def ask(self, method, path, body=None):
        self.connection.request(method, f"/session{self.session}{path}", body and json.dumps(body))
        value = json.load(self.connection.getresponse())["value"]
        assert not (isinstance(value, dict) and "error" in value), value
        return value

    def look_at(self, page, query=""):
        self.ask("POST", "/url", {"url": page.as_uri() + query})

    def run(self, script, kind="sync"):
        return self.ask("POST", f"/execute/{kind}", {"script": script, "args": []})

    def emulate(self, what, **parameters):
        self.ask("POST", "/goog/cdp/execute", {"cmd": f"Emulation.set{what}", "params": parameters})

    def close(self):
        self.ask("DELETE", "")
        self.connection.close()
        self.driver.terminate()
        self.driver.communicate()


@pytest.fixture(scope="module")
def chromium():
    if not shutil.which("chromedriver"):
        pytest.skip("needs chromedriver, in Debian's package chromium-driver")
    browser = Chromium()
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def pages(chromium, run, tmp_path_factory):
    """By name: of a copy of the sources, which has the repository's address."""
    for library in ("furo", "myst_parser", "numpydoc", "sphinx"):
        pytest.importorskip(library)
    tree = tmp_path_factory.mktemp("site") / "tree"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "build", "tilecore", "tests"))
    (tree / "setup.py").write_text(f'REPOSITORY = "{REPOSITORY}"\n')
    run(sys.executable, "-m", "sphinx", "-q", "-W", "docs", "built", cwd=tree)
    return {page.stem: page for page in (tree / "built").glob("*.html")}


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_fit(chromium, pages, width, mode):
    chromium.emulate("DeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 1000)
    chromium.emulate("EmulatedMedia", features=[{"name": "prefers-color-scheme", "value": mode}])
    script, faults = f"const WIDTH = {width}, LIGHT = {str(mode == 'light').lower()};{FAULTS}", []
    for name, page in pages.items():
        chromium.look_at(page)
        faults += [f"{name} {fault}" for fault in chromium.run(script)]
    assert len(pages) > 20 and not faults, "\n".join(faults)


def test_links_lead_to_what_is_there(chromium, pages):
    """Within the site: to files, and to places in pages."""
    links, places = {}, {f"{page.as_uri()}#" for page in pages.values()}
    for page in pages.values():
        chromium.look_at(page)
        links[page.stem] = set(chromium.run("return [...document.links].map(link => decodeURI(link.href))"))
        names = chromium.run("return [...document.querySelectorAll('[id]')].map(element => element.id)")
        places |= {f"{page.as_uri()}#{name}" for name in names}
    assert REPOSITORY in links["index"] and any(link.endswith("/LICENSE") for link in links["index"])
    inside = {link for some in links.values() for link in some if link.startswith("file:")}
    assert len(inside) > 100
    assert not {link for link in inside if "#" in link and link not in places}
    assert not {link for link in inside if not Path(link.removeprefix("file://").partition("#")[0]).exists()}


@pytest.mark.parametrize("word", FIRST)
def test_search_finds_this_page_first(chromium, pages, word):
    chromium.look_at(pages["search"], f"?q={word}")
    assert chromium.run(SEARCH, "async")[0].partition(".html")[0] == FIRST[word]
