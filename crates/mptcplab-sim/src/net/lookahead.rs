//! Which links need no events: those whose packets all go on to links that get packets from nowhere else. When a packet
//! enters such a link, its arrival at the next one is known, and so on to the end of the chain. A sender that holds packets
//! back for a random time begins such a chain where it is the only one on its first link.

/// Where a link's packets come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Nowhere,
    /// The host at the beginning of this path, and of no other.
    Host(usize),
    Link(u32),
    /// Several hosts or links.
    Others,
}

/// What lookahead does for a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// Packets are known before they arrive: all come from one link that forwards, or from one sender.
    pub(super) follows: bool,
    /// All packets go on to links that follow this one.
    pub(super) forwards: bool,
}

/// The parts of all links, given which of them [can look ahead](mptcplab_model::link::Link::can_look_ahead) and all paths as
/// indices of links. `knows`: whether the sender at the beginning of a path knows
/// before when a packet enters it.
pub(super) fn parts(
    can_look_ahead: &[bool],
    paths: &[&[u32]],
    knows: impl Fn(usize) -> bool,
) -> Vec<Part> {
    let sources = sources(can_look_ahead.len(), paths);
    let can = |link: u32| can_look_ahead[link as usize];
    let mut forwards: Vec<bool> = can_look_ahead.to_vec();
    for path in paths {
        for pair in path.windows(2) {
            let follows = sources[pair[1] as usize] == Source::Link(pair[0]) && can(pair[1]);
            forwards[pair[0] as usize] &= follows;
        }
        if let Some(&last) = path.last() {
            forwards[last as usize] = false;
        }
    }
    let part = |link: usize| Part {
        follows: match sources[link] {
            Source::Link(from) => forwards[from as usize],
            Source::Host(path) => knows(path) && can_look_ahead[link],
            Source::Nowhere | Source::Others => false,
        },
        // A link without packets has no events either way.
        forwards: forwards[link] && sources[link] != Source::Nowhere,
    };
    (0..can_look_ahead.len()).map(part).collect()
}

fn sources(links: usize, paths: &[&[u32]]) -> Vec<Source> {
    let mut sources = vec![Source::Nowhere; links];
    let mut add = |link: u32, source: Source| {
        let known = &mut sources[link as usize];
        *known = if *known == Source::Nowhere || *known == source {
            source
        } else {
            Source::Others
        };
    };
    for (index, path) in paths.iter().enumerate() {
        if let Some(&first) = path.first() {
            add(first, Source::Host(index));
        }
        for pair in path.windows(2) {
            add(pair[1], Source::Link(pair[0]));
        }
    }
    sources
}
