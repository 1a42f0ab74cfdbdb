//! Paths: from lists of link names to lists of links that join.

use crate::document::{Item, Res};
use crate::error::{Diagnostic, suggest};
use crate::resolve::network::Network;

/// Largest number of links in a path.
const MAX_HOPS: usize = 60;

/// The links of a path, which join and visit no node twice. `copy` is the number of the flow's copy.
pub(super) fn resolve(network: &Network, item: &Item<'_>, copy: Option<u64>) -> Res<Vec<usize>> {
    let names = item.list()?;
    if names.is_empty() {
        return Err(item
            .error("a path without links")
            .hint("write [\"link\", \"link\"], from the sender to the receiver"));
    }
    if names.len() > MAX_HOPS {
        let message = format!("{} links in a path", names.len());
        return Err(item.error(message).hint(format!("at most {MAX_HOPS}")));
    }
    let mut path: Vec<usize> = Vec::with_capacity(names.len());
    for name in &names {
        let link = find(network, name, item, copy)?;
        if let Some(&before) = path.last() {
            check_joined(network, before, link, name, item)?;
        }
        let to = network.links[link].to;
        let visited = path.iter().map(|&l| network.links[l].from);
        if visited
            .chain([network.links[link].from])
            .any(|node| node == to)
        {
            let message = format!(
                "\"{}\" leads back to \"{}\"",
                network.links[link].name, network.nodes[to]
            );
            return Err(error_at(name, item, message).hint("a path goes through every node once"));
        }
        path.push(link);
    }
    Ok(path)
}

/// An error at the place of a link's name, with the key of the whole path.
fn error_at(name: &Item<'_>, path: &Item<'_>, message: String) -> Diagnostic {
    Diagnostic::new(name.value.origin, &path.path, message)
}

fn find(network: &Network, name: &Item<'_>, path: &Item<'_>, copy: Option<u64>) -> Res<usize> {
    let written = name.text()?;
    let full = match written.contains("{}") {
        true => numbered(network, written, copy)
            .map_err(|(why, hint)| error_at(name, path, why).hint(hint))?,
        false => written.to_string(),
    };
    if let Some(&link) = network.index.get(&full) {
        return Ok(link);
    }
    let message = format!("no link \"{full}\"");
    if let Some(forward) = full.strip_suffix('~') {
        if network.index.contains_key(forward) {
            return Err(error_at(name, path, message).hint(format!(
                "\"{forward}\" has no way back (reverse = false); remove that or take another link"
            )));
        }
    }
    if let Some(count) = network.copies.get(full.trim_end_matches('~')) {
        let hint = format!(
            "\"{full}\" has {count} copies: write \"{full}-1\", or \"{full}-{{}}\" in a flow with a count"
        );
        return Err(error_at(name, path, message).hint(hint));
    }
    let names = network.links.iter().map(|l| l.name.as_str());
    let forward: Vec<&str> = names
        .filter(|n| !n.ends_with('~') || written.ends_with('~'))
        .collect();
    Err(error_at(name, path, message).maybe_hint(suggest(&full, forward, "links")))
}

/// `X-{}` with the number of the flow's copy, modulo the number of copies of X.
fn numbered(
    network: &Network,
    written: &str,
    copy: Option<u64>,
) -> Result<String, (String, String)> {
    let (base, rest) = written.split_once("-{}").unwrap_or((written, ""));
    let Some(&links) = network
        .copies
        .get(base)
        .filter(|_| rest.is_empty() || rest == "~")
    else {
        let with_count: Vec<String> = network
            .copies
            .keys()
            .map(|n| format!("\"{n}-{{}}\""))
            .collect();
        let hint = match with_count.is_empty() {
            true => "no link has a count".to_string(),
            false => format!("links with a count: {}", with_count.join(", ")),
        };
        return Err((
            format!("\"{written}\" stands for no link with a count"),
            hint,
        ));
    };
    let Some(copy) = copy else {
        return Err((
            format!("\"{written}\" has a place for a number, but the flow has no count"),
            format!("add count = {links} to the flow, or write \"{base}-1\""),
        ));
    };
    Ok(format!("{base}-{}{rest}", (copy - 1) % links + 1))
}

fn check_joined(
    network: &Network,
    before: usize,
    link: usize,
    name: &Item<'_>,
    path: &Item<'_>,
) -> Res<()> {
    let (before, link) = (&network.links[before], &network.links[link]);
    if before.to == link.from {
        return Ok(());
    }
    let node = |index: usize| network.nodes[index].as_str();
    let message = format!(
        "\"{}\" begins at \"{}\", but \"{}\" before it ends at \"{}\"",
        link.name,
        node(link.from),
        before.name,
        node(before.to)
    );
    let onward: Vec<&str> = network
        .links
        .iter()
        .filter(|l| l.from == before.to && l.to != before.from)
        .map(|l| l.name.as_str())
        .take(10)
        .collect();
    let hint = match onward.is_empty() {
        true => format!("no other link begins at \"{}\"", node(before.to)),
        false => format!(
            "links that begin at \"{}\": {}",
            node(before.to),
            onward.join(", ")
        ),
    };
    Err(error_at(name, path, message).hint(hint))
}

/// First and last node of a path. A resolved path has at least one link.
pub(super) fn ends(network: &Network, path: &[usize]) -> (usize, usize) {
    let from = path.first().map_or(0, |&l| network.links[l].from);
    let to = path.last().map_or(0, |&l| network.links[l].to);
    (from, to)
}

/// The same links in the reverse direction.
pub(super) fn backwards(network: &Network, path: &[usize], item: &Item<'_>) -> Res<Vec<usize>> {
    let back = |&link: &usize| {
        network.opposite(link).ok_or_else(|| {
            let name = &network.links[link].name;
            item.error(format!("\"{name}\" has no way back for the ACKs (reverse = false)"))
                .hint("use subflows = [{ path = [...], reverse = [...] }] with another way back, or remove reverse = false")
        })
    };
    path.iter().rev().map(back).collect()
}
