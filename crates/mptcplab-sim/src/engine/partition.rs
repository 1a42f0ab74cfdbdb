//! Partition of a run into parts that share no link. They are independent and are simulated one after the other, so that
//! the state of each fits the cache.

use mptcplab_scenario::{Run, Transport};

/// Links and flows that belong together, as indices of the run, in its order.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub(crate) links: Vec<usize>,
    pub(crate) flows: Vec<usize>,
}

/// Links that a flow uses, in either direction.
fn links_of(run: &Run, flow: usize) -> Vec<usize> {
    match &run.flows[flow].transport {
        Transport::Udp(u) => u.path.clone(),
        Transport::Tcp(_) | Transport::Sctp(_) => run.flows[flow]
            .subflows()
            .iter()
            .flat_map(|s| s.path.iter().chain(&s.reverse))
            .copied()
            .collect(),
    }
}

/// Split a run. Links that no flow uses come last, in a part without flows.
pub(crate) fn parts(run: &Run) -> Vec<Part> {
    let mut root: Vec<usize> = (0..run.links.len()).collect();
    let mut used = vec![false; run.links.len()];
    for flow in 0..run.flows.len() {
        let links = links_of(run, flow);
        for &link in &links {
            used[link] = true;
            let (a, b) = (find(&mut root, links[0]), find(&mut root, link));
            root[a.max(b)] = a.min(b);
        }
    }
    let mut parts: Vec<Part> = Vec::new();
    let mut part_of = vec![usize::MAX; run.links.len()];
    for link in (0..run.links.len()).filter(|l| used[*l]) {
        let top = find(&mut root, link);
        if part_of[top] == usize::MAX {
            part_of[top] = parts.len();
            parts.push(Part::default());
        }
        parts[part_of[top]].links.push(link);
    }
    for flow in 0..run.flows.len() {
        if let Some(&link) = links_of(run, flow).first() {
            parts[part_of[find(&mut root, link)]].flows.push(flow);
        }
    }
    let unused: Vec<usize> = (0..run.links.len()).filter(|l| !used[*l]).collect();
    if !unused.is_empty() {
        parts.push(Part {
            links: unused,
            flows: Vec::new(),
        });
    }
    parts
}

fn find(root: &mut [usize], mut link: usize) -> usize {
    while root[link] != link {
        root[link] = root[root[link]];
        link = root[link];
    }
    link
}
