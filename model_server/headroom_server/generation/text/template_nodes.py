"""Adds the looks at time and sizes to a chat template, before it is compiled. Pure."""

from __future__ import annotations

from jinja2 import nodes
from jinja2.visitor import NodeTransformer

_STEP = nodes.EnvironmentAttribute("step")


class Bounded(NodeTransformer):
    """Adds a step to each body that may be entered more than once, and sizes where no hook is."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - named by Jinja
        """Look at the clock for each item, also for those that the loop's condition skips."""
        if node.test is not None:
            node.test = nodes.And(_STEP, node.test)
        return self._body(node)

    def _body(self, node: nodes.For | nodes.Macro | nodes.CallBlock | nodes.Block) -> nodes.Node:
        node.body.insert(0, nodes.ExprStmt(_STEP))
        return self.generic_visit(node)

    visit_Macro = visit_CallBlock = visit_Block = _body  # noqa: N815 - named by Jinja

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        """Replace the operator, which Jinja does not intercept."""
        return self.generic_visit(_called("joined", *node.nodes))

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        """Count the items that a slice copies: it bypasses `getitem`."""
        self.generic_visit(node)
        return _called("made", node) if isinstance(node.arg, nodes.Slice) else node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        """Size both sides, unless one is a constant, with which no other is compared in depth."""
        self.generic_visit(node)
        if not any(map(_flat, (node.expr, *(one.expr for one in node.ops)))):
            node.expr = _called("comparable", node.expr)
            for one in node.ops:
                one.expr = _called("comparable", one.expr)
        return node

    def visit_Pair(self, node: nodes.Pair) -> nodes.Node:  # noqa: N802
        """Size a key of a dict."""
        self.generic_visit(node)
        if not _flat(node.key):
            node.key = _called("comparable", node.key)
        return node


def _flat(node: nodes.Node) -> bool:
    if isinstance(node, nodes.List | nodes.Tuple):
        return all(isinstance(one, nodes.Const) for one in node.items)
    return isinstance(node, nodes.Const)


def _called(name: str, *given: nodes.Expr) -> nodes.Expr:
    return nodes.Call(nodes.EnvironmentAttribute(name), list(given), [], None, None)
