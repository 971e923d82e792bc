"""No two places of the package share more than eight lines of code, the same or alike but for names and values."""

import ast
import keyword
import tokenize
from collections import defaultdict
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src" / "gramian"
MOST_LINES = 8


def shapes(path):
    """Number and shape of each line within functions: its tokens, with names and values taken out.

    Docstrings, comments and imports do not count, nor do the heads of functions, whose parameters are alike on purpose,
    and lines that only name an argument.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    counted = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            counted.update(range(node.body[0].lineno, node.end_lineno + 1))
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text or isinstance(node, ast.Import | ast.ImportFrom):
            counted.difference_update(range(node.lineno, node.end_lineno + 1))
        if isinstance(node, ast.FunctionDef):  # one function within another
            counted.difference_update(range(node.lineno, node.body[0].lineno))
    lines = defaultdict(list)
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.NAME:
                lines[token.start[0]].append(
                    token.string if keyword.iskeyword(token.string) else "name"
                )
            elif token.type in (tokenize.NUMBER, tokenize.STRING):
                lines[token.start[0]].append("value")
            elif token.type == tokenize.OP:
                lines[token.start[0]].append(token.string)
    thin = {"name", "value", "=", "(", ")", "[", "]", "{", "}", ",", ":"}
    return [
        (number, " ".join(tokens))
        for number, tokens in sorted(lines.items())
        if number in counted and (len(tokens) > 4 or not set(tokens) <= thin)
    ]


def repetitions(files, most_lines):
    """Pairs of places that share more lines."""
    places = defaultdict(list)
    for path, lines in files.items():
        for k in range(len(lines) - most_lines):
            window = tuple(shape for _, shape in lines[k : k + most_lines + 1])
            places[window].append(f"{path}:{lines[k][0]}")
    return [found for found in places.values() if len(found) > 1]


def test_no_two_places_share_more_than_eight_lines():
    files = {str(path.relative_to(SOURCES)): shapes(path) for path in sorted(SOURCES.rglob("*.py"))}
    found = repetitions(files, MOST_LINES)
    assert found == []


def test_repetitions_are_found(tmp_path):
    body = "\n".join(f"    total = total + {k} * first[{k}]" for k in range(9))
    for name in ("one", "other"):
        text = f"def {name}(first):\n    total = 0\n{body}\n    return total\n"
        (tmp_path / f"{name}.py").write_text(text.replace("first", f"of_{name}"))
    files = {path.name: shapes(path) for path in sorted(tmp_path.glob("*.py"))}
    assert repetitions(files, MOST_LINES)[0] == ["one.py:3", "other.py:3"]
