//! Builds the planned network in the kernel: namespaces, devices, addresses, routes, sysctls. All of it disappears with this
//! process.

use crate::failure::Failure;
use crate::plan::{DEVICE_MTU, Metrics, NodePlan, Plan};
use mptcplab_emulator::{Clock, Emulator, LinkSetup, Options, Pair, Port, Setup};
use mptcplab_model::link::rng::Rng;
use mptcplab_net::mptcp::{Events, PathManager};
use mptcplab_net::route::{Metrics as KernelMetrics, Route};
use mptcplab_net::{LOOPBACK_IFINDEX, Namespace, NetError};
use mptcplab_scenario::Run;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

/// Queue length of the TUN devices: longer than any burst, so that only the emulated links drop packets.
const QUEUE_PKTS: u32 = 5_000;

/// Sysctls of every namespace. Connections do not start from values that earlier ones left, only links drop packets, and
/// only the emulator forwards them.
const SETTINGS: [(&str, &str); 6] = [
    ("net.ipv4.ip_forward", "0"),
    ("net.ipv4.conf.all.rp_filter", "0"),
    ("net.ipv4.conf.default.rp_filter", "0"),
    ("net.ipv4.tcp_no_metrics_save", "1"),
    ("net.ipv4.tcp_ecn", "2"),
    // Linux's own minimum and initial size; the maximum is large enough never to limit the window.
    ("net.ipv4.tcp_wmem", "4096 16384 268435456"),
];

/// Sysctls that influence results and are recorded in the trace.
const RECORDED: [&str; 11] = [
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_early_retrans",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_syn_retries",
    "net.ipv4.tcp_syn_linear_timeouts",
    "net.mptcp.scheduler",
    "net.mptcp.stale_loss_cnt",
];

/// Everything that a run has in the kernel except its sockets.
#[derive(Debug)]
pub(super) struct Network {
    /// The namespaces, by node.
    pub(super) namespaces: Vec<Namespace>,
    /// The TUN devices' descriptors by port of the plan. The emulator has copies, so that its end removes no device.
    ports: Vec<OwnedFd>,
    /// The TUN devices by port of the plan: (node, ifindex).
    devices: Vec<(usize, u32)>,
    /// A namespace with the user-space path manager accepts subflows only while a process listens to its events.
    _events: Vec<Events>,
}

impl Network {
    /// Builds the network.
    pub(super) fn new(plan: &Plan) -> Result<Self, NetError> {
        let namespaces: Vec<Namespace> = plan
            .nodes
            .iter()
            .map(|node| Namespace::new(&node.name))
            .collect::<Result<_, _>>()?;
        let mut network = Self {
            namespaces,
            ports: Vec::new(),
            devices: Vec::new(),
            _events: Vec::new(),
        };
        for (node, namespace) in plan.nodes.iter().zip(network.namespaces.clone()) {
            network.configure(node, &namespace)?;
        }
        for port in &plan.ports {
            let tun = network.namespaces[port.node].tun(&port.name, DEVICE_MTU, QUEUE_PKTS)?;
            network.devices.push((port.node, tun.ifindex));
            network.ports.push(tun.fd);
        }
        for way in &plan.ways {
            if let Some(port) = plan.entries[way.links[0]] {
                let (_, ifindex) = network.devices[port];
                let mut route = Route::host(way.destination, ifindex);
                route.metrics = metrics(&way.metrics);
                network.namespaces[way.node].add_route(&route)?;
            }
        }
        Ok(network)
    }

    fn configure(&mut self, node: &NodePlan, namespace: &Namespace) -> Result<(), NetError> {
        for (key, value) in SETTINGS {
            namespace.sysctl(key, value)?;
        }
        use_reno_by_default(namespace)?;
        if let Some(buffer) = node.receive_buffer {
            let least = buffer.default.min(4096);
            namespace.sysctl(
                "net.ipv4.tcp_rmem",
                format!("{least} {} {}", buffer.default, buffer.max),
            )?;
        }
        if let Some(shrinks) = node.slow_start_after_idle {
            namespace.sysctl("net.ipv4.tcp_slow_start_after_idle", u8::from(shrinks))?;
        }
        if let Some(timeouts) = node.stale_after {
            namespace.sysctl("net.mptcp.stale_loss_cnt", timeouts)?;
        }
        for &address in &node.addresses {
            namespace.add_address(LOOPBACK_IFINDEX, address, 32)?;
        }
        if node.opens_mptcp || node.accepts_mptcp {
            // The engine opens subflows itself, each on its path, and the kernel's own path manager accepts them on at most
            // eight addresses of a namespace.
            namespace.sysctl("net.mptcp.pm_type", 1)?;
            disable_mptcp_fallback(namespace)?;
        }
        if node.accepts_mptcp {
            self._events.push(PathManager::new(namespace)?.events()?);
        }
        Ok(())
    }

