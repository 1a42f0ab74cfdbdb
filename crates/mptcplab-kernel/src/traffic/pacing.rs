//! Pacing for the kernel's own algorithms.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// Any limit except the largest value makes the kernel pace; an unreachable one leaves the rate to its own gains.
const OUT_OF_REACH_BYTES_PER_S: libc::c_ulong = libc::c_ulong::MAX - 1;

/// Makes a TCP socket pace at Linux's default gains.
pub(super) fn pace(socket: impl AsFd) -> io::Result<()> {
    let rate = OUT_OF_REACH_BYTES_PER_S;
    // A constant size, far below the limit.
    let length = size_of_val(&rate) as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes from `rate` during the call only; the descriptor is borrowed.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const rate).cast(),
            length,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
