"""Static single assignment: a variable that is assigned several times becomes several.

Numba rewrites every block for every such variable. Here the blocks that name it are known, and no other is looked at.
Its compilers for the CPU and for CUDA have a module `ssa` each, alike.
"""

from __future__ import annotations

import collections

from .numba_internals import build_definitions, register_pass, ssa, untyped_passes


def _reassigned(blocks, graph, lists, assignments):
    """{variable to make several of: the blocks that name it}"""
    assigned, read = collections.defaultdict(list), collections.defaultdict(set)
    for label, block in blocks.items():
        for each in block.body:
            target = each.target.name if isinstance(each, assignments) else None
            if target is not None:
                assigned[target].append(label)
            for variable in lists.get(each):
                if variable.name != target:
                    read[variable.name].add(label)
    above = graph.dominators()
    found = [name for name, labels in assigned.items() if len(labels) > 1]
    found += [
        name for name, labels in read.items()
        if len(assigned.get(name, ())) < 2 and any(above[label].isdisjoint(assigned.get(name, ())) for label in labels)
    ]  # fmt: skip
    return {name: read[name].union(assigned.get(name, ())) for name in found}


def run_ssa(ssa, blocks):
    """Return the blocks with every variable assigned once, as `_run_ssa` of Numba's module `ssa` does."""
    graph = ssa.compute_cfg_from_blocks(blocks)
    borders, lists = ssa._iterated_domfronts(graph), ssa._CacheListVars()
    assignments = getattr(ssa.ir, "assign_types", ssa.ir.Assign)
    for name, labels in _reassigned(blocks, graph, lists, assignments).items():
        states = dict(ssa._make_states(blocks), varname=name, defmap=collections.defaultdict(list))
        _rewrite(ssa, blocks, labels, states, ssa._FreshVarHandler())
        states.update(phimap=collections.defaultdict(list), cfg=graph)
        states["phi_locations"] = ssa._compute_phi_locations(borders, states["defmap"])
        _rewrite(ssa, blocks, labels, states, ssa._FixSSAVars(lists))
        for label, phis in states["phimap"].items():
            blocks[label].body = phis + blocks[label].body
    return blocks


def _rewrite(ssa, blocks, labels, states, handler):
    some = {label: blocks[label] for label in blocks if label in labels}
    blocks.update(ssa._run_block_rewrite(some, states, handler))


@register_pass(mutates_CFG=True, analysis_only=False)
class SSA(untyped_passes.ReconstructSSA):
    _name = "nbkernels_ssa"

    def run_pass(self, state):
        run_ssa(ssa, state.func_ir.blocks)
        self._patch_locals(state)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True
