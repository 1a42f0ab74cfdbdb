//! A short run before the snapshot, so that no job pays for what a kernel does once: parsing its type information,
//! reading the program from the file system, and what it still does in the background after the boot.

use super::job::PROGRAM;
use super::{SETTLE, failed};
use crate::failure::Failure;
use std::fs;
use std::process::{Command, Stdio};

const SCENARIO: &str = "\
title = \"Warm-up\"
duration = \"200 ms\"
cc = [\"lia\"]

[links.A]
from = \"client\"
to = \"server\"
rate = \"8 Mbit/s\"
delay = \"1 ms\"
queue = \"30 packets\"

[links.B]
from = \"client\"
to = \"server\"
rate = \"3 Mbit/s\"
delay = \"2 ms\"
queue = \"20 packets\"

[flows.mp]
transport = \"mptcp\"
paths = [[\"A\"], [\"B\"]]
";
/// On tmpfs, and removed afterwards.
const PLACE: &str = "/tmp/warm-up";

/// Makes the run and lets the machine settle. How the run ends does not matter: a kernel that cannot do it refuses the
/// job, with its reason.
pub(super) fn run() -> Result<(), Failure> {
    let wrong = |error: std::io::Error| failed(PLACE, &error);
    fs::create_dir_all(PLACE).map_err(wrong)?;
    let scenario = format!("{PLACE}/scenario.toml");
    fs::write(&scenario, SCENARIO).map_err(wrong)?;
    Command::new(PROGRAM)
        .args(["run", "--in-machine", "--scenario", &scenario])
        .args(["--out", &format!("{PLACE}/trace")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| failed(PROGRAM, &error))?;
    fs::remove_dir_all(PLACE).map_err(wrong)?;
    std::thread::sleep(SETTLE);
    Ok(())
}
