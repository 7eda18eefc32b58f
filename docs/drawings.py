"""The drawings in docs/images: `python docs/drawings.py` makes them anew.

Each is a light card with dark words, so that it reads on a light page and on a dark one.
"""

from pathlib import Path

IMAGES = Path(__file__).with_name("images")
INK, QUIET, LINE, CARD = "#1f2328", "#59636e", "#8c959f", "#ffffff"
COLOURS = ["#9ecbff", "#ffd58a", "#b7e3b0", "#ffb8b0", "#d9c2ff", "#c9d1d9"]
CELL = 26


class Drawing:
    def __init__(self, width, height, title):
        self.size, self.title, self.parts = (width, height), title, []

    def text(self, x, y, words, size=13, fill=INK, anchor="start", weight="normal", mono=False):
        family = (
            "ui-monospace,Menlo,Consolas,monospace" if mono else "-apple-system,Segoe UI,Helvetica,Arial,sans-serif"
        )
        words = words.replace("&", "&amp;").replace("<", "&lt;")
        style = f'font-family="{family}" font-size="{size}" font-weight="{weight}" fill="{fill}" text-anchor="{anchor}"'
        self.parts.append(f'<text x="{x}" y="{y}" {style}>{words}</text>')

    def box(self, x, y, width, height, fill, stroke=LINE, dash=""):
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}" stroke="{stroke}"{dashed}/>'
        )

    def grid(self, x, y, rows, dashed_after=None):
        """Numbered cells; a copy's border is drawn around each `dashed_after` (rows, columns)."""
        for i, row in enumerate(rows):
            for k, item in enumerate(row):
                left, top = x + k * CELL, y + i * CELL
                self.box(left, top, CELL, CELL, COLOURS[(item - 1) % len(COLOURS)])
                self.text(left + CELL / 2, top + 18, str(item), anchor="middle")
        if dashed_after:
            height, width = dashed_after
            for i in range(0, len(rows), height):
                for k in range(0, len(rows[0]), width):
                    self.parts.append(
                        f'<rect x="{x + k * CELL}" y="{y + i * CELL}" width="{width * CELL}" height="{height * CELL}" '
                        f'fill="none" stroke="{INK}" stroke-width="2"/>'
                    )

    def arrow(self, x1, y1, x2, y2, dash=""):
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{QUIET}" stroke-width="1.5"{dashed} '
            'marker-end="url(#head)"/>'
        )

    def save(self, name):
        width, height = self.size
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img">\n<title>{self.title}</title>\n'
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto">'
            f'<path d="M0 0L8 4L0 8z" fill="{QUIET}"/></marker></defs>\n'
            f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8" fill="{CARD}" stroke="#d0d7de"/>'
        )
        text = "\n".join([head, *self.parts, "</svg>\n"])
        (IMAGES / f"{name}.svg").write_text(text, encoding="utf-8")


def tiled(rows, reps):
    return [row * reps[1] for row in rows] * reps[0]


def draw_repeats():
    x = [[1, 2, 3], [4, 5, 6]]
    drawing = Drawing(700, 250, "Repeats copy the whole array along each axis")
    drawing.text(24, 34, "x", weight="bold", mono=True)
    drawing.text(24, 54, "shape (2, 3)", fill=QUIET)
    drawing.grid(24, 66, x, (2, 3))
    places = [(150, (2, 1)), (310, (1, 2)), (508, (2, 2))]
    for left, reps in places:
        drawing.text(left, 34, f"tile(x, {reps})", weight="bold", mono=True)
        drawing.text(left, 54, f"shape ({2 * reps[0]}, {3 * reps[1]})", fill=QUIET)
        drawing.grid(left, 66, tiled(x, reps), (2, 3))
    drawing.text(24, 208, "The first repeat is for axis 0 (down), the last for the last axis (across).", fill=QUIET)
    drawing.text(24, 228, "A heavy border marks one copy. numpy.repeat would give 1 1 2 2 3 3 instead.", fill=QUIET)
    drawing.save("repeats")


def draw_alignment():
    drawing = Drawing(700, 300, "How NumPy, ONNX and OpenVINO align repeats with the axes of the input")
    for k, words in enumerate(["", "repeats shorter than the shape", "shape shorter than the repeats"]):
        drawing.text([24, 150, 430][k], 34, words, weight="bold")
    cases = [(["2", "3", "4"], ["5", "2"]), (["3", "4"], ["5", "1", "2"])]
    rows = [("NumPy", True), ("OpenVINO", True), ("ONNX, DirectML", False)]
    for i, (system, aligns) in enumerate(rows):
        top = 62 + 80 * i
        drawing.text(24, top + 30, system, weight="bold")
        for (shape, reps), left in zip(cases, (150, 430), strict=True):
            rank = max(len(shape), len(reps))
            for line, (label, given) in enumerate([("shape", shape), ("repeats", reps)]):
                y = top + 28 * line
                drawing.text(left, y + 18, label, fill=QUIET)
                missing = rank - len(given)
                for k in range(rank):
                    x = left + 60 + 30 * k
                    if k < missing:
                        if aligns:
                            drawing.box(x, y, 28, 24, CARD, dash="4 3")
                            drawing.text(x + 14, y + 17, "1", anchor="middle", fill=QUIET, mono=True)
                    else:
                        drawing.box(x, y, 28, 24, COLOURS[0 if line == 0 else 1])
                        drawing.text(x + 14, y + 17, given[k - missing], anchor="middle", mono=True)
            if aligns:
                full = [[1] * (rank - len(given)) + [int(n) for n in given] for given in (shape, reps)]
                result = ", ".join(str(a * b) for a, b in zip(*full, strict=True))
                drawing.text(left + 158, top + 32, f"({result})", mono=True)
            else:
                drawing.text(left + 158, top + 32, "ValueError", mono=True, fill="#b42318")
    drawing.save("alignment")


def draw_pages():
    drawing = Drawing(700, 300, "How copy-on-write results share pages")
    addresses, memory, page = 120, 400, 22
    drawing.text(24, 34, "addresses", weight="bold")
    drawing.text(24, 52, "of y = tile_mapped(x, (3, 1))", fill=QUIET, mono=True, size=12)
    drawing.text(memory, 34, "physical memory", weight="bold")
    drawing.text(memory, 52, "one block, and one page for each write", fill=QUIET)
    where = [70 + 25 * k for k in range(9)]
    block = [95, 120, 145]
    for k in range(3):
        drawing.box(memory, block[k], 70, page, COLOURS[k])
        drawing.text(memory + 35, block[k] + 16, f"page {k}", anchor="middle", size=12)
    drawing.box(memory, 245, 70, page, COLOURS[3])
    drawing.text(memory + 35, 261, "copy", anchor="middle", size=12)
    for k, top in enumerate(where):
        written = k == 7
        drawing.box(addresses, top, 70, page, COLOURS[3] if written else COLOURS[k % 3])
        if k % 3 == 1:
            drawing.text(addresses - 12, top + 16, f"repeat {k // 3}", anchor="end", fill=QUIET)
        target = 256 if written else block[k % 3] + 11
        drawing.arrow(addresses + 72, top + 11, memory - 4, target)
    drawing.text(memory + 84, 126, "written once, mapped", fill=QUIET)
    drawing.text(memory + 84, 144, "for every repeat", fill=QUIET)
    drawing.text(memory + 84, 252, "y[2, 700] = -1 copied", fill=QUIET)
    drawing.text(memory + 84, 270, "this page alone", fill=QUIET)
    drawing.save("copy-on-write")


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    draw_repeats()
    draw_alignment()
    draw_pages()
