"""Static single assignment: a variable that is assigned several times becomes several.

Numba rewrites every block for every such variable. Here the blocks that name it are known, and no other is looked at.
"""

from __future__ import annotations

import collections

from .numba_internals import build_definitions, compute_cfg_from_blocks, ir, register_pass, ssa, untyped_passes


def variables(instruction) -> list[ir.Var]:
    """Variables that an instruction or an expression reads; Numba's `list_vars` goes through everything it knows."""
    if isinstance(instruction, ir.Assign):
        instruction = instruction.value
    if isinstance(instruction, ir.Var):
        return [instruction]
    if isinstance(instruction, ir.Expr):
        values = instruction._kws.values()
    elif isinstance(instruction, ir.Const | ir.Global | ir.FreeVar | ir.Arg | ir.Jump):
        return []
    else:
        return instruction.list_vars()
    return list(_among(values))


def _among(values):
    for each in values:
        if isinstance(each, ir.Var):
            yield each
        elif isinstance(each, list | tuple):
            yield from _among(each)
        elif isinstance(each, dict):
            yield from _among(each.values())


class _Variables:
    """As Numba's rewriting asks for them."""

    get = staticmethod(variables)


def _reassigned(blocks, graph):
    """{variable to make several of: the blocks that name it}"""
    assigned, read = collections.defaultdict(list), collections.defaultdict(set)
    for label, block in blocks.items():
        for each in block.body:
            target = each.target.name if isinstance(each, ir.Assign) else None
            if target is not None:
                assigned[target].append(label)
            for variable in variables(each):
                if variable.name != target:
                    read[variable.name].add(label)
    above = graph.dominators()
    found = [name for name, labels in assigned.items() if len(labels) > 1]
    found += [
        name for name, labels in read.items()
        if len(assigned.get(name, ())) < 2 and any(above[label].isdisjoint(assigned.get(name, ())) for label in labels)
    ]  # fmt: skip
    return {name: read[name].union(assigned.get(name, ())) for name in found}


@register_pass(mutates_CFG=True, analysis_only=False)
class SSA(untyped_passes.ReconstructSSA):
    _name = "nbkernels_ssa"

    def run_pass(self, state):
        blocks = state.func_ir.blocks
        graph = compute_cfg_from_blocks(blocks)
        borders = ssa._iterated_domfronts(graph)
        for name, labels in _reassigned(blocks, graph).items():
            states = dict(ssa._make_states(blocks), varname=name, defmap=collections.defaultdict(list))
            self._rewrite(blocks, labels, states, ssa._FreshVarHandler())
            states.update(phimap=collections.defaultdict(list), cfg=graph)
            states["phi_locations"] = ssa._compute_phi_locations(borders, states["defmap"])
            self._rewrite(blocks, labels, states, ssa._FixSSAVars(_Variables))
            for label, phis in states["phimap"].items():
                blocks[label].body = phis + blocks[label].body
        self._patch_locals(state)
        state.func_ir._definitions = build_definitions(blocks)
        return True

    @staticmethod
    def _rewrite(blocks, labels, states, handler):
        blocks.update(
            ssa._run_block_rewrite({label: blocks[label] for label in blocks if label in labels}, states, handler)
        )
