"""A tree as text and as HTML. Large trees are cut: the first nodes in breadth-first order are shown.

Both walks recurse, because no more than ``limit`` nodes are visited, however deep the tree is.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from gramian.labels.taxonomy.rooted_tree import RootedTree


def text_tree(names: list[Any], tree: RootedTree, limit: int = 20) -> str:
    """Return the first ``limit`` nodes, one per line; inner nodes with their number of leaves.

    Examples
    --------
    >>> print(text_tree(["root", "a", "b", "c"], RootedTree([-1, 0, 0, 1])))
    root (2 leaves)
    ├─ a (1 leaf)
    │  └─ c
    └─ b
    """

    def lines(node: int) -> Iterator[str]:
        yield _label(names, tree, node)
        children = _shown_children(tree, node, limit)
        for child in children:
            branch, space = ("└─ ", "   ") if child == children[-1] else ("├─ ", "│  ")
            for number, line in enumerate(lines(child)):
                yield (space if number else branch) + line

    return "\n".join(lines(0))


def html_tree(names: list[Any], tree: RootedTree, limit: int = 200) -> str:
    """Return nested ``<details>``; the root is open."""

    def item(node: int) -> str:
        label = escape(_label(names, tree, node))
        items = "".join(item(child) for child in _shown_children(tree, node, limit))
        if not items:
            return f"<li>{label}</li>"
        state = "" if node else " open"
        return f"<li><details{state}><summary>{label}</summary><ul>{items}</ul></details></li>"

    return f'<ul class="gramian-taxonomy">{item(0)}</ul>'


def _shown_children(tree: RootedTree, node: int, limit: int) -> list[int]:
    """Children with a number below the limit, and minus the number of those left out."""
    children = tree.children(node).tolist() if node >= 0 else []
    shown = [child for child in children if child < limit]
    hidden = len(children) - len(shown)
    return [*shown, -hidden] if shown and hidden else shown


def _label(names: list[Any], tree: RootedTree, node: int) -> str:
    if node < 0:
        return f"… {-node} more"
    if tree.child_counts[node] == 0:
        return str(names[node])
    count = int(tree.leaf_counts[node])
    return f"{names[node]} ({count} {'leaf' if count == 1 else 'leaves'})"
