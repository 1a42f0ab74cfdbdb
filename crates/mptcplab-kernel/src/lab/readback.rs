//! Which algorithm every subflow really runs, as the kernel lists its sockets. Short transfers may be over before anybody
//! looks: theirs are what the tracer saw.

use crate::traffic::Context;
use mptcplab_net::{Namespace, NetError};
use std::net::SocketAddr;

/// Names by flow and subflow; empty for a subflow that is not there.
pub(super) type Running = Vec<Vec<String>>;

/// Looks at the sockets of every namespace where connections begin.
pub(super) fn read(contexts: &[Context], namespaces: &[Namespace]) -> Result<Running, NetError> {
    let mut running: Running = contexts
        .iter()
        .map(|one| vec![String::new(); one.flow.subflows().len()])
        .collect();
    for (node, namespace) in namespaces.iter().enumerate() {
        let here = |context: &&Context| context.plan.from == node && context.has_one_connection();
        let begun: Vec<&Context> = contexts.iter().filter(here).collect();
        if begun.is_empty() {
            continue;
        }
        for socket in namespace.tcp_sockets()? {
            let (SocketAddr::V4(local), SocketAddr::V4(remote)) = (socket.local, socket.remote)
            else {
                continue;
            };
            for context in &begun {
                let first = context
                    .state
                    .connection
                    .sender
                    .get()
                    .and_then(|stream| stream.local_addr().ok());
                let found = context.plan.subflows.iter().position(|ends| {
                    ends.source == *local.ip() && ends.destination == *remote.ip()
                });
                // iperf3 has a connection of its own between the same addresses, and a socket that is not known yet
                // has its algorithm checked when it is.
                let is_other =
                    found == Some(0) && first.is_none_or(|mine| mine.port() != local.port());
                if let (Some(subflow), Some(name), false) = (found, &socket.congestion, is_other) {
                    running[context.index][subflow].clone_from(name);
                }
            }
        }
    }
    Ok(running)
}

/// Subflows that run another algorithm than they should.
pub(super) fn wrong(contexts: &[Context], running: &Running) -> Vec<String> {
    let mut found = Vec::new();
    for context in contexts {
        for (subflow, name) in context.flow.subflows().iter().zip(&running[context.index]) {
            if !name.is_empty() && *name != context.algorithm {
                found.push(format!(
                    "flow {}: subflow {} runs {name} instead of {}",
                    context.flow.name, subflow.name, context.algorithm
                ));
            }
        }
    }
    found
}