    /// Starts the links.
    pub(super) fn emulate(
        &self,
        run: &Run,
        plan: &Plan,
        (clock, spins): (Clock, bool),
    ) -> Result<Emulator, Failure> {
        let ports = plan.ports.iter().zip(&self.ports).map(|(port, fd)| {
            let name = format!("{} in {}", port.name, plan.nodes[port.node].name);
            let fd = fd
                .try_clone()
                .map_err(|error| Failure::new(format!("lab: {name}: {error}")))?;
            Ok(Port { name, fd })
        });
        let links = run.links.iter().enumerate().map(|(index, link)| LinkSetup {
            name: link.name.clone(),
            from: plan.entries[index],
            to: plan.exits[index],
            config: link.config.clone(),
            rng: Rng::new(run.seed, run.rep, "link", &link.name),
        });
        let pairs = plan.ways.iter().map(|way| Pair {
            source: IpAddr::V4(way.source),
            destination: IpAddr::V4(way.destination),
            links: way.links.clone(),
        });
        let emulator = mptcplab_emulator::start(Setup {
            clock,
            ports: ports.collect::<Result<_, Failure>>()?,
            links: links.collect(),
            pairs: pairs.collect(),
            options: Options {
                priority: u8::try_from(crate::priority::REAL_TIME).ok(),
                spin_ns: if spins { Options::default().spin_ns } else { 0 },
                ..Options::default()
            },
        });
        Ok(emulator?)
    }

    /// Describes what made the run another one than that of its scenario.
    pub(super) fn distortions(&self, plan: &Plan) -> Vec<String> {
        let drops = self.device_drops(plan);
        let shortage = self
            .memory_shortage()
            .map(|found| found.into_iter().collect());
        [drops, shortage]
            .into_iter()
            .flat_map(|found| found.unwrap_or_else(|error| vec![error.to_string()]))
            .collect()
    }

    /// Packets that a device dropped because the emulator did not read them in time, which is no emulated loss.
    fn device_drops(&self, plan: &Plan) -> Result<Vec<String>, NetError> {
        let mut found = Vec::new();
        for (port, &(node, ifindex)) in plan.ports.iter().zip(&self.devices) {
            let stats = self.namespaces[node].link_stats(ifindex)?;
            let lost = stats.tx_dropped + stats.tx_errors;
            if lost > 0 {
                let node = &plan.nodes[node].name;
                found.push(format!(
                    "device {} in {node}: {lost} packets never reached their link",
                    port.name
                ));
            }
        }
        Ok(found)
    }

    /// Whether TCP had to save memory: windows are then no longer what their buffers allow.
    fn memory_shortage(&self) -> Result<Option<String>, NetError> {
        let mut count = 0;
        for namespace in &self.namespaces {
            count += namespace.tcp_counter("TCPMemoryPressures")?.unwrap_or(0);
        }
        Ok((count > 0).then(|| {
            format!(
                "TCP ran short of memory {count} times (its bound is the sysctl net.ipv4.tcp_mem), so windows could not open"
            )
        }))
    }

    /// The recorded sysctls of the namespaces where the first flow begins and ends.
    pub(super) fn settings(&self, plan: &Plan) -> Vec<(String, String)> {
        let Some(flow) = plan.flows.first() else {
            return Vec::new();
        };
        let read = |&key: &&str| {
            let node = if key == "net.ipv4.tcp_rmem" {
                flow.to
            } else {
                flow.from
            };
            // Older kernels do not have all of them.
            Some((key.to_owned(), self.namespaces[node].read_sysctl(key).ok()?))
        };
        RECORDED.iter().filter_map(read).collect()
    }
}

/// Makes sockets without an algorithm of their own run Reno instead of the host's default: a socket that has run BBR stays
/// paced. Reno is never refused, so that the kernel's leak of refused defaults cannot happen.
fn use_reno_by_default(namespace: &Namespace) -> Result<(), NetError> {
    let path = "/proc/sys/net/ipv4/tcp_congestion_control";
    let written = namespace.run(|| std::fs::write(path, "reno"))?;
    written.map_err(|source| NetError::Kernel {
        what: format!("write reno to {path} in {}", namespace.name()),
        source,
        message: None,
        hint: None,
    })
}

fn metrics(planned: &Metrics) -> KernelMetrics {
    KernelMetrics {
        mtu_bytes: planned.mtu,
        mtu_is_locked: planned.mtu.is_some(),
        initcwnd_pkts: planned.initial_cwnd,
        quickack: planned.quick_ack,
        ecn: planned.ecn,
        ..KernelMetrics::default()
    }
}

/// A lost SYN means congestion here, not a middlebox: newer kernels would stop using MPTCP for an hour after two of them.
fn disable_mptcp_fallback(namespace: &Namespace) -> Result<(), NetError> {
    for (key, value) in [
        ("net.mptcp.syn_retrans_before_tcp_fallback", 100),
        ("net.mptcp.blackhole_timeout", 0),
    ] {
        if namespace.read_sysctl(key).is_ok() {
            namespace.sysctl(key, value)?;
        }
    }
    Ok(())
}
