"""Formulas as MathML, which browsers draw by themselves: the pages need no script and no network.

Understands the part of LaTeX that these pages use. An unknown command is a warning, hence an error in
`make docs`: add it to a table below.
"""

import re
from html import escape

from docutils import nodes
from sphinx.util import logging

logger = logging.getLogger(__name__)

LETTERS = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "lambda": "λ",
    "mu": "μ",
    "nu": "ν",
    "pi": "π",
    "rho": "ρ",
    "sigma": "σ",
    "tau": "τ",
    "theta": "θ",
    "phi": "ϕ",
    "varphi": "φ",
    "ell": "ℓ",
    "Delta": "Δ",
    "Phi": "Φ",
    "Psi": "Ψ",
    "Omega": "Ω",
}
SYMBOLS = {
    "nabla": "∇",
    "partial": "∂",
    "star": "⋆",
    "top": "⊤",
    "cdot": "·",
    "ldots": "…",
    "times": "×",
    "circ": "∘",
    "to": "→",
    "pm": "±",
    "le": "≤",
    "ge": "≥",
    "approx": "≈",
    "sim": "∼",
    "in": "∈",
    "infty": "∞",
}
BRACKETS = {
    "langle": "⟨",
    "rangle": "⟩",
    "lVert": "‖",
    "rVert": "‖",
    "lvert": "|",
    "rvert": "|",
}
FUNCTIONS = {"log", "exp", "sin", "cos"}
BELOW = {"min", "max", "sup"}  # in a display their index goes below
SPACES = {",": "0.17em", ";": "0.28em", " ": "0.25em", "qquad": "2em", "quad": "1em"}
SIZES = {"bigl": "1.2em", "bigr": "1.2em", "Bigl": "1.8em", "Bigr": "1.8em"}
SCRIPT = {"K": "𝒦", "L": "ℒ"}
TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[0-9]+(?:\.[0-9]+)?|\s+|.", re.DOTALL)


class Converter:
    """One formula, by recursive descent."""

    def __init__(self, latex: str, display: bool):
        self.tokens = [token for token in TOKEN.findall(latex) if not token.isspace()]
        self.raw = latex
        self.display = display
        self.place = 0

    def convert(self) -> str:
        body = self.row(None)
        kind = "block" if self.display else "inline"
        return f'<math display="{kind}"><mrow>{body}</mrow></math>'

    def next(self) -> str:
        if self.place == len(self.tokens):
            raise ValueError("unexpected end")
        self.place += 1
        return self.tokens[self.place - 1]

    def peek(self) -> str | None:
        return self.tokens[self.place] if self.place < len(self.tokens) else None

    def row(self, end: str | None) -> str:
        parts = []
        while self.peek() != end:
            parts.append(self.scripted())
        if end is not None:
            self.next()
        return "".join(parts)

    def scripted(self) -> str:
        """An atom with what hangs on it."""
        below = self.display and (self.peek() or "").lstrip("\\") in BELOW | {"sum"}
        base = self.atom()
        scripts: dict[str, str] = {}
        while self.peek() in ("_", "^", "'"):
            mark = self.next()
            if mark == "'":
                scripts["^"] = scripts.get("^", "") + "<mo>′</mo>"
            else:
                scripts[mark] = scripts.get(mark, "") + self.argument()
        if not scripts:
            return base
        low, high = (f"<mrow>{scripts[m]}</mrow>" if m in scripts else None for m in "_^")
        if low and high:
            tag = "munderover" if below else "msubsup"
            return f"<{tag}>{base}{low}{high}</{tag}>"
        if low:
            tag = "munder" if below else "msub"
            return f"<{tag}>{base}{low}</{tag}>"
        return f"<msup>{base}{high}</msup>"

    def argument(self) -> str:
        """What a command takes: a group, a command, or one character: \\frac12 is ½."""
        token = self.peek() or ""
        if token.isdigit() and len(token) > 1:
            self.tokens[self.place : self.place + 1] = list(token)
        return self.atom()

    def atom(self) -> str:
        token = self.next()
        if token == "{":
            return f"<mrow>{self.row('}')}</mrow>"
        if token.startswith("\\"):
            return self.command(token[1:])
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return f"<mi>{token}</mi>"
        shown = {"-": "−", "*": "∗"}.get(token, token)
        stretch = ' stretchy="false"' if token in "()[]|" else ""
        return f"<mo{stretch}>{escape(shown)}</mo>"

    def command(self, name: str) -> str:
        if name in LETTERS:
            return f"<mi>{LETTERS[name]}</mi>"
        if name in SYMBOLS:
            return f"<mo>{SYMBOLS[name]}</mo>"
        if name in BRACKETS:
            form = "prefix" if name[0] == "l" else "postfix"
            return f'<mo stretchy="false" form="{form}">{BRACKETS[name]}</mo>'
        if name in FUNCTIONS | BELOW:
            return (
                f'<mi>{name}</mi><mspace width="0.17em"/>'
                if name in FUNCTIONS
                else f"<mo>{name}</mo>"
            )
        if name in SPACES:
            return f'<mspace width="{SPACES[name]}"/>'
        if name in SIZES:
            bracket = escape(self.next())
            return f'<mo stretchy="true" minsize="{SIZES[name]}" maxsize="{SIZES[name]}">{bracket}</mo>'
        if name == "sum":
            return "<mo>∑</mo>"
        if name in ("frac", "tfrac"):
            style = ' displaystyle="false"' if name == "tfrac" else ""
            return f"<mstyle{style}><mfrac>{self.argument()}{self.argument()}</mfrac></mstyle>"
        if name == "sqrt":
            return f"<msqrt>{self.argument()}</msqrt>"
        if name == "mathcal":
            return "<mi>" + "".join(SCRIPT[letter] for letter in self.words()) + "</mi>"
        if name in ("mathrm", "operatorname"):
            return f'<mi mathvariant="normal">{"".join(self.words())}</mi>'
        if name == "text":
            return f"<mtext>{escape(''.join(self.words()))}</mtext>"
        raise ValueError(f"unknown command \\{name}")

    def words(self) -> list[str]:
        """The tokens of a group, as they are."""
        if self.next() != "{":
            raise ValueError("a group in braces was expected")
        found = []
        while (token := self.next()) != "}":
            found.append(token)
        return found


def to_mathml(latex: str, display: bool, location) -> str:
    try:
        return Converter(latex, display).convert()
    except (ValueError, KeyError) as error:
        logger.warning("formula %r: %s", latex, error, location=location)
        return f"<code>{escape(latex)}</code>"


def visit_inline(translator, node):
    translator.body.append(to_mathml(node.astext(), False, node))
    raise nodes.SkipNode


def visit_block(translator, node):
    translator.body.append(
        f'<div class="math-block">{to_mathml(node.astext(), True, node)}</div>\n'
    )
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
