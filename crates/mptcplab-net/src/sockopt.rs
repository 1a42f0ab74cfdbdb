//! Socket options that no other crate supports, as plain bytes. Only this module calls getsockopt and setsockopt directly.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::{NetError, Result};

/// include/uapi/linux/socket.h; `libc` does not define it for every target.
const SO_NETNS_COOKIE: i32 = 71;

/// Fills `buffer`, whose content is an argument for some options, and returns the number of bytes that the kernel wrote.
/// Only for options whose argument contains no addresses.
pub(crate) fn read(fd: impl AsFd, level: i32, option: i32, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the options that this crate reads this way have no addresses in their arguments.
    unsafe { read_through_pointers(fd, level, option, buffer) }
}

/// The same as [`read`] for options whose argument contains addresses to which the kernel writes.
///
/// # Safety
///
/// The addresses in `buffer` must be valid for writes of the sizes that the option defines until this returns.
pub(crate) unsafe fn read_through_pointers(
    fd: impl AsFd,
    level: i32,
    option: i32,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let mut length = libc::socklen_t::try_from(buffer.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: the kernel writes at most `length` bytes to `buffer`, which has that many, and keeps neither pointer; what
    // else it writes is the caller's promise.
    let outcome = unsafe {
        libc::getsockopt(
            fd.as_fd().as_raw_fd(),
            level,
            option,
            buffer.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    match outcome {
        0 => Ok(length as usize),
        _ => Err(io::Error::last_os_error()),
    }
}

/// An option that is one native 32-bit number.
pub(crate) fn read_i32(fd: impl AsFd, level: i32, option: i32) -> io::Result<i32> {
    let mut bytes = [0; 4];
    read(fd, level, option, &mut bytes)?;
    Ok(i32::from_ne_bytes(bytes))
}

/// Sets an option to `value`.
pub(crate) fn write(fd: impl AsFd, level: i32, option: i32, value: &[u8]) -> io::Result<()> {
    let length = libc::socklen_t::try_from(value.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: the kernel reads at most `length` bytes of `value`, which has that many, and keeps no pointer to it.
    let outcome = unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            level,
            option,
            value.as_ptr().cast(),
            length,
        )
    };
    match outcome {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The cookie of the network namespace that the socket belongs to.
pub(crate) fn namespace_cookie(fd: impl AsFd) -> Result<u64> {
    let mut bytes = [0; 8];
    read(fd, libc::SOL_SOCKET, SO_NETNS_COOKIE, &mut bytes).map_err(|error| {
        NetError::kernel("read SO_NETNS_COOKIE", error).with_hint("this needs Linux 5.14 or newer")
    })?;
    Ok(u64::from_ne_bytes(bytes))
}
