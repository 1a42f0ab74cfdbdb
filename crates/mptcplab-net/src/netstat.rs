//! TCP's counters of a namespace, as `nstat` shows them.

use crate::error::{NetError, Result};
use crate::namespace::Namespace;
use std::fs;

/// That of the thread: /proc/net belongs to the process's first one.
const PATH: &str = "/proc/thread-self/net/netstat";

impl Namespace {
    /// One of Linux' extended TCP counters, such as `TCPMemoryPressures`; `None` if the kernel does not have it.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] naming the counter.
    pub fn tcp_counter(&self, name: &str) -> Result<Option<u64>> {
        let text = self.run(|| fs::read_to_string(PATH))?.map_err(|error| {
            NetError::kernel(format!("read {name} of {PATH} in {}", self.name()), error)
        })?;
        Ok(find(&text, name))
    }
}

/// A line with names is followed by one with their values.
fn find(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names.split(' ').position(|one| one == name)?;
    values.split(' ').nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "TcpExt: SyncookiesSent TCPTimeouts TCPMemoryPressures\nTcpExt: 3 17 5\n\
                        IpExt: InNoRoutes TCPTimeouts\nIpExt: 8 9\n";

    #[test]
    fn a_counter_has_the_value_below_its_name() {
        assert_eq!(find(TEXT, "TCPTimeouts"), Some(17));
        assert_eq!(find(TEXT, "TCPMemoryPressures"), Some(5));
        assert_eq!(find(TEXT, "InNoRoutes"), None);
        assert_eq!(find("", "TCPTimeouts"), None);
    }
}
