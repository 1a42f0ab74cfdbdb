//! Both ends of one TCP, or of one subflow of an MPTCP connection.

use super::receiver::Receiver;
use super::sender::Sender;

pub(crate) struct Subflow {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
}
