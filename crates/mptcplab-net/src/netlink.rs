//! Netlink requests and their answers, and the encoding of attributes.
//!
//! Messages of the route family have types from `netlink-packet-route`; those of MPTCP's path manager and of socket diagnosis
//! are [`Raw`], because no crate supports them. Source: netlink(7), the kernel's Documentation/userspace-api/netlink/intro.rst.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Debug;
use std::io;

use netlink_packet_core::{
    DefaultNla, Emitable, ErrorMessage, NLM_F_ACK, NLM_F_ACK_TLVS, NLM_F_CAPPED, NLM_F_DUMP,
    NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader, NetlinkMessage,
    NetlinkPayload, NetlinkSerializable, NlasIterator,
};
use netlink_sys::{Socket, SocketAddr};

use crate::{NetError, Result};

/// More than the largest answer: the kernel fills dumps up to 32 kB.
const BUFFER_BYTES: usize = 1 << 16;
/// How often a dump is attempted if the table changes while the kernel lists it.
const DUMP_TRIES: u32 = 10;
const NLMSG_HEADER_BYTES: usize = 16;
const NLMSGERR_ATTR_MSG: u16 = 1;
pub(crate) const NLA_F_NESTED: u16 = 0x8000;

/// A netlink socket, bound to the network namespace of the thread that opened it.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
}

/// A message of a family that no crate supports: its type, and the bytes after the netlink header.
#[derive(Debug, Clone)]
pub(crate) struct Raw {
    pub(crate) kind: u16,
    pub(crate) bytes: Vec<u8>,
}

impl Netlink {
    /// Opens a socket of `protocol` in the calling thread's network namespace.
    pub(crate) fn open(protocol: isize, name: &str) -> Result<Self> {
        let open = || -> io::Result<Socket> {
            let mut socket = Socket::new(protocol)?;
            socket.bind_auto()?;
            socket.set_ext_ack(true)?;
            socket.set_cap_ack(true)?;
            Ok(socket)
        };
        let socket = open().map_err(|error| {
            NetError::kernel(format!("open a netlink socket for {name}"), error)
        })?;
        Ok(Self {
            socket,
            sequence: 0,
            buffer: Vec::with_capacity(BUFFER_BYTES),
        })
    }

    /// Sends one request and returns the answers that the kernel gives before its acknowledgement.
    pub(crate) fn request<T>(&mut self, what: &str, message: T, flags: u16) -> Result<Vec<T>>
    where
        T: NetlinkSerializable + NetlinkDeserializable + Clone + Debug,
    {
        let is_dump = flags & NLM_F_DUMP == NLM_F_DUMP;
        for _ in 0..DUMP_TRIES {
            let acknowledge = if is_dump { 0 } else { NLM_F_ACK };
            self.send(what, message.clone(), flags | NLM_F_REQUEST | acknowledge)?;
            let (answers, is_torn) = self.answers(what)?;
            if !is_torn {
                return Ok(answers);
            }
        }
        Err(NetError::malformed(
            what,
            format_args!("the table changed during each of {DUMP_TRIES} attempts to list it"),
        ))
    }

    fn send<T: NetlinkSerializable>(&mut self, what: &str, message: T, flags: u16) -> Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket
            .send_to(&bytes, &SocketAddr::new(0, 0), 0)
            .map_err(|error| NetError::kernel(what, error))?;
        Ok(())
    }

    /// All answers to the last request, and whether the kernel says that they are inconsistent.
    fn answers<T: NetlinkDeserializable>(&mut self, what: &str) -> Result<(Vec<T>, bool)> {
        let (mut answers, mut is_torn) = (Vec::new(), false);
        loop {
            for message in self.receive::<T>(what, 0)? {
                if message.header.sequence_number != self.sequence {
                    continue;
                }
                is_torn |= message.header.flags & NLM_F_DUMP_INTR != 0;
                match message.payload {
                    NetlinkPayload::InnerMessage(answer) => answers.push(answer),
                    NetlinkPayload::Error(error) if error.code.is_none() => {
                        return Ok((answers, is_torn));
                    }
                    NetlinkPayload::Error(error) => {
                        return Err(refusal(what, &message.header, &error));
                    }
                    NetlinkPayload::Done(done) if done.code == 0 => return Ok((answers, is_torn)),
                    NetlinkPayload::Done(done) => {
                        return Err(NetError::kernel(
                            what,
                            io::Error::from_raw_os_error(-done.code),
                        ));
                    }
                    NetlinkPayload::Overrun(_) => {
                        return Err(NetError::malformed(what, "messages were lost"));
                    }
                    _ => {}
                }
            }
        }
    }

    /// The messages of one datagram.
    pub(crate) fn receive<T: NetlinkDeserializable>(
        &mut self,
        what: &str,
        flags: libc::c_int,
    ) -> Result<Vec<NetlinkMessage<T>>> {
        self.buffer.clear();
        let length = loop {
            match self.socket.recv(&mut self.buffer, flags | libc::MSG_TRUNC) {
                Ok(length) => break length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(NetError::kernel(what, error)),
            }
        };
        if length > self.buffer.len() {
            return Err(NetError::malformed(
                what,
                format_args!("{length} bytes do not fit the buffer"),
            ));
        }
        let mut messages = Vec::new();
        let mut rest = &self.buffer[..];
        while rest.len() >= NLMSG_HEADER_BYTES {
            let message = NetlinkMessage::<T>::deserialize(rest)
                .map_err(|error| NetError::malformed(what, error))?;
            let step = (message.header.length as usize)
                .next_multiple_of(4)
                .max(NLMSG_HEADER_BYTES);
            messages.push(message);
            rest = rest.get(step..).unwrap_or_default();
        }
        Ok(messages)
    }

    /// Subscribes to a multicast group.
    pub(crate) fn join(&mut self, what: &str, group: u32) -> Result<()> {
        self.socket
            .add_membership(group)
            .map_err(|error| NetError::kernel(what, error))
    }

    pub(crate) fn as_raw(&self) -> &Socket {
        &self.socket
    }
}

