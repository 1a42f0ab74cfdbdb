//! The default congestion control of every network namespace, and the command that sets another one there.

use mptcplab_bpf::registered::OPERATOR_PREFIX;
use mptcplab_net::{InNamespace, Result, in_every_namespace};
use std::borrow::Cow;
use std::fs;
use std::path::Path;

const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
/// Where `ip netns add` mounts namespaces.
const NAMED: [&str; 2] = ["/run/netns/", "/var/run/netns/"];

/// The defaults that can be read.
#[derive(Debug, Clone, Default)]
pub struct Defaults {
    /// Which namespace it is (its first process or a path to it), and its default.
    known: Vec<(String, String)>,
    /// Processes and paths into whose namespaces this process may not look.
    pub closed: Vec<String>,
}

impl Defaults {
    /// Reads those of all network namespaces.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn read() -> Result<Self> {
        let mut defaults = Self::default();
        for InNamespace { place, result } in in_every_namespace(|| fs::read_to_string(DEFAULT))? {
            match result {
                Ok(Ok(text)) => defaults.known.push((place, text.trim().to_owned())),
                Ok(Err(_)) => {}
                Err(_) => defaults.closed.push(place),
            }
        }
        Ok(defaults)
    }

    /// The namespaces whose default has this name.
    pub fn places(&self, name: &str) -> Vec<&str> {
        let of_name = self.known.iter().filter(|(_, default)| default == name);
        of_name.map(|(place, _)| place.as_str()).collect()
    }

    /// Users of the algorithm without the namespaces whose default it is: the kernel counts each of them like a socket.
    pub fn sockets(&self, name: &str, users: u64) -> u64 {
        users.saturating_sub(self.places(name).len() as u64)
    }
}

/// The command that sets another default in the namespaces: in the first of them, if they are several.
pub fn set_another(places: &[&str]) -> String {
    let allowed = fs::read_to_string(ALLOWED).unwrap_or_default();
    set(places.first().copied().unwrap_or_default(), other(&allowed))
}

/// The command that sets this default in a namespace.
pub fn set(place: &str, name: &str) -> String {
    let sysctl = format!("sysctl -w net.ipv4.tcp_congestion_control={name}");
    let process = place
        .strip_prefix("process ")
        .and_then(|rest| rest.split(' ').next());
    let named = NAMED.iter().find_map(|folder| place.strip_prefix(folder));
    match (named, process) {
        (Some(name), _) => format!("ip netns exec {} {sysctl}", quoted(name)),
        (_, Some(process)) if is_elsewhere(process) => {
            format!("nsenter --net=/proc/{process}/ns/net {sysctl}")
        }
        _ if Path::new(place).is_absolute() => format!("nsenter --net={} {sysctl}", quoted(place)),
        _ => sysctl,
    }
}

/// As one word of a shell's command line.
pub(crate) fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/_-.:".contains(c);
    if word.chars().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''")).into()
}

/// The first algorithm that every namespace may choose and that `cc load` has not loaded.
fn other(allowed: &str) -> &str {
    let mut names = allowed.split_whitespace();
    // The kernel always has Reno.
    names
        .find(|name| !name.starts_with(OPERATOR_PREFIX))
        .unwrap_or("reno")
}

fn is_elsewhere(process: &str) -> bool {
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
    namespace(process) != namespace("self")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hint named cubic, which a container may not choose where the host does not allow it.
    #[test]
    fn the_other_default_is_one_that_every_namespace_may_choose() {
        assert_eq!(other("lab_olia reno bbr lab_lia\n"), "reno");
        assert_eq!(other("lab_olia bbr reno\n"), "bbr");
        assert_eq!(other(""), "reno");
    }

    #[test]
    fn the_command_enters_the_namespace_by_what_names_it() {
        let sysctl = "sysctl -w net.ipv4.tcp_congestion_control=bbr";
        assert_eq!(
            set("/run/netns/client", "bbr"),
            format!("ip netns exec client {sysctl}")
        );
        assert_eq!(
            set("/srv/ns", "bbr"),
            format!("nsenter --net=/srv/ns {sysctl}")
        );
        assert_eq!(
            set("/run/netns/it's mine", "bbr"),
            format!(r"ip netns exec 'it'\''s mine' {sysctl}")
        );
        assert_eq!(
            set("/srv/two words", "bbr"),
            format!("nsenter --net='/srv/two words' {sysctl}")
        );
        // There is no such process, so it is not in the namespace of this one.
        assert_eq!(
            set("process 4194999 (sleep)", "bbr"),
            format!("nsenter --net=/proc/4194999/ns/net {sysctl}")
        );
        let here = format!("process {} (test)", std::process::id());
        assert_eq!(set(&here, "bbr"), sysctl);
    }

    #[test]
    fn a_namespace_whose_default_it_is_is_no_socket() {
        let defaults = Defaults {
            known: vec![
                ("process 1 (init)".into(), "lab_olia".into()),
                ("/run/netns/a".into(), "reno".into()),
                ("/run/netns/b".into(), "lab_olia".into()),
            ],
            closed: Vec::new(),
        };
        assert_eq!(
            defaults.places("lab_olia"),
            ["process 1 (init)", "/run/netns/b"]
        );
        assert_eq!(defaults.sockets("lab_olia", 7), 5);
        assert_eq!(defaults.sockets("lab_olia", 1), 0);
    }
}
