"""A tree as text and as HTML. Large trees are cut: the first nodes in breadth-first order are shown."""

from __future__ import annotations

from html import escape
from typing import Any

from gramian.labels.taxonomy.rooted_tree import RootedTree

__all__ = ["html_tree", "text_tree"]


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
    lines: list[str] = []
    waiting: list[tuple[int, str, str]] = [(0, "", "")]  # node, before its name, before its subtree
    while waiting:
        node, before, below = waiting.pop()
        if node < 0:
            lines.append(f"{before}… {-node} more")
            continue
        lines.append(f"{before}{_label(names, tree, node)}")
        entries = _shown_children(tree, node, limit)
        for place in range(len(entries) - 1, -1, -1):  # the first is popped first
            is_last = place == len(entries) - 1
            branch, space = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
            waiting.append((entries[place], below + branch, below + space))
    return "\n".join(lines)


def html_tree(names: list[Any], tree: RootedTree, limit: int = 200) -> str:
    """Return nested ``<details>``; the root is open."""
    parts: list[str] = []
    waiting: list[int | str] = [0]
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, str):
            parts.append(entry)
        elif entry < 0:
            parts.append(f"<li>… {-entry} more</li>")
        else:
            label = escape(_label(names, tree, entry))
            entries = _shown_children(tree, entry, limit)
            if not entries:
                parts.append(f"<li>{label}</li>")
                continue
            state = " open" if entry == 0 else ""
            parts.append(f"<li><details{state}><summary>{label}</summary><ul>")
            waiting.append("</ul></details></li>")
            waiting.extend(reversed(entries))
    return f'<ul class="gramian-taxonomy">{"".join(parts)}</ul>'


def _shown_children(tree: RootedTree, node: int, limit: int) -> list[int]:
    """Children with a number below the limit, and minus the number of those left out."""
    children = tree.children(node).tolist()
    shown = [child for child in children if child < limit]
    hidden = len(children) - len(shown)
    return [*shown, -hidden] if shown and hidden else shown


def _label(names: list[Any], tree: RootedTree, node: int) -> str:
    if tree.child_counts[node] == 0:
        return str(names[node])
    count = int(tree.leaf_counts[node])
    return f"{names[node]} ({count} {'leaf' if count == 1 else 'leaves'})"
