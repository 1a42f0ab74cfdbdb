//! A user of the host that has no files and no other processes.

use nix::unistd::{Gid, Group, Uid, User};

use crate::{NetError, Result};

/// The range that systemd gives to services for as long as they run (systemd.exec(5), `DynamicUser=`). It has 4335 numbers,
/// and lies in the 65536 that most containers have.
const RANGE: std::ops::Range<u32> = 61_184..65_519;

/// The number of a user and a group that have no name. Processes that run at the same time get different ones.
pub(super) fn unused() -> Result<u32> {
    let count = RANGE.end - RANGE.start;
    let first = std::process::id() % count;
    (0..count)
        .map(|step| RANGE.start + (first + step) % count)
        .find(|&number| !has_name(number))
        .ok_or_else(|| {
            NetError::invalid(
                "user of the lab",
                format!("{RANGE:?}"),
                "every number of this range has a name; one without is needed",
            )
        })
}

/// A directory that does not answer counts as one that does not know the number.
fn has_name(number: u32) -> bool {
    let user = User::from_uid(Uid::from_raw(number));
    let group = Group::from_gid(Gid::from_raw(number));
    user.ok().flatten().is_some() || group.ok().flatten().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_is_nobody_that_the_machine_knows() {
        let number = unused().unwrap();
        assert!(RANGE.contains(&number) && !has_name(number), "{number}");
        assert!(has_name(0));
    }
}
