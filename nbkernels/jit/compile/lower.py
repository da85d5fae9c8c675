"""Numba's lowering to LLVM IR, without what serves debuggers, `try` and values that are counted."""

from __future__ import annotations

import functools
import operator

from llvmlite.ir import Function as IRFunction
from llvmlite.ir import FunctionType, IRBuilder
from numba import types

from ..ir.vector import I64
from .infer import COMPARED, Memory, direct
from .numba_internals import PyCallWrapper, cgutils, do_minmax, errors, ir, lowering


class Vectorcall(PyCallWrapper):
    """The C function that Python calls, by METH_FASTCALL: a tuple of arguments would take a fifth of an 8x8 call."""

    def build(self):
        python = self.context.get_argument_type(types.pyobject)
        kind, name = FunctionType(python, [python, python.as_pointer(), I64]), self.fndesc.llvm_cpython_wrapper_name
        wrapper = IRFunction(self.module, kind, name)
        builder = IRBuilder(wrapper.append_basic_block("entry"))
        api = self.context.get_python_api(builder)
        raw = [str(each) for each in self.fndesc.argtypes] == ["owner", "arguments", "count"]
        api.unpack_tuple = functools.partial(self._as_it_comes if raw else self._taken, api, builder, *wrapper.args)
        self.build_wrapper(api, builder, *wrapper.args)

    @staticmethod
    def _as_it_comes(api, builder, owner, args, count, _, name, least, most, *places):
        """Store what CPython passes: the owner, the arguments' address, their number."""
        given = owner, builder.bitcast(args, owner.type), builder.inttoptr(count, owner.type)
        for value, place in zip(given, places):
            builder.store(value, place)
        return cgutils.true_bit

    @staticmethod
    def _taken(api, builder, owner, args, count, _, name, least, most, *places):
        """Store the arguments at their places; tell whether there are as many as are wanted."""
        enough = builder.icmp_signed("==", count, I64(most))
        with builder.if_else(enough) as (then, otherwise):
            with then:
                for i, place in enumerate(places):
                    builder.store(builder.load(builder.gep(args, [I64(i)])), place)
            with otherwise:
                api.err_format("PyExc_TypeError", f"{name}: {most} arguments are wanted, not %zd", count)
        return enough


class Lower(lowering.Lower):
    """Numba's, for functions without its runtime."""

    def create_cpython_wrapper(self, release_gil=False):
        module, described = self.context.create_module("wrapper"), self.fndesc
        kind = self.context.call_conv.get_function_type(described.restype, described.argtypes)
        function = IRFunction(module, kind, described.llvm_func_name)
        Vectorcall(self.context, module, function, described, self.env, self.call_helper, release_gil).build()
        self.library.add_ir_module(module)

    def lower_block(self, block):
        try:
            for each in block.body:
                self.loc = each.loc
                self.lower_inst(each)
        except Exception:  # raised again below, with the instruction's text, which is made for one that fails alone
            kind = functools.partial(errors.LoweringError, loc=self.loc)
            with errors.new_error_context('lowering "{inst}" at {loc}', inst=each, loc=self.loc, errcls_=kind):
                raise

    def lower_inst(self, inst):
        if isinstance(inst, ir.Assign):
            self.debuginfo.mark_location(self.builder, self.loc.line)
            name = inst.target.name
            self.storevar(self.lower_assign(self.typeof(name), inst), name)
        else:
            super().lower_inst(inst)

    def storevar(self, value, name, argidx=None):
        """What a variable held before needs no clearing up."""
        if name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))

    def lower_binop(self, resty, expr, op):
        """Only powers have implementations for operands that are known."""
        if op in (operator.pow, operator.ipow):
            return super().lower_binop(resty, expr, op)
        signature, context = self.fndesc.calltypes[expr], self.context
        kind = context.typing_context.resolve_value_type(op)
        chosen = Memory(context.typing_context).resolve_function_type(kind, signature.args, {})
        function = context.get_function(kind, chosen)
        result = function(self.builder, self._operands(signature, (expr.lhs, expr.rhs)))
        return context.cast(self.builder, result, signature.return_type, resty)

    def lower_call(self, resty, expr):
        function, signature = self.typeof(expr.func.name), self.fndesc.calltypes[expr]
        if direct(self.context.typing_context, function, signature.args) is None:
            result = super().lower_call(resty, expr)
            stepped = getattr(function, "typing_key", None) is range and len(expr.args) == 3
            return self._without_step_of_0(result) if stepped else result
        values = self._operands(signature, expr.args)
        if function.typing_key is int:
            return self.context.cast(self.builder, *values, *signature.args, resty)
        compare = COMPARED[function.typing_key]
        result = do_minmax(self.context, self.builder, signature.args, values, compare)
        return self.context.cast(self.builder, result, signature.return_type, resty)

    def _without_step_of_0(self, steps):
        """A range whose step is 1 where it is 0, which would raise: kernels are not to."""
        step = self.builder.extract_value(steps, 2)
        empty = self.builder.icmp_signed("==", step, step.type(0))
        return self.builder.insert_value(steps, self.builder.select(empty, step.type(1), step), 2)

    def _operands(self, signature, variables):
        return [
            self.context.cast(self.builder, self.loadvar(each.name), self.typeof(each.name), kind)
            for each, kind in zip(variables, signature.args, strict=True)
        ]

    def alloca_lltype(self, name, lltype, datamodel=None):
        """Numba asks LLVM for the size, for debuggers."""
        return cgutils.alloca_once(self.builder, lltype, name=name, zfill=False)
