//! Network devices of a namespace: list, statistics, up and down, MTU and queue, veth pairs.

use std::os::fd::{AsFd, AsRawFd};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};

use crate::{Namespace, NetError, Result};

/// A network device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its index in its namespace.
    pub ifindex: u32,
    /// Its name in its namespace.
    pub name: String,
    /// Whether it is set up.
    pub is_up: bool,
    /// The largest IP packet, in bytes.
    pub mtu_bytes: u32,
    /// The longest queue before the device, in packets.
    pub txqueuelen_pkts: u32,
}

/// A device's counters since it was created. For a TUN device "transmitted" means sent by the kernel to its descriptor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkStats {
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    /// Packets received with errors.
    pub rx_errors: u64,
    /// Packets that could not be transmitted.
    pub tx_errors: u64,
    /// Packets dropped on arrival.
    pub rx_dropped: u64,
    /// Packets dropped before transmission; for a TUN device because its queue was full.
    pub tx_dropped: u64,
}

impl Namespace {
    /// All devices, in the order of their indices.
    pub fn links(&self) -> Result<Vec<Link>> {
        let answers = self.route_request(
            "list devices",
            RouteNetlinkMessage::GetLink(LinkMessage::default()),
            NLM_F_DUMP,
        )?;
        let mut links: Vec<Link> = answers.iter().filter_map(message_of).map(link_of).collect();
        links.sort_by_key(|link| link.ifindex);
        Ok(links)
    }

    /// The index of a device.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] with ENODEV if there is none with that name.
    pub fn link_index(&self, name: &str) -> Result<u32> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.into()));
        Ok(self
            .get_link(&format!("find the device {name}"), message)?
            .header
            .index)
    }

    /// A device's counters.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] with ENODEV if there is no such device.
    pub fn link_stats(&self, ifindex: u32) -> Result<LinkStats> {
        let what = format!("read the counters of device {ifindex}");
        let link = self.get_link(&what, message(ifindex))?;
        link.attributes
            .iter()
            .find_map(|attribute| match attribute {
                LinkAttribute::Stats64(stats) => Some(LinkStats {
                    rx_packets: stats.rx_packets,
                    tx_packets: stats.tx_packets,
                    rx_bytes: stats.rx_bytes,
                    tx_bytes: stats.tx_bytes,
                    rx_errors: stats.rx_errors,
                    tx_errors: stats.tx_errors,
                    rx_dropped: stats.rx_dropped,
                    tx_dropped: stats.tx_dropped,
                }),
                _ => None,
            })
            .ok_or_else(|| NetError::malformed(what, "no counters"))
    }

    /// Sets a device up or down. Setting it down removes the routes over it.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] with ENODEV if there is no such device.
    pub fn set_link_up(&self, ifindex: u32, is_up: bool) -> Result<()> {
        let mut message = message(ifindex);
        message.header.flags = if is_up {
            LinkFlags::Up
        } else {
            LinkFlags::empty()
        };
        message.header.change_mask = LinkFlags::Up;
        let word = if is_up { "up" } else { "down" };
        self.route_request(
            &format!("set device {ifindex} {word}"),
            RouteNetlinkMessage::SetLink(message),
            0,
        )?;
        Ok(())
    }

    /// Sets the MTU (bytes, with the IP header) and the queue's length (packets).
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] with EINVAL for an MTU that the device cannot have.
    pub fn configure_link(&self, ifindex: u32, mtu_bytes: u32, txqueuelen_pkts: u32) -> Result<()> {
        let mut message = message(ifindex);
        message.attributes.push(LinkAttribute::Mtu(mtu_bytes));
        message
            .attributes
            .push(LinkAttribute::TxQueueLen(txqueuelen_pkts));
        let what = format!(
            "set device {ifindex} to an MTU of {mtu_bytes} B and a queue of {txqueuelen_pkts} packets"
        );
        self.route_request(&what, RouteNetlinkMessage::SetLink(message), 0)?;
        Ok(())
    }

    /// Limits how many segments TCP hands to the device at once; with 1 it neither groups segments nor waits for more.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] with EINVAL for a number that the device cannot have.
    pub fn set_gso_max_segs(&self, ifindex: u32, segments: u32) -> Result<()> {
        let mut message = message(ifindex);
        message.attributes.push(LinkAttribute::GsoMaxSegs(segments));
        let what = format!("let device {ifindex} take {segments} segments at once");
        self.route_request(&what, RouteNetlinkMessage::SetLink(message), 0)?;
        Ok(())
    }

    /// Removes a device, and with one end of a veth pair the other end.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] with ENODEV if there is no such device, EOPNOTSUPP for `lo` and TUN devices.
    pub fn delete_link(&self, ifindex: u32) -> Result<()> {
        self.route_request(
            &format!("remove device {ifindex}"),
            RouteNetlinkMessage::DelLink(message(ifindex)),
            0,
        )?;
        Ok(())
    }

    /// Makes a pair of veth devices, one end here and one in `peer`, and sets both up; returns both indices.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`], in particular EEXIST for a name that is taken.
    pub fn veth(
        &self,
        name: &str,
        peer: &Self,
        peer_name: &str,
        mtu_bytes: u32,
    ) -> Result<(u32, u32)> {
        let mut far = LinkMessage::default();
        far.attributes.push(LinkAttribute::IfName(peer_name.into()));
        far.attributes.push(LinkAttribute::Mtu(mtu_bytes));
        far.attributes
            .push(LinkAttribute::NetNsFd(peer.as_fd().as_raw_fd()));
        let mut near = LinkMessage::default();
        near.attributes.push(LinkAttribute::IfName(name.into()));
        near.attributes.push(LinkAttribute::Mtu(mtu_bytes));
        near.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(far))),
        ]));
        let what = format!("make the veth pair {name} and {peer_name}");
        self.route_request(
            &what,
            RouteNetlinkMessage::NewLink(near),
            NLM_F_CREATE | NLM_F_EXCL,
        )?;
        let indices = (self.link_index(name)?, peer.link_index(peer_name)?);
        self.set_link_up(indices.0, true)?;
        peer.set_link_up(indices.1, true)?;
        Ok(indices)
    }

    fn get_link(&self, what: &str, message: LinkMessage) -> Result<LinkMessage> {
        self.route_request(what, RouteNetlinkMessage::GetLink(message), 0)?
            .iter()
            .find_map(message_of)
            .cloned()
            .ok_or_else(|| NetError::malformed(what, "no device in it"))
    }
}

fn message(ifindex: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = ifindex;
    message
}

fn message_of(answer: &RouteNetlinkMessage) -> Option<&LinkMessage> {
    match answer {
        RouteNetlinkMessage::NewLink(link) => Some(link),
        _ => None,
    }
}

fn link_of(message: &LinkMessage) -> Link {
    let mut link = Link {
        ifindex: message.header.index,
        name: String::new(),
        is_up: message.header.flags.contains(LinkFlags::Up),
        mtu_bytes: 0,
        txqueuelen_pkts: 0,
    };
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => link.name.clone_from(name),
            LinkAttribute::Mtu(bytes) => link.mtu_bytes = *bytes,
            LinkAttribute::TxQueueLen(packets) => link.txqueuelen_pkts = *packets,
            _ => {}
        }
    }
    link
}
