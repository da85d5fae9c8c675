"""Kind: what a product is made of, by dtypes: operands in memory, chains in registers, results in memory."""

from __future__ import annotations

from dataclasses import dataclass

BYTES = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "float16": 2, "bfloat16": 2, "int32": 4, "float32": 4, "int64": 8,
    "float64": 8, "complex64": 8, "complex128": 16,
}  # fmt: skip
SIZE = {"float32": 4, "float64": 8}  # of dtypes whose vectors are LLVM's own
PLANE = {"complex64": "float32", "complex128": "float64"}
ITEMS = {"bytes": 4, "pairs": 2, "bf16": 2}  # in a word, by the way of a step
UNIT = "amx"  # the way of a matrix unit, which takes 16 words of k at a time
SIGNLESS = {"uint16": "int16", "uint32": "int32", "uint64": "int64"}  # the same bits modulo 2**bits


@dataclass(frozen=True)
class Kind:
    """A and B hold `a` and `b`; an element of the product is one chain of dtype `chain`; C and X hold `out`.

    `way` is how a chain takes one more step:

        fma     chain = fma(a, b, chain), rounded once; complex: re += ar*br, re -= ai*bi, im += ar*bi, im += ai*br
        mul     chain = chain + a*b modulo 2**bits
        bytes   chain = chain + the dot product of 4 bytes, one operand's unsigned (vpdpbusd)
        pairs   chain = chain + the dot product of 2 int16 (vpdpwssd, pmaddwd)
        bf16    chain = chain + the dot product of 2 bfloat16 (vpdpbf16ps)
        amx     chain = chain + the dot product of 64 bytes, of integers or halves (tdpbssd, tdpbf16ps, tdpfp16ps)

    Panels hold words: one element converted to the chain's dtype, or `items` neighbours in k. Complex numbers lie in
    two planes there, real and imaginary. `conj` names the operands to conjugate: "", "a", "b" or "ab"; `turned` says
    that A and B have changed places, which the order of a complex step must not show.
    """

    a: str
    b: str
    chain: str
    out: str
    way: str = "fma"
    conj: str = ""
    turned: bool = False

    @classmethod
    def plain(cls, dtype: str) -> Kind:
        """One float dtype throughout."""
        return cls(dtype, dtype, dtype, dtype)

    @property
    def items(self) -> int:
        """Elements in a word."""
        return 4 // BYTES[self.a] if self.way == UNIT else ITEMS.get(self.way, 1)

    @property
    def group(self) -> int:
        """Steps of k that lie together in a panel."""
        return 16 * self.items if self.way == UNIT else self.items

    @property
    def planes(self) -> int:
        return 2 if self.chain in PLANE else 1

    @property
    def word(self) -> str:
        """dtype of a word of a panel."""
        return "int32" if self.items > 1 else PLANE.get(self.chain, self.chain)

    @property
    def offset(self) -> bool:
        """Whether A's bytes are moved by 128, for an instruction that wants operands of both signs."""
        return self.way == "bytes" and self.a == self.b != "bool"

    @property
    def same(self) -> bool:
        """Whether panels hold operands as they lie in memory."""
        return self.a == self.b == self.word and self.items == 1

    @property
    def direct(self) -> bool:
        """Whether a chain that is not finished can wait in out."""
        return self.chain == self.out

    def swapped(self) -> Kind:
        """The kind of C' = B' A'."""
        conj = self.conj.translate({ord("a"): "b", ord("b"): "a"})
        return Kind(self.b, self.a, self.chain, self.out, self.way, conj, self.planes == 2 and not self.turned)

    def __str__(self) -> str:
        if self == Kind.plain(self.chain):
            return self.chain
        conj = f"_conj_{self.conj}" * bool(self.conj) + "_turned" * self.turned
        return f"{self.a}_{self.b}_{self.chain}_{self.out}_{self.way}{conj}"


def wrapped(factor, kind: Kind):
    """A factor as chains hold it: whole numbers modulo 2**bits, of bool the truth."""
    if kind.out == "bool":
        return int(bool(factor))
    if not kind.chain.startswith("int"):
        return factor
    bits = 8 * BYTES[kind.chain]
    return (int(factor) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
