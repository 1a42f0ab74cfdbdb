//! What the host asks for.

use super::archive;
use super::{JOB, failed};
use crate::failure::Failure;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The program that jobs run, unless they name another one of their files.
pub(super) const PROGRAM: &str = "/bin/mptcplab-kernel";

pub(super) struct Job {
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
    pub(super) seed: [u8; 8],
    /// Whether the program only prepares the machine, and waits for the arguments of another job.
    pub(super) prepares: bool,
}

impl Job {
    /// Reads the job and writes its files.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Failure> {
        let mut job = Self {
            program: PROGRAM.to_owned(),
            arguments: Vec::new(),
            seed: [0; 8],
            prepares: false,
        };
        fs::create_dir_all(JOB).map_err(|error| failed(JOB, &error))?;
        for (name, content) in archive::entries(bytes)? {
            match name.split_once('/') {
                None if name == "seed" => {
                    job.seed = content.try_into().map_err(|_| {
                        Failure::new(format!("job: a seed of {} bytes", content.len()))
                    })?;
                }
                None if name == "program" => job.program = text(name, content)?.to_owned(),
                None if name == "prepares" => job.prepares = true,
                None if name == "arguments" => {
                    job.arguments = text(name, content)?
                        .split('\0')
                        .map(str::to_owned)
                        .collect();
                }
                Some(("job", path)) => {
                    let path = Path::new(JOB).join(path);
                    write(&path, content)
                        .map_err(|error| failed(&path.display().to_string(), &error))?;
                }
                _ => return Err(Failure::new(format!("job: unknown entry: {name}"))),
            }
        }
        Ok(job)
    }
}

fn text<'a>(name: &str, content: &'a [u8]) -> Result<&'a str, Failure> {
    std::str::from_utf8(content).map_err(|error| Failure::new(format!("job: {name}: {error}")))
}

/// Every file may be a program.
fn write(path: &Path, content: &[u8]) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, content)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}
