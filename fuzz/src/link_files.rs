//! Files that a link names.

use crate::scenario::is_valid;
use mptcplab_scenario::Overrides;
use std::cell::RefCell;
use tempfile::TempDir;

const NAME: &str = "any.file";

thread_local! {
    static FOLDER: RefCell<TempDir> = RefCell::new(tempfile::tempdir().expect("a temporary directory"));
}

/// The same bytes as a packet-delivery trace and as a table of changes.
pub fn link_files(bytes: &[u8]) {
    FOLDER.with_borrow(|folder| {
        std::fs::write(folder.path().join(NAME), bytes).expect("a file");
        for link in [
            format!("trace = \"{NAME}\""),
            format!("rate = \"5 Mbit/s\"\nschedule = \"{NAME}\""),
        ] {
            let text = format!(
                "duration = \"3 s\"\ncc = \"reno\"\n[links.one]\nfrom = \"S\"\nto = \"D\"\ndelay = \"7 ms\"\n\
                 queue = \"31 packets\"\n{link}\n[flows.f]\npath = [\"one\"]\n"
            );
            is_valid(&text, Some(folder.path()), &Overrides::default());
        }
    });
}
