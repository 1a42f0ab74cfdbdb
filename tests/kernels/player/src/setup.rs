//! What a script's settings mean for a socket of the kernel.

use mptcplab_conformance::script::Script;

/// Bytes of a full segment with timestamps.
pub(crate) const SEGMENT_BYTES: u32 = 1448;
/// The largest window that the peer can announce, in segments.
const MOST_SEGMENTS: u32 = (65_535 << super::packet::WINDOW_SHIFT) / SEGMENT_BYTES;

/// How to prepare the kernel and the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setup {
    pub(crate) congestion: String,
    pub(crate) initial_cwnd: Option<u32>,
    pub(crate) ecn: bool,
    /// The window that the peer announces unless a line of the script says another one, in segments.
    pub(crate) window: u32,
    /// Bytes that the application writes; without a limit if `None`.
    pub(crate) size_bytes: Option<u64>,
}

impl Setup {
    /// Reads the settings; the error says what a socket cannot be told, or cannot be told from outside.
    pub(crate) fn of(script: &Script) -> Result<Self, String> {
        let mut setup = Self {
            congestion: "reno".to_owned(),
            initial_cwnd: None,
            ecn: false,
            window: MOST_SEGMENTS,
            size_bytes: None,
        };
        // The other profiles are not what Linux does by itself.
        if let Some(profile) = script.top.iter().find(|top| !top.contains("linux-acked")) {
            return Err(format!("the kernel has no {profile}"));
        }
        for setting in &script.flow {
            setup.set(setting)?;
        }
        if script.is_receiver && setup.window != MOST_SEGMENTS {
            return Err(
                "a receive buffer of so many segments: the kernel counts memory".to_owned(),
            );
        }
        Ok(setup)
    }

    fn set(&mut self, setting: &str) -> Result<(), String> {
        let cannot = || format!("{setting}: a socket has no such option");
        let (key, value) = setting.split_once('=').ok_or_else(cannot)?;
        let value = value.trim();
        match key.trim() {
            "cc" => self.congestion = value.trim_matches('"').to_owned(),
            "initial_cwnd" => {
                self.initial_cwnd = Some(number(value, " packets").ok_or_else(cannot)? as u32);
            }
            "ecn" => self.ecn = value == "true",
            "rcv_buffer" => {
                let bytes = number(value, " B").ok_or_else(cannot)?;
                self.window = (bytes / u64::from(SEGMENT_BYTES)) as u32;
            }
            "traffic" => {
                let size = value.trim_matches(['{', '}', ' ']).split_once('=');
                let size = size.filter(|(key, _)| key.trim() == "size");
                self.size_bytes =
                    Some(number(size.ok_or_else(cannot)?.1, " B").ok_or_else(cannot)?);
            }
            _ => return Err(cannot()),
        }
        Ok(())
    }
}

/// The number of a quantity such as `"14480 B"`.
fn number(value: &str, unit: &str) -> Option<u64> {
    value
        .trim()
        .trim_matches('"')
        .strip_suffix(unit)?
        .parse()
        .ok()
}
