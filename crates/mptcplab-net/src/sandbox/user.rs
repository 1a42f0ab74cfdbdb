//! A user of the host that has no files and no other processes.

use std::fs;
use std::path::Path;

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

/// Whether a file of this machine or systemd gives the number to a user or a group. The C library is not asked, because it
/// loads modules to answer, which a program without libraries cannot do. Directories of a network leave the range to systemd.
fn has_name(number: u32) -> bool {
    let listed = |file| lists(&fs::read(file).unwrap_or_default(), number);
    // systemd has a file for every number that it gave to a service.
    let given = Path::new("/run/systemd/dynamic-uid").join(number.to_string());
    listed("/etc/passwd") || listed("/etc/group") || given.exists()
}

/// Whether a table in the form of passwd(5) or group(5) has the number of a user or a group.
fn lists(table: &[u8], number: u32) -> bool {
    let wanted = number.to_string();
    table
        .split(|&byte| byte == b'\n')
        .any(|line| line.split(|&byte| byte == b':').nth(2) == Some(wanted.as_bytes()))
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

    #[test]
    fn a_table_lists_the_numbers_of_its_third_column() {
        let table = b"root:x:0:4:root:/root:/bin/sh\nnot utf-8 \xff:x:61200:7::/:\nlast:*:61311:";
        for number in [0, 61_200, 61_311] {
            assert!(lists(table, number), "{number}");
        }
        for number in [4, 7, 6120, 612_000] {
            assert!(!lists(table, number), "{number}");
        }
    }
}
