"""The command line: python -m nbkernels COMMAND. Heavy imports wait for their command."""

import argparse
import functools
import math
import os
import sys

import nbkernels
from nbkernels.benches.command import options as bench_options
from nbkernels.dispatch.errors import meant
from nbkernels.tuning.command import options as tune_options

CARDS = "CUDA kernels for compute capabilities as 8.6 or 9.0a, in place of the CPU's; needs no GPU"


def program():
    """`python -m nbkernels`, and the command `nbkernels` that an installation brings."""
    try:
        if sys.argv[1:2] in (["bench"], ["demo"]):  # which measure other libraries, too
            from nbkernels.benches.peers import at_best

            at_best()
        return main()
    except KeyboardInterrupt:  # before a command has begun
        print("\ninterrupted", file=sys.stderr)
        return 130


def main(argv=None):
    """Exit code: 0, 1 where a check failed, 2 for what the command line asks and cannot be had, 130 after Ctrl-C."""
    argv = sys.argv[1:] if argv is None else list(argv)
    parser, commands = _parser()
    if argv and not argv[0].startswith("-") and argv[0] not in commands:
        parser.error(f"no command {argv[0]!r}{_nearest(argv[0], commands)}")
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        of = commands.get(argv[0], parser)
        near = meant(unknown[0].split("=")[0], list(of._option_string_actions))
        of.error(f"unrecognized arguments: {' '.join(unknown)}{near}")
    if "run" not in args:
        parser.print_help(sys.stderr)
        return 2
    if args.run is _run:  # the program's errors are its own
        return args.run(args)
    try:
        return args.run(args) or 0
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader (| head) has seen enough; keep the interpreter's own flush quiet
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (MemoryError, OSError) as error:  # more than the machine has, or a file that cannot be written
        print(f"{argv[0]}: {error}", file=sys.stderr)
        return 2


def _nearest(word, known):
    return meant(word, list(known)) or f" (there are {', '.join(sorted(known))})"


