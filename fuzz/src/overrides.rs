//! What the command line changes in a scenario.

use crate::scenario::is_valid;
use mptcplab_scenario::Overrides;

/// Two links, a flow of each transport, and a sweep axis: something for every option to change.
const SCENARIO: &str = r#"
duration = "9 s"
cc = ["lia", "reno"]
[links.one]
from = "S"
to = "D"
rate = "7 Mbit/s"
delay = "11 ms"
queue = "31 packets"
[links.two]
from = "S"
to = "D"
rate = "3 Mbit/s"
delay = "5 ms"
queue = "17 packets"
[flows.m]
subflows = [{ path = ["one"] }, { path = ["two"] }]
[flows.u]
transport = "udp"
path = ["two"]
rate = "100 kbit/s"
"#;

/// The JSON of overrides.
pub fn overrides(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match Overrides::from_json(text) {
        Ok(overrides) => {
            is_valid(SCENARIO, None, &overrides);
        }
        Err(message) => assert!(!message.is_empty()),
    }
}
