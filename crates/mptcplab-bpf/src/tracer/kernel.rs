//! Differences between kernels that must be known before loading, read from the kernel's BTF.

use super::error::TracerError;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{FuncProto, Ptr, Typedef};

/// Tracepoints that the programs attach to.
const TRACEPOINTS: [&str; 4] = [
    "tcp_probe",
    "tcp_retransmit_skb",
    "tcp_cong_state_set",
    "inet_sock_set_state",
];

/// How many arguments `tcp_retransmit_skb` has; newer kernels pass the error of sending as a third one, and then
/// also call it for failures. Checks that all tracepoints exist.
pub(super) fn retransmit_arguments() -> Result<usize, TracerError> {
    let btf = crate::libbpf::with_log("to read the kernel's type information", Btf::from_vmlinux)?;
    let mut arguments = 0;
    for name in TRACEPOINTS {
        let count = count_arguments(&btf, name).ok_or(TracerError::Tracepoint { name })?;
        if name == "tcp_retransmit_skb" {
            arguments = count;
        }
    }
    Ok(arguments)
}

/// Arguments of a tracepoint, without the private pointer that comes first in BTF.
fn count_arguments(btf: &Btf<'_>, tracepoint: &str) -> Option<usize> {
    let function: Typedef<'_> = btf.type_by_name(&format!("btf_trace_{tracepoint}"))?;
    let pointer = Ptr::try_from(function.next_type()?).ok()?;
    let prototype = FuncProto::try_from(pointer.next_type()?).ok()?;
    prototype.len().checked_sub(1)
}
