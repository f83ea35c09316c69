"""Pages that a browser lays out, whose reading order is the order of their source.

`python -m tests.support.typesetting OUTPUT.jsonl [COUNT] [SEED]` writes them as examples.
"""

import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ptrnet.pages.labels import LABELS

CHROMIUM = os.environ.get("PTRNET_CHROMIUM", "/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
WIDTH, HEIGHT = 800, 1100  # pixels of a page
WORDS = (
    "the", "page", "of", "a", "book", "holds", "lines", "in", "columns", "which", "people", "read",
    "from", "left", "to", "right", "although", "nobody", "typesetters", "figures",
)  # fmt: skip

# Returns a list of [left, top, right, bottom, label] in the order of the source. An element with
# text has a box around its lines in each column. An element without text is one box.
READ_BOXES = """() => {
  const boxes = [];
  for (const element of document.querySelectorAll("[data-label]")) {
    let rects = [...element.getClientRects()];
    if (element.textContent.trim()) {
      const range = document.createRange();
      range.selectNodeContents(element);
      rects = [...range.getClientRects()];
    }
    let box = null;
    for (const r of rects) {
      if (r.width < 1 || r.height < 1) continue;
      if (box && r.top >= box[1] - 1) {
        box = [Math.min(box[0], r.left), Math.min(box[1], r.top),
               Math.max(box[2], r.right), Math.max(box[3], r.bottom), box[4]];
        boxes[boxes.length - 1] = box;
      } else {
        box = [r.left, r.top, r.right, r.bottom, element.dataset.label];
        boxes.push(box);
      }
    }
  }
  return boxes;
}"""


class Writer:
    """Writes the source of pages with random contents."""

    def __init__(self, rng):
        self.rng = rng

    def integer(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def chance(self, probability):
        return self.rng.random() < probability

    def one(self, *items):
        return items[self.integer(0, len(items) - 1)]

    def words(self, low, high):
        return " ".join(self.rng.choice(WORDS, self.integer(low, high)))

    def block(self, label, low, high, tag="div", style=""):
        return f'<{tag} data-label="{label}" style="{style}">{self.words(low, high)}</{tag}>'

    def picture(self, height, style=""):
        return f'<div data-label="picture" style="height:{height}px;background:#ccc;{style}"></div>'

    def figure(self, caption_below=True, style=""):
        parts = [self.picture(self.integer(60, 220)), self.block("caption", 5, 25)]
        if not caption_below:
            parts.reverse()
        return f'<figure style="break-inside:avoid;{style}">{"".join(parts)}</figure>'

    def items(self):
        rows = [self.block("list_item", 4, 18, "li") for _ in range(self.integer(2, 5))]
        return f"<ul>{''.join(rows)}</ul>"

    def body(self, count, spanning=False):
        """Paragraphs with headings, lists and figures between them."""
        below = self.chance(0.7)
        parts = []
        for _ in range(count):
            if self.chance(0.2):
                span = "column-span:all" if spanning and self.chance(0.3) else ""
                parts.append(self.block("section_header", 2, 6, "h2", span))
            kind = self.rng.random()
            if kind < 0.1:
                span = "column-span:all" if spanning and self.chance(0.3) else ""
                parts.append(self.figure(below, span))
            elif kind < 0.18:
                parts.append(self.items())
            else:
                parts.append(self.block("text", 12, 110, "p"))
        return "".join(parts)

    def columns(self, count, blocks):
        style = f"columns:{count};column-gap:{self.integer(12, 45)}px"
        return f'<div style="{style}">{self.body(blocks, spanning=True)}</div>'

    def grid(self, tracks, cells, gap, row_gap):
        style = f"display:grid;grid-template-columns:{tracks};gap:{row_gap}px {gap}px"
        return f'<div style="{style}">{"".join(cells)}</div>'

    # Kinds of pages

    def article(self):
        title = self.block("title", 3, 9, "h1") + self.block("text", 3, 8)
        return title + self.columns(self.integer(2, 3), self.integer(8, 16))

    def book(self):
        notes = "".join(self.block("footnote", 8, 25) for _ in range(self.integer(0, 3)))
        return self.body(self.integer(3, 9)) + f'<div style="margin-top:20px">{notes}</div>'

    def cards(self):
        count = self.integer(2, 4)
        lines = self.integer(0, 12)
        height = self.integer(60, 150)
        cells = []
        for _ in range(count * self.integer(2, 4)):
            text = self.block("text", lines, lines + 6) if lines else ""
            title = self.block("section_header", 1, 2, "h3")
            cells.append(f"<div>{self.picture(height)}{title}{text}</div>")
        return self.grid(f"repeat({count},1fr)", cells, self.integer(15, 30), self.integer(25, 45))

    def glossary(self):
        cells = []
        for _ in range(self.integer(5, 12)):
            cells += [self.block("text", 1, 2), self.block("text", 8, 40)]
        return self.grid("1fr 4fr", cells, self.integer(10, 30), self.integer(8, 25))

    def form(self):
        pairs = self.integer(1, 2)
        field = '<div data-label="form" style="height:22px;border:1px solid"></div>'
        cells = []
        for _ in range(pairs * self.integer(4, 12)):
            cells += [self.block("text", 1, 2), field]
        return self.grid(f"repeat({pairs},1fr 2fr)", cells, 14, self.integer(12, 30))

    def side_bar(self):
        bar = f'<div style="flex:1">{self.body(3)}</div>'
        main = f'<div style="flex:3">{self.body(6)}</div>'
        parts = (bar, main) if self.chance(0.5) else (main, bar)
        return f'<div style="display:flex;gap:{self.integer(20, 50)}px">{"".join(parts)}</div>'

    def news(self):
        def story(count):
            return f"<div>{self.block('section_header', 3, 7, 'h2')}{self.columns_of(count)}</div>"

        first = story(3)
        pair = self.grid("1fr 1fr", [story(2), story(2)], 30, 20)
        return first + pair if self.chance(0.5) else pair + first

    def columns_of(self, count):
        style = f"columns:{count};column-gap:14px"
        text = "".join(self.block("text", 30, 70, "p") for _ in range(self.integer(2, 4)))
        return f'<div style="{style}">{text}</div>'

    def beside(self):
        """Text beside figures, and figures that text flows around."""
        text = self.block("text", 40, 70, "p")
        figure = f'<div style="flex:1">{self.figure()}</div>'
        row = [f'<div style="flex:1">{text}</div>', figure]
        if self.chance(0.5):
            row.reverse()
        floating = self.figure(style="float:left;width:45%;margin:0 16px 8px 0")
        flowing = floating + self.block("text", 60, 90, "p") + self.block("text", 30, 60, "p")
        flex = f'<div style="display:flex;gap:20px">{"".join(row)}</div>'
        clear = '<div style="clear:both"></div>'
        return self.body(2) + flex + self.body(1) + flowing + clear + self.body(1)

    def page(self, kind):
        """The source of a page."""
        rng = self.rng
        header = "".join(self.block("page_header", 1, 4) for _ in range(self.integer(0, 3)))
        footer = "".join(self.block("page_footer", 1, 3) for _ in range(self.integer(1, 3)))
        row = "display:flex;justify-content:space-between;gap:30px"
        size, leading = rng.uniform(9, 14), rng.uniform(1.1, 1.5)
        side = self.integer(40, 110)
        return f"""<!doctype html><style>
            * {{ margin: 0; padding: 0; box-sizing: border-box; list-style: none }}
            body {{ width: {WIDTH}px; padding: 40px {side}px; font: {size}px/{leading} sans-serif;
              text-align: {self.one("left", "justify")} }}
            p, li, figure, h1, h2, h3 {{ margin-bottom: {rng.uniform(0, 1.2):.2f}em }}
            h1, h2 {{ text-align: {self.one("left", "center")} }}
            ul {{ padding-left: {self.integer(0, 25)}px }}
            footer {{ margin-top: {self.integer(12, 40)}px }}
            </style><div style="{row};margin-bottom:{self.integer(12, 35)}px">{header}</div>
            {getattr(self, kind)()}<footer style="{row}">{footer}</footer>"""


KINDS = ("article", "book", "cards", "glossary", "form", "side_bar", "news", "beside")


@contextmanager
def open_tab():
    """A tab of a headless Chromium."""
    from playwright import sync_api

    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        browser.close()


def typeset(tab, rng, count, kinds=KINDS):
    """Yield `(kind, boxes)` of `count` pages: boxes `(n, 5)` in the order of the source, pixels."""
    for k in range(count):
        kind = kinds[k % len(kinds)]
        tab.set_content(Writer(rng).page(kind))
        rows = tab.evaluate(READ_BOXES)
        yield kind, np.array([[*row[:4], 1 + LABELS.index(row[4])] for row in rows])


def main(path, count="200", seed="0"):
    """Write pages as examples of the task, shuffled."""
    rng = np.random.default_rng(int(seed))
    with open_tab() as tab, Path(path).open("w") as file:
        for kind, boxes in typeset(tab, rng, int(count)):
            shuffled = rng.permutation(len(boxes))
            row = {
                "boxes": boxes[shuffled, :4].round(2).tolist(),
                "labels": [LABELS[int(number) - 1] for number in boxes[shuffled, 4]],
                "page": [WIDTH, HEIGHT],
                "outputs": np.argsort(shuffled).tolist(),
                "kind": kind,
            }
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
