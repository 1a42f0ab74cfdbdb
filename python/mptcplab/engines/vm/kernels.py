"""The kernels that the engine can run: Debian's, by suite, or an image by its path."""

from __future__ import annotations

import hashlib
import struct
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mptcplab.capabilities import kernel_of
from mptcplab.engines.vm import cache as place
from mptcplab.engines.vm import debian, modules
from mptcplab.errors import EngineError, with_hint

# Offsets in the header of an x86 boot image (Documentation/arch/x86/boot.rst): its signature, and where its version is.
_SIGNATURE_AT, _VERSION_AT, _SETUP_AT = 0x202, 0x20E, 0x200


@dataclass(frozen=True)
class Kernel:
    """A kernel with what it must load."""

    # What the user wrote after "vm:", such as "trixie-backports".
    name: str
    # The output of `uname -r`.
    release: str
    # Debian's package and its version; empty for an image by path.
    package: str
    image: Path
    # Uncompressed, in load order: dependencies first.
    modules: tuple[Path, ...]
    # SHA-256 of image and modules.
    digest: str


_FINDING = threading.Lock()


def find(engine: str) -> Kernel:
    """The kernel of an engine such as "vm:bookworm" or "vm:/path/to/vmlinuz", the same in all of this process."""
    # Sweeps of a study start at the same time, and the first may have to download the kernel.
    with _FINDING:
        return _find(kernel_of(engine))


@cache
def _find(name: str) -> Kernel:
    if "/" in name:
        return _by_path(name)
    found = debian.kernel(name)
    return Kernel(name, found.release, found.package, found.image, found.modules, digest(found.image, found.modules))


def _by_path(name: str) -> Kernel:
    image = Path(name).expanduser().absolute()
    tree = image.parent / "modules"
    if not image.is_file():
        raise EngineError(
            with_hint(f"no such kernel image: {image}", "vm:PATH is the path of a vmlinuz, vm:SUITE Debian's")
        )
    if not tree.is_dir():
        raise EngineError(
            with_hint(
                f"no modules beside the kernel image: {tree}",
                "copy the kernel's /lib/modules/RELEASE there; modules.builtin alone if all is built in",
            )
        )
    release = image_release(image)
    content = hashlib.sha256(str(image).encode() + image.read_bytes())
    for path in sorted(tree.rglob("*")):
        content.update(f"{path}\0{path.stat().st_mtime_ns}\0{path.stat().st_size}\0".encode())
    kernels = place.cache() / "kernels"
    extracted = kernels / "unpacked" / f"{release}-{content.hexdigest()[:12]}"
    with place.locked(kernels / "unpacked.lock"):
        if not extracted.is_dir():
            partial = extracted.with_name(f"{extracted.name}.partial")
            if partial.is_dir():
                for path in partial.iterdir():
                    path.unlink()
                partial.rmdir()
            modules.extract(tree, partial)
            partial.rename(extracted)
    paths = tuple(sorted(extracted.iterdir()))
    return Kernel(name, release, "", image, paths, digest(image, paths))


def image_release(image: Path) -> str:
    """The release of a kernel, from the header of its boot image."""
    content = image.read_bytes()
    if content[_SIGNATURE_AT : _SIGNATURE_AT + 4] != b"HdrS":
        raise EngineError(
            with_hint(f"not an x86 kernel image: {image}", "give a bzImage, such as /boot/vmlinuz-RELEASE")
        )
    try:
        (offset,) = struct.unpack_from("<H", content, _VERSION_AT)
        at = _SETUP_AT + offset
        return content[at : content.index(b"\0", at)].decode(errors="replace").split(" ")[0]
    except (struct.error, ValueError) as error:
        raise EngineError(with_hint(f"a damaged kernel image: {image}", "copy it again")) from error


def digest(image: Path, modules: tuple[Path, ...]) -> str:
    """SHA-256 of a kernel's image and modules, whatever directory they are in."""
    whole = hashlib.sha256()
    for path in (image, *modules):
        content = path.read_bytes()
        whole.update(f"{path.name} {len(content)}\n".encode() + content)
    return whole.hexdigest()
