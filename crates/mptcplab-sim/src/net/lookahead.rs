//! How packets come to links, so that few links need events.
//!
//! When a packet enters a link that decides on arrival, its arrival at the next one is known. If all packets of that one come
//! from the first, it can be asked at once, and so on to the end of such a chain. A sender that holds packets back for a random
//! time begins a chain where it is the only one on its first link.
//!
//! Where the packets of several links or such senders meet, they have to be put in order first. That can wait until the first
//! one might reach a host, and then many are there (`merge.rs`).

/// Shortest time from a packet's arrival at a link to a host for which it pays to wait.
const SHORTEST_WAIT_NS: u64 = 100_000;

/// What decides on a link's part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ability {
    /// It [can look ahead](mptcplab_model::link::Link::can_look_ahead).
    pub(super) can_look_ahead: bool,
    /// The shortest time that a packet takes on it, and its delay alone, after which a packet that arrived may have left its
    /// queue.
    pub(super) transit_ns: u64,
    pub(super) delay_ns: u64,
}

/// How packets come to a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// When they arrive.
    OnArrival,
    /// Before they arrive: all come from one link that forwards, or from one sender.
    Ahead,
    /// After they arrived, put in order.
    Merged,
}

/// How packets come to all links.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) inputs: Vec<Input>,
    /// The links with merged input, each behind those from which its packets come.
    pub(super) merging: Vec<usize>,
    /// Except that links may form a circle: within this time no packet goes from one of them to the next.
    pub(super) window_ns: u64,
}

/// Senders at the beginning of paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Senders {
    None,
    /// One that knows before when a packet enters the path.
    One,
    /// Several of this kind.
    Several,
    /// At least one of the other kind.
    Other,
}

impl Senders {
    fn with(self, knows: bool) -> Self {
        match self {
            _ if !knows => Self::Other,
            Self::None => Self::One,
            Self::One | Self::Several => Self::Several,
            Self::Other => Self::Other,
        }
    }
}

#[derive(Debug, Clone)]
struct Link {
    ability: Ability,
    senders: Senders,
    /// Links from which packets come, and to which they go, in rising order.
    before: Vec<u32>,
    after: Vec<u32>,
    may_merge: bool,
}

/// Plan for links with these abilities and all paths as indices of links. `knows`: whether the sender at the beginning of a path
/// knows before when a packet enters it.
pub(super) fn plan(abilities: &[Ability], paths: &[&[u32]], knows: impl Fn(usize) -> bool) -> Plan {
    let mut links = links(abilities, paths, knows);
    loop {
        let inputs: Vec<Input> = links.iter().map(|link| input(link, &links)).collect();
        let order = Order::new(&inputs, &links);
        let transits = order.circles.iter().map(|&l| abilities[l].transit_ns);
        let window_ns = transits.min().unwrap_or(u64::MAX);
        if window_ns >= SHORTEST_WAIT_NS {
            let merges = |l: &usize| inputs[*l] == Input::Merged;
            let merging = order.all().filter(merges).collect();
            return Plan {
                inputs,
                merging,
                window_ns,
            };
        }
        for &l in &order.circles {
            links[l].may_merge = false;
        }
    }
}

fn links(abilities: &[Ability], paths: &[&[u32]], knows: impl Fn(usize) -> bool) -> Vec<Link> {
    let unused = |&ability: &Ability| Link {
        ability,
        senders: Senders::None,
        before: Vec::new(),
        after: Vec::new(),
        may_merge: true,
    };
    let mut links: Vec<Link> = abilities.iter().map(unused).collect();
    for (index, path) in paths.iter().enumerate() {
        if let Some(&first) = path.first() {
            let first = &mut links[first as usize];
            first.senders = first.senders.with(knows(index));
        }
        for pair in path.windows(2) {
            links[pair[0] as usize].after.push(pair[1]);
            links[pair[1] as usize].before.push(pair[0]);
        }
        let mut rest_ns = 0;
        for &l in path.iter().rev() {
            let ability = &abilities[l as usize];
            links[l as usize].may_merge &= rest_ns + ability.delay_ns >= SHORTEST_WAIT_NS;
            rest_ns += ability.transit_ns;
        }
    }
    for link in &mut links {
        for others in [&mut link.before, &mut link.after] {
            others.sort_unstable();
            others.dedup();
        }
    }
    links
}

fn input(link: &Link, links: &[Link]) -> Input {
    // If a packet took no time, the order of two might depend on how they came.
    let knows_arrivals = |&l: &u32| {
        let Ability {
            can_look_ahead,
            transit_ns,
            ..
        } = links[l as usize].ability;
        can_look_ahead && transit_ns > 0
    };
    if !link.ability.can_look_ahead || !link.before.iter().all(knows_arrivals) {
        return Input::OnArrival;
    }
    match (link.before.len(), link.senders) {
        (_, Senders::Other) | (0, Senders::None) => Input::OnArrival,
        (1, Senders::None) | (0, Senders::One) => Input::Ahead,
        _ if link.may_merge => Input::Merged,
        _ => Input::OnArrival,
    }
}

/// Links in an order in which each comes behind those from which it gets packets other than on their arrival, as far as there
/// is such an order.
struct Order {
    /// Those that no circle leads to.
    first: Vec<usize>,
    /// Circles, and what is between them.
    circles: Vec<usize>,
    last: Vec<usize>,
}