/// The error of a refused request, with the kernel's explanation (NLMSGERR_ATTR_MSG) if it gave one.
fn refusal(what: &str, header: &NetlinkHeader, error: &ErrorMessage) -> NetError {
    NetError::Kernel {
        what: what.into(),
        source: error.to_io(),
        message: explanation(header.flags, &error.header),
        hint: None,
    }
}

/// Finds the explanation after the echoed request, of which a capped message contains only the header.
fn explanation(flags: u16, echo: &[u8]) -> Option<String> {
    if flags & NLM_F_ACK_TLVS == 0 {
        return None;
    }
    let echoed = match flags & NLM_F_CAPPED {
        0 => u32_at(echo, 0)? as usize,
        _ => NLMSG_HEADER_BYTES,
    };
    let attributes = attributes(
        "extended acknowledgement",
        echo.get(echoed.next_multiple_of(4)..)?,
    )
    .ok()?;
    Some(text(attributes.get(&NLMSGERR_ATTR_MSG)?))
}

impl NetlinkSerializable for Raw {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        self.bytes.len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.bytes);
    }
}

impl NetlinkDeserializable for Raw {
    type Error = Infallible;

    fn deserialize(
        header: &NetlinkHeader,
        payload: &[u8],
    ) -> std::result::Result<Self, Infallible> {
        Ok(Self {
            kind: header.message_type,
            bytes: payload.to_vec(),
        })
    }
}

/// The bytes of a list of attributes.
pub(crate) fn emit(attributes: &[DefaultNla]) -> Vec<u8> {
    let mut bytes = vec![0; attributes.buffer_len()];
    attributes.emit(&mut bytes);
    bytes
}

/// An attribute that holds attributes.
pub(crate) fn nested(kind: u16, attributes: &[DefaultNla]) -> DefaultNla {
    DefaultNla::new(kind | NLA_F_NESTED, emit(attributes))
}

/// A list of attributes by kind; of a kind that occurs twice, the last one.
pub(crate) fn attributes<'a>(what: &str, bytes: &'a [u8]) -> Result<BTreeMap<u16, &'a [u8]>> {
    NlasIterator::new(bytes)
        .map(|attribute| {
            let attribute = attribute.map_err(|error| NetError::malformed(what, error))?;
            let (kind, length) = (attribute.kind(), usize::from(attribute.length()));
            Ok((kind, &attribute.into_inner()[4..length]))
        })
        .collect()
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// A C string, without what follows its end.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message_attribute() -> Vec<u8> {
        emit(&[
            DefaultNla::new(2, vec![1, 0, 0, 0]),
            DefaultNla::new(NLMSGERR_ATTR_MSG, b"no such thing\0".to_vec()),
        ])
    }

    #[test]
    fn the_kernels_explanation_is_found_behind_a_capped_echo() {
        let echo = [vec![9; NLMSG_HEADER_BYTES], message_attribute()].concat();
        let found = explanation(NLM_F_ACK_TLVS | NLM_F_CAPPED, &echo);
        assert_eq!(found.as_deref(), Some("no such thing"));
    }

    #[test]
    fn the_kernels_explanation_is_found_behind_a_whole_echo() {
        // The echoed request of 22 bytes is padded to 24.
        let request = [22_u32.to_ne_bytes().to_vec(), vec![9; 20]].concat();
        let found = explanation(NLM_F_ACK_TLVS, &[request, message_attribute()].concat());
        assert_eq!(found.as_deref(), Some("no such thing"));
    }

    #[test]
    fn an_error_without_an_explanation_has_none() {
        let echo = [vec![9; NLMSG_HEADER_BYTES], message_attribute()].concat();
        assert_eq!(explanation(NLM_F_CAPPED, &echo), None);
        assert_eq!(
            explanation(NLM_F_ACK_TLVS | NLM_F_CAPPED, &echo[..NLMSG_HEADER_BYTES]),
            None
        );
        assert_eq!(explanation(NLM_F_ACK_TLVS | NLM_F_CAPPED, &[]), None);
    }

    #[test]
    fn nested_attributes_come_back_as_they_went() {
        let inner = nested(
            5,
            &[DefaultNla::new(1, vec![7]), DefaultNla::new(2, vec![8, 9])],
        );
        let bytes = emit(&[inner, DefaultNla::new(3, vec![1, 2, 3, 4, 5])]);
        let outer = attributes("test", &bytes).unwrap();
        assert_eq!(outer[&3], [1, 2, 3, 4, 5]);
        let inner = attributes("test", outer[&5]).unwrap();
        assert_eq!((inner[&1], inner[&2]), (&[7][..], &[8, 9][..]));
        assert!(
            attributes("test", &bytes[..6]).is_err(),
            "a cut attribute is an error"
        );
    }
}
