//! Plays conformance scripts against the kernel on which it runs: `mptcplab-player SCRIPT...`, as root.
//!
//! It prints a line of JSON per script: `script`, its file; `outcome`, which is `agrees`, `differs` or `cannot` (be played);
//! `why`; and `not_shown`, the names of what a script checks and the kernel does not show.

#![forbid(unsafe_code)]

mod packet;
mod peer;
mod play;
mod setup;

use mptcplab_conformance::script;
use peer::Result;
use play::Outcome;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    // A sleep ends when it should, not when others end as well.
    let precise = nix::sys::prctl::set_timerslack(1);
    let played = precise.map_err(Into::into).and_then(|()| {
        std::env::args()
            .skip(1)
            .try_for_each(|file| play_file(Path::new(&file)))
    });
    match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn play_file(path: &Path) -> Result<()> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let script = script::parse(&text).map_err(|why| format!("{}: {why}", path.display()))?;
    // A thread of its own, because a thread that has entered a namespace stays there.
    let outcome = std::thread::scope(|scope| {
        let played = scope.spawn(|| play::play(&script).map_err(|error| error.to_string()));
        played
            .join()
            .unwrap_or_else(|_| Err("the player panicked".to_owned()))
    });
    let outcome = outcome.map_err(|error| format!("{}: {error}", path.display()))?;
    let (name, why, not_shown) = match outcome {
        Outcome::Agrees(not_shown) => ("agrees", String::new(), not_shown),
        Outcome::Differs(why) => ("differs", why, Vec::new()),
        Outcome::Cannot(why) => ("cannot", why, Vec::new()),
    };
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    println!(
        "{}",
        json!({"type": "script", "script": file, "outcome": name, "why": why, "not_shown": not_shown})
    );
    Ok(())
}
