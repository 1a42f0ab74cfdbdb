//! Reads from the kernel's list of sockets which algorithm every subflow really runs. Short transfers may end before they
//! are listed; the tracer's records are used for them.

use crate::traffic::Context;
use mptcplab_net::{Namespace, NetError};
use std::net::SocketAddr;

/// Kernel-visible names by flow and subflow; empty for a subflow without a socket.
pub(super) type RunningAlgorithms = Vec<Vec<String>>;

/// Lists the sockets of every namespace where connections begin.
pub(super) fn read(
    contexts: &[Context],
    namespaces: &[Namespace],
) -> Result<RunningAlgorithms, NetError> {
    let mut running: RunningAlgorithms = contexts
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
                // iperf3 has another connection between the same addresses. A socket that is not known yet is checked
                // once it is.
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

/// Describes the subflows that run another algorithm than the scenario's.
pub(super) fn mismatches(contexts: &[Context], running: &RunningAlgorithms) -> Vec<String> {
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
