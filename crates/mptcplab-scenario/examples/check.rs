//! Prints the meaning of a scenario file, or its errors: `cargo run -p mptcplab-scenario --example check FILE`.

use mptcplab_scenario::{Overrides, describe, load};

fn main() -> std::process::ExitCode {
    let Some(file) = std::env::args_os().nth(1) else {
        eprintln!("error: no scenario named\n\nhint: give the path of a scenario file");
        return 2.into();
    };
    match load(std::path::Path::new(&file), &Overrides::default()) {
        Ok(sweep) => {
            print!("{}", describe(&sweep));
            0.into()
        }
        Err(error) => {
            eprintln!("error: {error}");
            2.into()
        }
    }
}
