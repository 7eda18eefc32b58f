"""The drawings in docs/images: `python docs/drawings.py` makes them anew.

Each is a card, so that it reads on any page: light with dark words, and inverted where the reader prefers dark pages.
"""

import sys
from pathlib import Path

IMAGES = Path(__file__).with_name("images")
INK, QUIET, LINE, CARD, BAD = "#1f2328", "#59636e", "#8c959f", "#ffffff", "#b42318"
COLOURS = ["#9ecbff", "#ffd58a", "#b7e3b0", "#ffb8b0", "#d9c2ff", "#c9d1d9"]
CELL = 26
WIDTH = 400  # a phone shows it hardly smaller


class Drawing:
    def __init__(self, width, height, title):
        self.size, self.title, self.parts = (width, height), title, []

    def text(self, x, y, words, size=14, fill=INK, anchor="start", weight="normal", mono=False):
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
                    self.outline(x + k * CELL, y + i * CELL, width * CELL, height * CELL)

    def outline(self, x, y, width, height):
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="none" stroke="{INK}" stroke-width="2"/>'
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
            "<style>@media (prefers-color-scheme: dark) {svg{filter: invert(0.9) hue-rotate(180deg)}}</style>\n"
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" '
            'markerUnits="userSpaceOnUse" orient="auto">'
            f'<path d="M0 0L8 4L0 8z" fill="{QUIET}"/></marker></defs>\n'
            f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8" fill="{CARD}" stroke="#d0d7de"/>'
        )
        text = "\n".join([head, *self.parts, "</svg>\n"])
        (IMAGES / f"{name}.svg").write_text(text, encoding="utf-8")


def tiled(rows, reps):
    return [row * reps[1] for row in rows] * reps[0]


def draw_repeats():
    x = [[1, 2, 3], [4, 5, 6]]
    drawing = Drawing(WIDTH, 382, "Repeats copy the whole array along each axis")
    drawing.text(20, 32, "x", weight="bold", mono=True)
    drawing.text(20, 52, "shape (2, 3)", fill=QUIET)
    drawing.grid(20, 64, x, (2, 3))
    for left, top, reps in [(220, 0, (2, 1)), (20, 170, (1, 2)), (220, 170, (2, 2))]:
        drawing.text(left, top + 32, f"tile(x, {reps})", weight="bold", mono=True)
        drawing.text(left, top + 52, f"shape ({2 * reps[0]}, {3 * reps[1]})", fill=QUIET)
        drawing.grid(left, top + 64, tiled(x, reps), (2, 3))
    drawing.text(20, 140, "A heavy border", fill=QUIET)
    drawing.text(20, 158, "marks one copy.", fill=QUIET)
    drawing.text(20, 312, "numpy.repeat", fill=QUIET)
    drawing.text(20, 330, "gives 1 1 2 2 3 3.", fill=QUIET)
    drawing.text(20, 366, "Repeats are for axis 0 (down), then axis 1 (across).", fill=QUIET)
    drawing.save("repeats")


def draw_alignment():
    drawing = Drawing(WIDTH, 526, "How NumPy, ONNX and OpenVINO align repeats with the axes of the input")
    cases = {"repeats shorter than the shape": (["2", "3", "4"], ["5", "2"])}
    cases |= {"shape shorter than the repeats": (["3", "4"], ["5", "1", "2"])}
    rows = [("NumPy", True), ("OpenVINO", True), ("ONNX", False)]
    top = 32
    for words, (shape, reps) in cases.items():
        drawing.text(20, top, words[0].upper() + words[1:], weight="bold")
        top += 16
        rank = max(len(shape), len(reps))
        for system, aligns in rows:
            drawing.text(20, top + 32, system)
            if system == "ONNX":
                drawing.text(20, top + 50, "DirectML")
            for line, (label, given) in enumerate([("shape", shape), ("repeats", reps)]):
                y = top + 28 * line
                drawing.text(108, y + 18, label, fill=QUIET)
                missing = rank - len(given)
                for k in range(rank):
                    x = 172 + 30 * k
                    if k >= missing:
                        drawing.box(x, y, 28, 24, COLOURS[0 if line == 0 else 1])
                        drawing.text(x + 14, y + 17, given[k - missing], anchor="middle", mono=True)
                    elif aligns:
                        drawing.box(x, y, 28, 24, CARD, dash="4 3")
                        drawing.text(x + 14, y + 17, "1", anchor="middle", fill=QUIET, mono=True)
            full = [[1] * (rank - len(given)) + [int(n) for n in given] for given in (shape, reps)]
            result = "(" + ", ".join(str(a * b) for a, b in zip(*full, strict=True)) + ")"
            drawing.text(274, top + 32, result if aligns else "ValueError", mono=True, fill=INK if aligns else BAD)
            top += 74
        top += 26
    drawing.save("alignment")


def draw_pages():
    drawing = Drawing(WIDTH, 370, "How copy-on-write results share pages")
    addresses, memory, page = 100, 260, 22
    drawing.text(20, 32, "y = tile_mapped(x, (3, 1))", weight="bold", mono=True)
    drawing.text(addresses, 56, "addresses", fill=QUIET)
    drawing.text(memory, 56, "memory", fill=QUIET)
    where = [70 + 25 * k for k in range(9)]
    block = [95, 120, 145]
    for k in range(3):
        drawing.box(memory, block[k], 70, page, COLOURS[k])
        drawing.text(memory + 35, block[k] + 16, f"page {k}", anchor="middle")
    drawing.box(memory, 245, 70, page, COLOURS[3])
    drawing.text(memory + 35, 261, "copy", anchor="middle")
    for k, top in enumerate(where):
        written = k == 7
        drawing.box(addresses, top, 70, page, COLOURS[3] if written else COLOURS[k % 3])
        if k % 3 == 1:
            drawing.text(addresses - 8, top + 16, f"repeat {k // 3}", anchor="end", fill=QUIET)
        target = 256 if written else block[k % 3] + 11
        drawing.arrow(addresses + 72, top + 11, memory - 4, target)
    drawing.text(20, 326, "One block is written, and mapped for every repeat.", fill=QUIET)
    drawing.text(20, 348, "y[2, 700] = -1 copied one page.", fill=QUIET)
    drawing.save("copy-on-write")


