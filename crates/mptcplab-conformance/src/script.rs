//! The format of the scripts; `tests/conformance/README.md` explains it.

/// What a line says.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// `>`: what is under test sends exactly this, as text that the wire writes in the same form.
    Sends(Vec<String>),
    /// `<`: this packet arrives.
    Arrives(Arrival),
    /// `=`: names and values of the state.
    Is(Vec<(String, String)>),
}

/// An arriving packet: an ACK in scripts of a sender, a data segment in scripts of a receiver.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Arrival {
    /// The cumulative ACK, or the segments.
    pub first: u32,
    pub end: u32,
    pub sack: Vec<(u32, u32)>,
    pub dsack: Option<(u32, u32)>,
    /// Time in ms of the timestamp that is echoed or carried.
    pub stamp: Option<f64>,
    /// Window in segments.
    pub window: Option<u16>,
    /// An ACK that answers no segment: it announces a larger window.
    pub updates_window: bool,
    /// ECN: an echo on an ACK, a mark on data.
    pub marked: bool,
    /// The sender has reduced its window (CWR).
    pub reduced: bool,
    /// The data have PSH.
    pub pushes: bool,
}

/// What happens at a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// In the file, from 1.
    pub number: usize,
    /// Since the SYN left.
    pub at_ns: u64,
    pub action: Action,
}

/// A script.
#[derive(Debug, Default)]
pub struct Script {
    /// Keys of the flow's table in the scenario, and of its top.
    pub flow: Vec<String>,
    pub top: Vec<String>,
    /// The receiver is under test instead of the sender.
    pub is_receiver: bool,
    /// What is sent is not compared, only the state.
    pub is_silent: bool,
    /// Round-trip time of the handshake.
    pub handshake_ns: u64,
    pub lines: Vec<Line>,
}

/// Reads a script.
///
/// # Errors
/// The number of the line that is wrong, what is wrong with it, and the line.
pub fn parse(text: &str) -> Result<Script, String> {
    let mut script = Script {
        handshake_ns: 100_000_000,
        ..Script::default()
    };
    for (i, line) in text.lines().enumerate() {
        let line = line.split(" #").next().unwrap_or_default().trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fail = |why: &str| format!("line {}: {why}: {line}", i + 1);
        match line.strip_prefix('!') {
            Some(setting) => set(&mut script, setting.trim()).map_err(|why| fail(&why))?,
            None => {
                let (at_ns, action) =
                    read(line, script.is_receiver).ok_or_else(|| fail("not understood"))?;
                if script.lines.last().is_some_and(|last| at_ns < last.at_ns) {
                    return Err(fail("earlier than the line above"));
                }
                script.lines.push(Line {
                    number: i + 1,
                    at_ns,
                    action,
                });
            }
        }
    }
    Ok(script)
}

fn set(script: &mut Script, setting: &str) -> Result<(), String> {
    if setting == "receiver" {
        script.is_receiver = true;
        return Ok(());
    }
    if setting == "silent" {
        script.is_silent = true;
        return Ok(());
    }
    let (key, value) = setting.split_once('=').ok_or("a setting is key = value")?;
    match key.trim() {
        "handshake" => {
            script.handshake_ns = nanoseconds(value.trim()).ok_or("a time in ms")?;
        }
        "profile" => script.top.push(setting.to_owned()),
        _ => script.flow.push(setting.to_owned()),
    }
    Ok(())
}

fn nanoseconds(ms: &str) -> Option<u64> {
    Some((ms.parse::<f64>().ok()? * 1e6).round() as u64)
}

fn read(line: &str, is_receiver: bool) -> Option<(u64, Action)> {
    let mut words = line.split_whitespace();
    let at_ns = nanoseconds(words.next()?)?;
    let kind = words.next()?;
    let rest: Vec<&str> = words.collect();
    let action = match kind {
        ">" => {
            let text = rest.join(" ");
            let nothing = text == "nothing";
            let parts = text.split(',').map(|part| part.trim().to_owned());
            Action::Sends(parts.filter(|_| !nothing).collect())
        }
        "<" => Action::Arrives(arrival(&rest, is_receiver)?),
        "=" => {
            if rest.len() % 2 != 0 {
                return None;
            }
            let pairs = rest.chunks_exact(2);
            Action::Is(
                pairs
                    .map(|pair| (pair[0].to_owned(), pair[1].to_owned()))
                    .collect(),
            )
        }
        _ => return None,
    };
    Some((at_ns, action))
}

fn range(word: &str) -> Option<(u32, u32)> {
    let (start, end) = word.split_once(':')?;
    Some((start.parse().ok()?, end.parse().ok()?))
}

fn arrival(words: &[&str], is_receiver: bool) -> Option<Arrival> {
    let mut found = Arrival::default();
    let mut words = words.iter().copied().peekable();
    if is_receiver {
        (found.first, found.end) = range(words.next()?)?;
    } else {
        words.next().filter(|word| *word == "ack")?;
        found.first = words.next()?.parse().ok()?;
    }
    while let Some(word) = words.next() {
        match word {
            "sack" => {
                while let Some(block) = words.peek().and_then(|word| range(word)) {
                    found.sack.push(block);
                    words.next();
                }
            }
            "dsack" => found.dsack = Some(range(words.next()?)?),
            "stamp" => found.stamp = Some(words.next()?.parse().ok()?),
            "window" => found.window = Some(words.next()?.parse().ok()?),
            "update" => found.updates_window = true,
            "ece" | "ce" => found.marked = true,
            "cwr" => found.reduced = true,
            "push" => found.pushes = true,
            _ => return None,
        }
    }
    Some(found)
}
