//! TUN devices: packets that the kernel sends are read from their descriptor, and packets written to it are received by the
//! kernel.
//!
//! The devices do not use IFF_VNET_HDR, so each read and write is one packet of at most the MTU with complete checksums,
//! never a large one that offloads would split later. Source: the kernel's Documentation/networking/tuntap.rst.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::{Namespace, NetError, Result};

const DEVICE: &str = "/dev/net/tun";

mod ioctl {
    nix::ioctl_write_ptr_bad!(
        tunsetiff,
        nix::request_code_write!(b'T', 202, size_of::<libc::c_int>()),
        libc::ifreq
    );
}

/// A TUN device that is up. It is removed when the descriptor is closed.
#[derive(Debug)]
pub struct Tun {
    /// Non-blocking; each read or write is one IP packet.
    pub fd: OwnedFd,
    /// The device's index in its namespace.
    pub ifindex: u32,
    /// The device's name in its namespace.
    pub name: String,
}

impl Namespace {
    /// Creates a TUN device in this namespace and sets it up.
    ///
    /// `mtu_bytes` includes the IP header. If more than `txqueuelen_pkts` packets wait to be read, the kernel drops the newest
    /// and counts them only in `tx_dropped` of [`Namespace::link_stats`]. Emulated links should use 5000.
    ///
    /// # Errors
    ///
    /// [`NetError::Kernel`] when /dev/net/tun is missing or forbidden, or the name is taken; [`NetError::Invalid`] for
    /// an invalid device name.
    pub fn tun(&self, name: &str, mtu_bytes: u32, txqueuelen_pkts: u32) -> Result<Tun> {
        let request = request(name)?;
        let what = format!("make the TUN device {name} in {}", self.name());
        // The descriptor belongs to the namespace in which it is opened.
        let file = self.run(open)??;
        // SAFETY: `request` is a complete ifreq, which the kernel reads and writes during the call only.
        unsafe { ioctl::tunsetiff(file.as_raw_fd(), &raw const request) }.map_err(|errno| {
            NetError::kernel(what, errno)
                .with_hint("this needs CAP_NET_ADMIN in the namespace: run as root")
        })?;
        let ifindex = self.link_index(name)?;
        self.configure_link(ifindex, mtu_bytes, txqueuelen_pkts)?;
        self.set_link_up(ifindex, true)?;
        Ok(Tun {
            fd: file.into(),
            ifindex,
            name: name.into(),
        })
    }
}

fn open() -> Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEVICE).map_err(|error| {
        NetError::kernel(format!("open {DEVICE}"), error)
            .with_hint("load the module tun (modprobe tun); unprivileged users need the device's mode to be 0666")
    })
}

fn request(name: &str) -> Result<libc::ifreq> {
    let is_name = !name.is_empty()
        && name.len() < libc::IFNAMSIZ
        && name
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'/' | b':' | b'%'));
    if !is_name {
        return Err(NetError::invalid(
            "name of a device",
            name,
            "1 to 15 printable characters without / : %",
        ));
    }
    let mut ifr_name = [0; libc::IFNAMSIZ];
    for (to, from) in ifr_name.iter_mut().zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    let flags = libc::IFF_TUN | libc::IFF_NO_PI;
    let ifru_flags = libc::c_short::try_from(flags)
        .unwrap_or_else(|_| unreachable!("IFF_TUN | IFF_NO_PI is 0x1001"));
    Ok(libc::ifreq {
        ifr_name,
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags },
    })
}