impl Order {
    fn new(inputs: &[Input], links: &[Link]) -> Self {
        let waits = |l: usize| inputs[l] != Input::OnArrival;
        let nexts = |l: usize| {
            let after = links[l].after.iter().map(|&l| l as usize);
            after.filter(move |&next| waits(next))
        };
        let previous = |l: usize| {
            let before = if waits(l) {
                links[l].before.as_slice()
            } else {
                &[]
            };
            before.iter().map(|&l| l as usize)
        };
        let all: Vec<usize> = (0..links.len()).collect();
        let (first, rest) = sort(&all, links.len(), nexts, |l| previous(l).count());
        let (mut last, circles) = {
            let mut is_left = vec![false; links.len()];
            rest.iter().for_each(|&l| is_left[l] = true);
            let left = |l: &usize| is_left[*l];
            sort(&rest, links.len(), previous, |l| {
                nexts(l).filter(left).count()
            })
        };
        last.reverse();
        Self {
            first,
            circles,
            last,
        }
    }

    fn all(&self) -> impl Iterator<Item = usize> {
        let parts = [&self.first, &self.circles, &self.last];
        parts.into_iter().flatten().copied()
    }
}

/// Sort some of `count` links so that each comes behind all those that have it in `nexts`, of which it has `waits` many. Returns
/// those for which there is such an order, and the others.
fn sort<I: Iterator<Item = usize>>(
    some: &[usize],
    count: usize,
    nexts: impl Fn(usize) -> I,
    waits: impl Fn(usize) -> usize,
) -> (Vec<usize>, Vec<usize>) {
    // Those that are not among them wait for ever.
    let mut waiting = vec![usize::MAX; count];
    some.iter().for_each(|&l| waiting[l] = waits(l));
    let mut sorted: Vec<usize> = some.iter().copied().filter(|&l| waiting[l] == 0).collect();
    let mut done = 0;
    while let Some(&l) = sorted.get(done) {
        for next in nexts(l) {
            waiting[next] -= 1;
            if waiting[next] == 0 {
                sorted.push(next);
            }
        }
        done += 1;
    }
    let others = some.iter().copied().filter(|&l| waiting[l] != 0).collect();
    (sorted, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Links of these delays in ms, which all can look ahead, and the paths: senders of even ones hold packets back.
    fn plan_of(delays_ms: &[u64], paths: &[&[u32]]) -> Plan {
        let ability = |&ms: &u64| Ability {
            can_look_ahead: true,
            transit_ns: ms * MS + 400,
            delay_ns: ms * MS,
        };
        let abilities: Vec<Ability> = delays_ms.iter().map(ability).collect();
        plan(&abilities, paths, |path| path % 2 == 0)
    }

    #[test]
    fn packets_of_several_links_or_senders_are_merged() {
        use Input::{Ahead, Merged, OnArrival};
        // A dumbbell: access links 0, 1, bottleneck 2, and on the other side 3, 4; back over 5 to 9.
        let paths: &[&[u32]] = &[&[0, 2, 3], &[5, 7, 8], &[1, 2, 4], &[6, 7, 9]];
        let found = plan_of(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], paths);
        let there = [Ahead, Ahead, Merged, Ahead, Ahead];
        let back = [OnArrival, OnArrival, Merged, Ahead, Ahead];
        assert_eq!(found.inputs, [there, back].concat());
        assert_eq!((found.merging, found.window_ns), (vec![2, 7], u64::MAX));
        // Two senders on link 0 and one that does not hold packets back on link 1.
        let found = plan_of(&[3, 4], &[&[0], &[1], &[0], &[1], &[1]]);
        assert_eq!(found.inputs, [Merged, OnArrival]);
    }

    #[test]
    fn merging_links_come_behind_those_that_they_get_packets_from() {
        // 4 and 3 meet in 1, that and 2 in 0.
        let paths: &[&[u32]] = &[&[4, 1, 0], &[], &[3, 1, 0], &[], &[2, 0], &[]];
        assert_eq!(plan_of(&[1, 2, 3, 4, 5], paths).merging, [1, 0]);
    }

    #[test]
    fn links_in_a_circle_merge_within_the_shortest_of_their_times() {
        // 0, 1, 2 are a ring, 3 leads out of it, and 4 and 5 meet in 6 before it.
        let ring: &[&[u32]] = &[&[0, 1], &[], &[1, 2], &[], &[2, 0, 3], &[], &[1, 3], &[]];
        let paths = [ring, &[&[4, 6, 0], &[], &[5, 6, 0], &[]]].concat();
        let found = plan_of(&[7, 5, 6, 4, 2, 3, 1], &paths);
        assert_eq!(found.window_ns, 5 * MS + 400);
        assert_eq!(found.merging, [6, 0, 1, 2, 3]);
        // Without delays, the links of the ring get their packets on arrival.
        let found = plan_of(&[0, 0, 0, 4, 2, 3, 1], &paths);
        assert_eq!((found.merging, found.window_ns), (vec![3, 6], u64::MAX));
        assert_eq!(found.inputs[..3], [Input::OnArrival; 3]);
    }

    #[test]
    fn nothing_waits_where_a_host_is_near_or_a_link_decides_late() {
        let near = plan_of(&[0, 3], &[&[0], &[], &[0], &[], &[1, 0], &[]]);
        assert_eq!(near.inputs, [Input::OnArrival, Input::Ahead]);
        let abilities = [(false, 3), (true, 4)].map(|(can_look_ahead, ms)| Ability {
            can_look_ahead,
            transit_ns: ms * MS,
            delay_ns: ms * MS,
        });
        let late = plan(&abilities, &[&[0, 1], &[], &[1], &[]], |_| true);
        assert_eq!(late.inputs, [Input::OnArrival; 2]);
    }
}
