//! The player of an adaptive video: which chunk it requests and when, its buffer, and when it stalls. Its parameters are described
//! in docs/reference/scenario-format.md (`dash`).

use super::config::Video;

/// A chunk of the video.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Number, from 0.
    pub index: u32,
    /// Rate at which it is encoded.
    pub media_bps: u64,
    pub bytes: u64,
}

/// The effect of a complete chunk on playback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watched {
    /// How long playback has stalled, waiting for this chunk; 0 for the first, before which nothing played.
    pub stall_ns: u64,
    /// When the next chunk is to be requested.
    pub next_ns: u64,
}

/// A player. Time is an argument and never decreases.
#[derive(Debug, Clone)]
pub struct Player {
    video: Video,
    estimate_bps: f64,
    /// Whether the estimate comes from a measurement.
    is_measured: bool,
    next: u32,
    /// Playing time in the buffer at `at_ns`.
    buffer_ns: u64,
    at_ns: u64,
    /// The requested chunk and when it was requested.
    asked: Option<(Chunk, u64)>,
}

impl Player {
    /// A player with an empty buffer.
    pub fn new(video: Video) -> Self {
        Self {
            estimate_bps: video.first_estimate_bps as f64,
            video,
            is_measured: false,
            next: 0,
            buffer_ns: 0,
            at_ns: 0,
            asked: None,
        }
    }

    /// Request the next chunk now.
    pub fn ask(&mut self, now_ns: u64) -> Chunk {
        let media_bps = self.encoding_bps();
        // Below 2^39 bit/s times 2^47 ns.
        let bits = u128::from(media_bps) * u128::from(self.video.chunk_ns) / 1_000_000_000;
        let chunk = Chunk {
            index: self.next,
            media_bps,
            bytes: u64::try_from(bits.div_ceil(8)).unwrap_or(u64::MAX).max(1),
        };
        self.next += 1;
        self.asked = Some((chunk, now_ns));
        chunk
    }

    /// The requested chunk is complete.
    pub fn complete(&mut self, now_ns: u64) -> Watched {
        if let Some((chunk, asked_ns)) = self.asked.take() {
            self.measure(chunk.bytes, now_ns - asked_ns);
        }
        let played_ns = now_ns - self.at_ns;
        let is_first = self.next == 1;
        let stall_ns = match is_first {
            true => 0,
            false => played_ns.saturating_sub(self.buffer_ns),
        };
        self.buffer_ns = self.buffer_ns.saturating_sub(played_ns) + self.video.chunk_ns;
        self.at_ns = now_ns;
        let full_ns = self.buffer_ns + self.video.chunk_ns;
        Watched {
            stall_ns,
            next_ns: now_ns + full_ns.saturating_sub(self.video.buffer_ns),
        }
    }

    /// The highest encoding rate that the estimated throughput allows.
    fn encoding_bps(&self) -> u64 {
        let affordable = self.video.safety * self.estimate_bps;
        let ladder = &self.video.ladder_bps;
        let best = ladder.iter().rev().find(|&&bps| bps as f64 <= affordable);
        // The scenario leaves no ladder empty.
        best.or(ladder.first()).copied().unwrap_or(1)
    }

    fn measure(&mut self, bytes: u64, time_ns: u64) {
        let measured = bytes as f64 * 8e9 / time_ns.max(1) as f64;
        let weight = match self.is_measured {
            true => self.video.weight,
            false => 1.0,
        };
        self.estimate_bps += weight * (measured - self.estimate_bps);
        self.is_measured = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn player() -> Player {
        Player::new(Video {
            ladder_bps: vec![100_000, 250_000, 1_000_000, 2_500_000],
            chunk_ns: 5 * S,
            buffer_ns: 12 * S,
            safety: 0.8,
            weight: 0.25,
            first_estimate_bps: 400_000,
        })
    }

    #[test]
    fn the_encoding_follows_the_estimate() {
        let mut player = player();
        // 0.8 x 400 kbit/s = 320 kbit/s; 250 kbit/s x 5 s = 156,250 bytes.
        let first = player.ask(S);
        assert_eq!(
            (first.index, first.media_bps, first.bytes),
            (0, 250_000, 156_250)
        );
        // Its own throughput replaces the guess: 1.25 Mbit in 0.5 s, 2.5 Mbit/s, of which 80 % are 2 Mbit/s.
        player.complete(S + S / 2);
        assert_eq!(player.ask(2 * S).media_bps, 1_000_000);
        // 5 Mbit in 2 s are again 2.5 Mbit/s; then 5 Mbit in 5 s: 0.75 x 2.5 + 0.25 x 1 = 2.125, 80 % are 1.7.
        player.complete(4 * S);
        assert_eq!(player.ask(4 * S).media_bps, 1_000_000);
        player.complete(9 * S);
        assert_eq!(player.estimate_bps, 2_125_000.0);
    }

    #[test]
    fn no_rate_low_enough_means_the_lowest() {
        let mut player = player();
        player.estimate_bps = 50_000.0;
        assert_eq!(player.ask(0).media_bps, 100_000);
    }

    #[test]
    fn the_buffer_bounds_requests_and_running_dry_is_a_stall() {
        let mut player = player();
        player.ask(3 * S);
        // The first chunk, at 4 s: 5 s in the buffer and room for another.
        assert_eq!(
            player.complete(4 * S),
            Watched {
                stall_ns: 0,
                next_ns: 4 * S
            }
        );
        player.ask(4 * S);
        // At 5 s: 4 + 5 = 9 s. 9 + 5 do not fit into 12 before 2 s later.
        assert_eq!(
            player.complete(5 * S),
            Watched {
                stall_ns: 0,
                next_ns: 7 * S
            }
        );
        player.ask(7 * S);
        // 9 s from 5 s on last until 14 s: at 15.5 s it has stood still for 1.5 s.
        let late = player.complete(15 * S + S / 2);
        assert_eq!(
            late,
            Watched {
                stall_ns: S + S / 2,
                next_ns: 15 * S + S / 2
            }
        );
        assert_eq!(player.buffer_ns, 5 * S);
    }
}
