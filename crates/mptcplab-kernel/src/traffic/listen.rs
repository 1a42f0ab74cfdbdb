//! Opens the ports where flows end, before the run begins.

use super::iperf::Iperf3;
use super::stream::socket_transport;
use crate::plan::FlowPlan;
use mptcplab_net::socket::{self, Options};
use mptcplab_net::{Namespace, NetError};
use mptcplab_scenario::{Flow, TcpFlow, Traffic, Transport};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};

/// The socket on which a flow's receiver waits.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Udp(UdpSocket),
    /// iperf3 opens its socket itself.
    Iperf(Iperf3),
}

/// Opens a flow's port in the namespace where it ends.
pub(crate) fn listen(
    flow: &Flow,
    plan: &FlowPlan,
    to: &Namespace,
    iperf: Option<&Iperf3>,
) -> Result<Listener, NetError> {
    let is_bulk = matches!(
        &flow.transport,
        Transport::Tcp(TcpFlow {
            traffic: Traffic::Bulk,
            ..
        })
    );
    if let Some(iperf3) = iperf.filter(|_| is_bulk) {
        return Ok(Listener::Iperf(iperf3.clone()));
    }
    match &flow.transport {
        Transport::Tcp(tcp) => {
            // Any address: further subflows are opened to other addresses than the first.
            let address = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, plan.port);
            // What goes from the flow's receiver to its sender is small: Reno, as in the simulator.
            let answers = matches!(tcp.traffic, Traffic::Requests(_));
            let options = Options {
                congestion: answers.then(|| "reno".to_owned()),
                reset_on_close: true,
                ..Options::default()
            };
            let listener =
                to.run(|| socket::listen(socket_transport(tcp), address, &options))??;
            nonblocking(listener.set_nonblocking(true), plan.port)?;
            Ok(Listener::Tcp(listener))
        }
        Transport::Sctp(_) => unreachable!("refused by unsupported.rs"),
        Transport::Udp(_) => {
            let address = SocketAddrV4::new(plan.subflows[0].destination, plan.port);
            let bound = to.run(|| UdpSocket::bind(address))?;
            let socket =
                bound.map_err(|source| refused(source, format!("listen on {address} (UDP)")))?;
            Ok(Listener::Udp(socket))
        }
    }
}

fn nonblocking(result: io::Result<()>, port: u16) -> Result<(), NetError> {
    result.map_err(|source| {
        refused(
            source,
            format!("make the socket of port {port} non-blocking"),
        )
    })
}

fn refused(source: io::Error, what: String) -> NetError {
    NetError::Kernel {
        what,
        source,
        message: None,
        hint: None,
    }
}
