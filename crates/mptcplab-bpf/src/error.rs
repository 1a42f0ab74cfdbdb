//! Errors of loading eBPF, with advice for the operator.

use mptcplab_cc::ParamError;

/// Why an algorithm or the tracer could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The kernel is too old.
    #[error(
        "this kernel is too old: {found}\n\nhint: congestion control in eBPF needs Linux 6.1 or newer"
    )]
    OldKernel {
        /// Release of the running kernel.
        found: String,
    },
    /// The kernel was built without BTF.
    #[error(
        "the kernel has no type information: /sys/kernel/btf/vmlinux is missing\n\n\
         hint: use a kernel built with CONFIG_DEBUG_INFO_BTF=y, as Debian's and Ubuntu's are; in a container /sys must be mounted"
    )]
    NoBtf,
    /// The caller may not load eBPF.
    #[error(
        "this user may not load eBPF\n\n\
         hint: run the command as root (sudo) or with the capabilities CAP_BPF and CAP_PERFMON; those of a user \
         namespace, such as that of a rootless container, do not count; the simulator needs neither"
    )]
    Privilege,
    /// The caller may not list eBPF objects.
    #[error(
        "this user may not list what is loaded as eBPF\n\n\
         hint: run the command as root (sudo) with CAP_SYS_ADMIN, which listing needs in addition to what loading needs, and \
         outside of user namespaces, such as that of a rootless container"
    )]
    ListPrivilege,
    /// The name is taken: names of congestion controls are global to the machine.
    #[error(
        "a congestion control named {name} is already registered in the kernel\n\n\
         hint: `cc list` shows what loaded it; `cc unload` removes one that is pinned"
    )]
    NameTaken { name: String },
    /// The name is not a valid name for a congestion control.
    #[error("name of a congestion control: {name:?} (wanted 1 to 15 letters, digits, '_' or '-')")]
    BadName { name: String },
    /// A parameter does not exist, or its value is out of range.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// There is no clang, which a file that is not part of the build needs.
    #[error(
        "{place} cannot be compiled for the kernel: {clang}: {error}\n\n\
         hint: install clang and the headers of libbpf (Debian packages clang and libbpf-dev), or name another clang with the \
         environment variable MPTCPLAB_CLANG"
    )]
    NoClang {
        place: String,
        clang: String,
        error: String,
    },
    /// Such a file does not compile.
    #[error("{place} does not compile for the kernel\n\n{messages}")]
    Compile { place: String, messages: String },
    /// Such a file is no algorithm, or it does not compile natively.
    #[error(transparent)]
    Source(#[from] mptcplab_cc::LoadError),
    /// The kernel refused to load it for another reason.
    #[error("the kernel refused {what}: {error}{reason}{log}")]
    Kernel {
        what: String,
        error: String,
        /// Where and why, as a paragraph, if the log says so.
        reason: String,
        /// The end of libbpf's and the verifier's log, as a paragraph, if there is one.
        log: String,
    },
}