def _positive(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return int(text)


def _seconds(text):
    try:
        if 0 <= float(text) < math.inf:
            return float(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")


def _parser():
    parser = argparse.ArgumentParser(prog="python -m nbkernels", description=nbkernels.__doc__)
    parser.add_argument("--version", action="version", version=nbkernels.__version__)
    commands = parser.add_subparsers(metavar="COMMAND")

    def command(run, *, dtype=True):
        summary = run.__doc__.splitlines()[0]
        sub = commands.add_parser(run.__name__.lstrip("_"), help=summary, description=summary)
        sub.set_defaults(run=run)
        if dtype:
            sub.add_argument("--dtype", choices=["float32", "float64"], default="float32", help="(%(default)s)")
        return sub

    demo = command(_demo)
    demo.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="(%(default)s)")
    demo.add_argument("--hidden", type=_positive, default=128, help="width of the hidden layer (%(default)s)")
    demo.add_argument("--epochs", type=_positive, default=40, help="passes over the training set (%(default)s)")
    demo.add_argument("--batch", type=_positive, default=64, help="digits per step (%(default)s)")
    command(_info, dtype=False)
    bench_options(command(_bench, dtype=False), _positive, _seconds)
    tune_options(command(_tune, dtype=False))
    warmup = command(_warmup, dtype=False)
    warmup.add_argument("dtypes", nargs="*", metavar="DTYPE", help="only calls with such arrays, as float32")
    which = warmup.add_mutually_exclusive_group()
    which.add_argument("--set", choices=["everyday", "all"], default="everyday", help="of calls (%(default)s)")
    which.add_argument("--from", dest="file", metavar="FILE", help="the calls that NBKERNELS_RECORD=FILE wrote down")
    warmup.add_argument("--only", nargs="+", action="extend", default=[], metavar="PATTERN",
                        help="calls whose line in the list holds this, or matches it as names of files do")  # fmt: skip
    warmup.add_argument("--list", action="store_true", help="print the calls, and where their code is; compile nothing")
    warmup.add_argument("--cuda", nargs="+", action="extend", default=[], metavar="CC", help=CARDS)
    warmup.add_argument("--jobs", type=_positive, metavar="N", help="processes (as many as there are cores)")
    prebuild = command(_prebuild, dtype=False)
    prebuild.add_argument("--target", nargs="+", action="extend", default=[], metavar="LEVEL",
                          help="levels of processors: x86-64-v3, x86-64-v4, either with +FEATURE of LLVM's; arm64 on "
                          "such a machine (x86-64-v3 x86-64-v4 x86-64-v4+avx512vnni)")  # fmt: skip
    prebuild.add_argument("--set", default="everyday", metavar="everyday|all|FILE", help="of calls (%(default)s)")
    prebuild.add_argument("--cuda", nargs="+", action="extend", default=[], metavar="CC", help=CARDS)
    prebuild.add_argument("--jobs", type=_positive, metavar="N", help="processes (as many as there are cores)")
    prebuild.add_argument("--out", default="build/prebuilt", metavar="DIR", help="where it goes (%(default)s)")
    cache = command(_cache, dtype=False).add_mutually_exclusive_group()
    cache.add_argument("--prune", action="store_true", help="remove the code of every other toolchain than this one")
    cache.add_argument("--clear", action="store_true", help="remove all code, and the winners that tune has kept")
    run = command(_run, dtype=False)
    run.add_argument("--report", action="store_true", help="say afterwards what ran here, what in NumPy, and why")
    run.add_argument("--floats", action="store_true", help="also products of float32, float64 and complex numbers")
    run.add_argument("--functions", action="store_true", help="also np.dot, inner, tensordot, einsum and multi_dot")
    run.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE ...", help="a module, by its name")
    run.add_argument("script", nargs=argparse.REMAINDER, metavar="SCRIPT ...", help="a script and its arguments")
    table = command(_table, dtype=False)
    table.add_argument("op", nargs="?", help="an operation's name, as in nbkernels.OP")
    table.add_argument("--keys", nargs="+", metavar="KEY", help="the table of an op that had kernels for these keys")
    command(_completion, dtype=False).add_argument("shell", choices=["bash", "zsh"])
    written = {run: command(run, dtype=False) for run in (_docs, _stubs)}
    for sub in written.values():
        sub.add_argument("file", nargs="?", help="where to write it (standard output)")
    written[_docs].add_argument("--pages", metavar="DIR", help="a page for each public function instead, for the site")
    written[_stubs].add_argument("--of", choices=["nbkernels", "torch", "dispatch"], default="nbkernels",
                                 help="whose public names (%(default)s)")  # fmt: skip
    return parser, commands.choices


def _demo(args):
    """Train a digit classifier with library calls alone, and compare it with the same program in NumPy."""
    from nbkernels.commands import demo

    try:
        accuracy = demo.run(
            device=args.device, hidden=args.hidden, epochs=args.epochs, batch=args.batch, dtype=args.dtype
        )
    except demo.Unavailable as error:
        print(f"demo --device {args.device}: {error}", file=sys.stderr)
        return 2
    return 0 if accuracy > 0.5 else 1  # five times chance: anything less is a broken kernel, not a short training


def _info(args):
    """Print versions, CPU features, threading layer, cache directory and GPUs."""
    from nbkernels.commands import info

    print(info.text())


def _bench(args):
    """Time this library against NumPy, torch and other peers in one run: interleaved medians, shares of peaks."""
    from nbkernels.benches import command

    return command.run(args)


def _tune(args):
    """Time the legal tiles of matrix products here; what is fastest is kept, and used from then on."""
    from nbkernels.tuning import command

    return command.run(args)


def _warmup(args):
    """Compile the kernels of a set of calls into the cache, so that later processes need not wait."""
    from nbkernels.commands import cubins, warmup
    from nbkernels.dtypes import DTYPES

    try:
        if unknown := [dtype for dtype in args.dtypes if dtype not in DTYPES]:
            raise warmup.Nothing(f"{', '.join(unknown)} is not among {', '.join(DTYPES)}")
        work = warmup.chosen(args.file or args.set, args.dtypes, args.only)
        if args.cuda:
            chosen = functools.partial(cubins.calls, args.file or args.set, args.dtypes, args.only)
            return cubins.listed(chosen, args.cuda) if args.list else cubins.run(chosen, args.cuda, args.jobs)
    except (ValueError, ImportError) as error:
        print(f"warmup: {error}", file=sys.stderr)
        return 2
    if args.list:
        print(warmup.listed(work))
        return 0
    return warmup.run(work, args.jobs)


def _prebuild(args):
    """Compile the kernels of a set of calls for levels of processors, or for GPUs, to come with a wheel."""
    from nbkernels.commands import cubins, prebuild, warmup

    try:
        if args.cuda:
            failed = cubins.run(functools.partial(cubins.calls, args.set), args.cuda, args.jobs, f"{args.out}/cuda")
            if failed or not args.target:
                return failed
        prebuild.chosen(args.target)
        return prebuild.run(args.target, warmup.chosen(args.set), args.jobs, args.out)
    except (ValueError, ImportError) as error:
        print(f"prebuild: {error}", file=sys.stderr)
        return 2


def _cache(args):
    """Print what the cache of compiled code holds, by toolchain (versions, options and sources); * marks this one."""
    from nbkernels.commands import cache

    if args.prune or args.clear:
        return cache.prune() if args.prune else cache.clear()
    print(cache.text())
    return 0


def _run(args):
    """Run a script or a module that nobody edits with NumPy's own operations running here: use_in_numpy."""
    from nbkernels.in_numpy.run import run
    from nbkernels.in_numpy.table import UnknownNumPy

    if not (command := args.module or args.script):
        print("run: name a script, or -m and a module", file=sys.stderr)
        return 2
    try:
        run(command[0], command[1:], module=bool(args.module), report=args.report, floats=args.floats,
            functions=args.functions)  # fmt: skip
    except UnknownNumPy as error:
        print(f"run: {error}", file=sys.stderr)
        return 2
    return 0


def _table(args):
    """Print an operation's dispatch table: registered rows, computed rows, where each came from."""
    from nbkernels.dispatch import RegistrationError, Table
    from nbkernels.ops import OPERATIONS
    from nbkernels.plots import columns

    if args.keys:
        try:
            print(columns.text(str(Table.of(*args.keys, schema=args.op or "an op"))))
        except RegistrationError as error:
            print(error, file=sys.stderr)
            return 2
        return 0
    if args.op not in OPERATIONS:
        what = "name an operation" if args.op is None else f"no operation {args.op!r}"
        print(columns.line(what + _nearest(args.op or "", OPERATIONS)), file=sys.stderr)
        return 2
    print(columns.text(str(getattr(nbkernels, args.op).table())))
    return 0


def _docs(args):
    """Write the page of all operations: signature, forms, dtypes, devices, formula, gradient."""
    from nbkernels.commands import docs, pages

    if args.pages:
        print(f"{pages.write(args.pages)} pages: {args.pages}")
        return
    _write(docs.page(), args.file)


def _stubs(args):
    """Write the types of the public names, for mypy, pyright and editors: an __init__.pyi."""
    from nbkernels.commands import stubs

    _write(stubs.PAGES[args.of](), args.file)


def _completion(args):
    """Print the completion of commands and options for a shell."""
    try:
        import shtab
    except ImportError:
        print("completion: shtab is not installed: pip install 'nbkernels[completion]'", file=sys.stderr)
        return 2
    parser, _ = _parser()
    parser.prog = "nbkernels"
    print(shtab.complete(parser, shell=args.shell))
    return 0


def _write(text, file):
    if file is None:
        print(text, end="")
        return
    with open(file, "w", encoding="utf-8", newline="\n") as opened:
        opened.write(text)