def draw_call():
    drawing = Drawing(WIDTH, 650, "One call on its way through the layers")
    drawing.text(20, 32, "tilecore.onnx.tile(x, [1, 5])", weight="bold", mono=True)
    drawing.text(20, 52, "x of shape (200000, 3), float32", fill=QUIET)
    steps = [
        (4, "dialect", "onnx.py", "is it legal? what repeats?"),
        (1, "request", "_core/request/", "arguments → array and ints"),
        (2, "plan", "_core/plan/plan.pyx", "→ (200000, 15), 12 MB: fits 64 bits"),
        (5, "resources", "_core/resources/", "memory for the result; 2 threads at most"),
        (0, "write", "_core/write/results.pyx", "addresses and strides; the last checks"),
        (2, "plan", "_core/plan/nest.pyx", "loops: 12 bytes, 5 × (0, 12), 200000 × (12, 60)"),
        (0, "write", "_core/write/blocks.pyx", "733 blocks of up to 273 rows, numbered"),
        (3, "runtime", "_core/runtime/workers.c", "each thread takes a range of blocks, then another"),
        (3, "kernels", "_core/kernels/isa/", "12 bytes in a vector → 60 bytes of output"),
    ]
    for k, (colour, layer, file, words) in enumerate(steps):
        top = 68 + 56 * k + 26 * (k > 4)
        drawing.box(20, top, WIDTH - 40, 44, COLOURS[colour])
        drawing.text(30, top + 18, layer, weight="bold")
        drawing.text(WIDTH - 30, top + 18, file, size=12, anchor="end", mono=True)
        drawing.text(30, top + 36, words, size=13)
        if k:
            drawing.arrow(WIDTH / 2, top - 12, WIDTH / 2, top)
    drawing.text(WIDTH / 2, 360, "From here on nothing can fail: no GIL, no Python", size=13, fill=BAD, anchor="middle")
    drawing.text(20, 620, "Transposed: panels.pyx packs and tiles each panel;", size=13, fill=QUIET)
    drawing.text(20, 638, "tiling.pyx may use the first repeat as the source.", size=13, fill=QUIET)
    drawing.save("one-call")


def draw_parts():
    """From the planner's own pieces and loops, as tests/test_nest.py reads them."""
    sys.path.append(str(IMAGES.parents[1] / "tests"))
    from test_nest import ITEMSIZE, pieces_of, plan_of, region_of

    shape, start, output = (3, 4), (2, 2), (8, 11)
    region = region_of(plan_of(shape, (1, 1)), start, output)
    left, top, pieces = 57, 76, [*pieces_of(region, None, None)]
    drawing = Drawing(WIDTH, 438, "The parts of a region: pieces, rows, spans, and the loops of a nest")
    drawing.text(20, 32, f"tile_region(x, None, {start}, (10, 13))", weight="bold", mono=True)
    drawing.text(20, 54, f"x of shape {shape}, float32; {len(pieces)} pieces, a colour each", fill=QUIET)
    for number, (src, dst, loops) in enumerate(pieces):
        places = [(src // ITEMSIZE, dst // ITEMSIZE)]
        for count, by_src, by_dst in [(loops[0][0] // ITEMSIZE, ITEMSIZE, ITEMSIZE), *loops[1:]]:
            steps = [(k * by_src // ITEMSIZE, k * by_dst // ITEMSIZE) for k in range(count)]
            places = [(a + x, b + y) for x, y in steps for a, b in places]
        for item, place in places:
            x, y = left + CELL * (place % output[1]), top + CELL * (place // output[1])
            drawing.box(x, y, CELL, CELL, COLOURS[(number + number // 3) % 3 if number // 3 != 1 else 3 + number % 3])
            drawing.text(x + CELL / 2, y + 18, str(item + 1), anchor="middle")
    src, dst, loops = pieces[4]  # in the middle
    x, y = left + CELL * (dst // ITEMSIZE % output[1]), top + CELL * (dst // ITEMSIZE // output[1])
    for width, height in [(1, 1), (loops[1][0], loops[2][0]), (loops[1][0], loops[2][0] * loops[3][0])]:
        drawing.outline(x, y, loops[0][0] * CELL // ITEMSIZE * width, CELL * height)
    top += CELL * output[0] + 30
    drawing.text(20, top, "The nest of the piece in the middle", weight="bold")
    words = [
        "a row, 16 bytes",
        "a span: the row with its copies",
        "spans of all rows: a block, copied",
        "by the outer loop",
    ]
    for k, ((count, by_src, by_dst), meaning) in enumerate(zip(loops, words, strict=True)):
        drawing.text(20, top + 24 + 22 * k, f"{count} × ({by_src}, {by_dst})", mono=True, size=13)
        drawing.text(150, top + 24 + 22 * k, meaning, size=13, fill=QUIET)
    drawing.text(20, top + 120, "Count × (step in x, step in the result), in bytes", size=13, fill=QUIET)
    drawing.save("parts")


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    draw_call()
    draw_parts()
    draw_repeats()
    draw_alignment()
    draw_pages()
