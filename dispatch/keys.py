"""Dispatch keys: one per device, its Autograd partner, and the aliases that stand for several of them.

A key is a plain string. `CPU`, `CUDA` and `Meta` (shapes and dtypes only, touches no data) are here from the start;
`add_device` makes a further one. Which kernel a key gets is decided by `PRECEDENCE`, from the strongest:

    direct                          registered for this very key
    CompositeExplicitNonFunctional  } one kernel for every device, written over other ops; used for the device keys
    CompositeExplicit               }
    CompositeImplicit               the same, and its gradient comes from its parts: used for the Autograd keys too
    Autograd                        the op's derivative, for every Autograd key
    fallback                        the library's last resort for one key

ATen's longer names of the composites (`CompositeImplicitAutograd`) are taken as well.
"""

import os
from _thread import RLock

from .errors import RegistrationError, suggestion

LOCK = RLock()  # held for every change of keys, adapters, ops and tables; readers take none
if hasattr(os, "register_at_fork"):  # in a child there is nobody to open it
    os.register_at_fork(after_in_child=LOCK._at_fork_reinit)

CPU, CUDA, META = "CPU", "CUDA", "Meta"
COMPOSITE_EXPLICIT_NON_FUNCTIONAL = "CompositeExplicitNonFunctional"
COMPOSITE_EXPLICIT = "CompositeExplicit"
COMPOSITE_IMPLICIT = "CompositeImplicit"
AUTOGRAD = "Autograd"

COMPOSITES = (COMPOSITE_EXPLICIT_NON_FUNCTIONAL, COMPOSITE_EXPLICIT, COMPOSITE_IMPLICIT)
ALIASES = (*COMPOSITES, AUTOGRAD)
ATEN = {  # its names of the same
    "CompositeExplicitAutogradNonFunctional": COMPOSITE_EXPLICIT_NON_FUNCTIONAL,
    "CompositeExplicitAutograd": COMPOSITE_EXPLICIT,
    "CompositeImplicitAutograd": COMPOSITE_IMPLICIT,
}
PRECEDENCE = ("direct", *ALIASES, "fallback")

_devices = [CPU, CUDA, META]


def devices():
    """The device keys, in order of registration."""
    return tuple(_devices)


def autograd(device):
    """The Autograd partner of a device key: AutogradCPU of CPU."""
    return AUTOGRAD + device


def runtime():
    """Every key that a call can have: the devices, then their Autograd partners."""
    return devices() + tuple(autograd(device) for device in _devices)


def check(key):
    """A known key, by our name where ATen's was given; else a RegistrationError that names the nearest one."""
    key = ATEN.get(key, key) if isinstance(key, str) else key
    if key not in ALIASES and key not in runtime():
        raise RegistrationError(f"unknown dispatch key {key!r}{suggestion(str(key), runtime() + ALIASES)}")
    return key


def add_device(name):
    """Make a device key, for arrays whose adapter says that they live on it. Twice is once; returns the name."""
    if not name.isidentifier() or name.startswith(AUTOGRAD) or name in (*ALIASES, *ATEN):
        raise RegistrationError(f"{name!r} cannot be a device key: it must be an identifier, no alias, not Autograd...")
    with LOCK:
        if name not in _devices:
            _devices.append(name)
    return name


def remove_device(name):
    """Forget a device key that `add_device` made; kernels that are registered for it are never found again."""
    if name in (CPU, CUDA, META) or name not in _devices:
        raise RegistrationError(f"{name!r} is not a device key that was added")
    with LOCK:
        _devices.remove(name)
