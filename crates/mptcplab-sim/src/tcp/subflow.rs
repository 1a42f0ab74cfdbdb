//! Both ends of one TCP, or of one subflow of an MPTCP connection.

use super::receiver::Receiver;
use super::sender::Sender;

// At the beginning of a cache line, so that the parts of the sender lie in as few lines as they fill.
#[repr(C, align(64))]
pub(crate) struct Subflow {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
}
