//! What applications do, the same for every engine: random times and sizes, the law of transfers, a video's player.
//!
//! Pure functions of times and of the flow's random stream: no clock, no sockets, no packets. Two engines that draw
//! from the same stream in the same order make the same traffic.

mod config;
mod draw;
mod transfers;
mod video;

pub use config::{Arrivals, Level, SizeLaw, Span, StartTime, Transfers, Video};
pub use draw::{size, span, start};
pub use transfers::{Schedule, Transfer};
pub use video::{Chunk, Player, Watched};
