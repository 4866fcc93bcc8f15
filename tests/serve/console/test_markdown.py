"""What Markdown becomes, in the browser itself: nodes of a few kinds, and the text of the model."""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playwright.async_api import Browser, Page

from tests.serve.console.page import Shown, pages_of
from tests.serve.console.scenes import saying
from tests.serve.serving import serving

pytestmark = pytest.mark.asyncio(loop_scope="session")

_RENDER: Final = """async (texts) => {
    const { Markdown } = await import(new URL("console/markdown.js", document.baseURI));
    const kept = ["href", "start", "class", "checked"];
    const plain = (node) => {
        for (const each of node.querySelectorAll("figcaption")) each.remove();
        for (const each of node.querySelectorAll("*")) {
            for (const { name } of [...each.attributes]) {
                if (!kept.includes(name)) each.removeAttribute(name);
            }
        }
        return node.innerHTML;
    };
    return texts.map((pieces) => {
        const made = new Markdown();
        let text = "";
        for (const piece of pieces) made.show(text += piece);
        return plain(made.node);
    });
}"""

CASES: Final = {
    "plain": "<p>plain</p>",
    "a *b* **c** _d_ ~~e~~ `f`": (
        "<p>a <em>b</em> <strong>c</strong> <em>d</em> <del>e</del> <code>f</code></p>"
    ),
    "***both***": "<p><em><strong>both</strong></em></p>",
    "**a *b* c**": "<p><strong>a <em>b</em> c</strong></p>",
    "2 * 3 * 4 and snake_case_name": "<p>2 * 3 * 4 and snake_case_name</p>",
    "**强调**。然后": "<p><strong>强调</strong>。然后</p>",
    "**「強調」**する": "<p><strong>「強調」</strong>する</p>",
    "*open": "<p>*open</p>",
    "`` a`b ``": "<p><code>a`b</code></p>",
    "`open": "<p>`open</p>",
    "\\*not\\* \\`so\\`": "<p>*not* `so`</p>",
    "one\ntwo": "<p>one<br>two</p>",
    "# A #\n## B": "<h3>A</h3><h4>B</h4>",
    "#tag": "<p>#tag</p>",
    "- a\n- b\n  - c": "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>",
    "1. a\n2. b\n   - c": "<ol><li>a</li><li>b<ul><li>c</li></ul></li></ol>",
    "3) a\n4) b": '<ol start="3"><li>a</li><li>b</li></ol>',
    "- a\n\n  more\n- b": "<ul><li><p>a</p><p>more</p></li><li>b</li></ul>",
    "- [x] a\n- [ ] b": (
        '<ul><li class="task"><input checked="">a</li><li class="task"><input>b</li></ul>'
    ),
    "> a\n> - b": "<blockquote><p>a</p><ul><li>b</li></ul></blockquote>",
    "a\n\n---\n\nb": "<p>a</p><hr><p>b</p>",
    "```py\nx = 1 < 2\n```\nafter": (
        '<figure class="code"><pre><code>x = 1 &lt; 2</code></pre></figure><p>after</p>'
    ),
    "```\nstill open": '<figure class="code"><pre><code>still open</code></pre></figure>',
    "~~~~\n```\n~~~~": '<figure class="code"><pre><code>```</code></pre></figure>',
    "| a | b |\n|---|--:|\n| c \\| d | **e** |\n| f |": (
        '<div class="wide"><table><thead><tr><th class="to-start">a</th><th class="to-end">b</th>'
        '</tr></thead><tbody><tr><td class="to-start">c | d</td><td class="to-end"><strong>e'
        '</strong></td></tr><tr><td class="to-start">f</td><td class="to-end"></td></tr></tbody>'
        "</table></div>"
    ),
    "[a **b**](https://example.org/x_(y) 'title')": (
        '<p><a href="https://example.org/x_(y)">a <strong>b</strong></a></p>'
    ),
    "see https://example.org/a_b. (https://example.org/c)": (
        '<p>see <a href="https://example.org/a_b">https://example.org/a_b</a>. '
        '(<a href="https://example.org/c">https://example.org/c</a>)</p>'
    ),
    "<https://example.org>": '<p><a href="https://example.org/">https://example.org</a></p>',
    "[a](javascript:x) <b>c</b> &amp;": (
        '<p><span class="dead">a</span> &lt;b&gt;c&lt;/b&gt; &amp;amp;</p>'
    ),
    "![p](https://example.org/p.png)": '<p><a href="https://example.org/p.png">image: p</a></p>',
    "[not a link] [x] (y)": "<p>[not a link] [x] (y)</p>",
    "1986\n2. is a year": "<p>1986<br>2. is a year</p>",
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shown(browser: Browser, desk: Page) -> AsyncIterator[Shown]:
    """The page whose modules are tried here; nothing is asked on it."""
    async with serving(saying()) as here, pages_of(browser, desk) as opened:
        shown = await opened(here.url)
        await shown.page.wait_for_selector("#welcome:not([hidden])")
        yield shown


async def test_markdown_becomes_what_its_writer_meant(shown: Shown) -> None:
    got = await shown.eval(_RENDER, [[text] for text in CASES])
    assert dict(zip(CASES, got, strict=True)) == CASES


SIGNS: Final = st.sampled_from(
    [*"ab1.#>-*_~`|[]()!\\<:\n\n\n  ", "```", "\n- ", "\n1. ", "|-", "http://"]
)
TEXTS: Final = st.lists(SIGNS, max_size=60).map("".join)


def _samples(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """As many samples as a browser is asked about at once."""
    found: list[Any] = []

    @settings(max_examples=count, database=None, suppress_health_check=[HealthCheck.too_slow])
    @given(strategy)
    def gather(sample: Any) -> None:
        found.append(sample)

    gather()
    return found


async def test_a_text_that_comes_in_pieces_looks_as_if_it_had_come_at_once(shown: Shown) -> None:
    pieces = [*_samples(st.lists(TEXTS, max_size=6), 400), *([*text] for text in CASES)]
    pieces += [[*text] for text in _samples(TEXTS, 300)]
    streamed = await shown.eval(_RENDER, pieces)
    at_once = await shown.eval(_RENDER, [["".join(each)] for each in pieces])
    different = [
        (each, one, other)
        for each, one, other in zip(pieces, streamed, at_once, strict=True)
        if one != other
    ]
    assert different == []


_HOSTILE: Final = """async () => {
    const { blocks } = await import(new URL("console/blocks.js", document.baseURI));
    const pieces = [
        "*", "*a ", "_a_", "[", "](", "![", "`a``b", "> ", "- ", "|", "a|b\\n", "#", "\\\\", "[a](",
        "~~a", "1. a\\n", "**a*b", "- a\\n", " ", "http://", "<http://a", "|-",
        "a\\n|-|\\n", "```\\n", "- a\\n  - b\\n    - c\\n",
    ];
    const long = 100_000;
    const lines = [
        "```" + "x".repeat(long) + "`", "```" + " ".repeat(long) + "x`",
        "|\\n-" + " ".repeat(long) + "x", "https://a" + ")".repeat(long),
        "https://a" + ".".repeat(long), " *a".repeat(14) + "b* ".repeat(long / 3),
        "# " + "#".repeat(long) + "x", "* ".repeat(long / 2) + "x",
        "[".repeat(long / 5) + "a" + "](x)".repeat(long / 5),
    ];
    const steps = Array.from({ length: 400 }, (_, at) => " ".repeat(at * 2) + "- a").join("\\n");
    const slow = [];
    for (const text of [...pieces.map((piece) => piece.repeat(20000)), ...lines, steps]) {
        const begun = performance.now();
        blocks(text.split("\\n"));
        const took = performance.now() - begun;
        if (took > 2000) slow.push([text.slice(0, 20), Math.round(took)]);
    }
    return slow;
}"""


async def test_no_text_holds_the_page_up(shown: Shown) -> None:
    assert await shown.eval(_HOSTILE) == []


async def test_only_the_end_of_a_growing_text_is_made_anew(shown: Shown) -> None:
    kept = await shown.eval(
        """async () => {
            const { Markdown } = await import(new URL("console/markdown.js", document.baseURI));
            const made = new Markdown();
            made.show("first\\n\\nsecond\\n\\nthird\\n\\nfourth");
            const [first, second] = made.node.children;
            made.show(made.text + " goes on\\n\\nfifth");
            return [first, second].map((node) => node.parentNode === made.node);
        }"""
    )
    assert kept == [True, True]


async def test_what_a_reader_has_selected_stays_so_while_the_text_grows(shown: Shown) -> None:
    selected = await shown.eval(
        """async () => {
            const { Markdown } = await import(new URL("console/markdown.js", document.baseURI));
            const made = new Markdown();
            document.getElementById("log").append(made.node);
            made.show("```py\\nfirst = 1\\nsecond");
            const text = made.node.querySelector("code").firstChild;
            getSelection().setBaseAndExtent(text, 0, text, 5);
            made.show(made.text + " = 2\\nthird = 3\\n```\\n\\nDone");
            return [String(getSelection()), made.node.querySelector("code").textContent];
        }"""
    )
    assert selected == ["first", "first = 1\nsecond = 2\nthird = 3"]


SCHEMES: Final = st.sampled_from(
    [
        *("javascript:", "JaVaScRiPt:", "java\tscript:", "java\nscript:", "\x01javascript:"),
        *("&#106;avascript:", "javascript&colon;", "%6Aavascript:", " javascript:", "vbscript:"),
        *("data:text/html,", "blob:https://a/", "file:///", "//", "/", "#", "mailto:", "https:"),
        *("https://a@", "http:", "view-source:", "\u202ejavascript:", "<javascript:"),
    ]
)
LINKS: Final = st.builds(
    lambda form, *parts: form.format("".join(parts)),
    st.sampled_from(["[a]({})", "![a]({})", "<{}>", "[a](<{}>)", "[a]({} 'b')", "[[a]({})](b)"]),
    SCHEMES,
    st.sampled_from(["", *"/:\\ ", "javascript:"]),
    st.sampled_from(["alert(1)", "//a", "x%0Aalert(1)"]),
)


async def test_no_link_leads_elsewhere_than_to_the_web_and_the_post(shown: Shown) -> None:
    found = await shown.eval(
        """async (texts) => {
            const { Markdown } = await import(new URL("console/markdown.js", document.baseURI));
            return texts.flatMap((text) => {
                const made = new Markdown();
                made.show(text);
                return [...made.node.querySelectorAll("*")].flatMap((node) =>
                    node.href === undefined ? [node.localName] : [node.protocol, node.rel]);
            });
        }""",
        _samples(LINKS, 500),
    )
    assert set(found) <= {
        *("http:", "https:", "mailto:", "noopener noreferrer nofollow", "p", "span", "br"),
    }
    assert "https:" in found
