//! Traffic, the same for every engine: random times and sizes, transfers and their arrivals, requests and messages, the player of
//! an adaptive video.
//!
//! Everything is a function of times and of the flow's random stream, without clock, sockets or packets. Two engines that draw
//! from the same stream in the same order generate the same traffic.

mod config;
mod draw;
mod requests;
mod transfers;
mod video;

pub use config::{
    ArrivalRate, Arrivals, DurationDistribution, RequestKind, RequestTimes, Requests,
    SizeDistribution, StartTime, Transfers, Video,
};
pub use draw::{duration, size, start};
pub use requests::{Request, RequestSchedule};
pub use transfers::{Schedule, Transfer};
pub use video::{Chunk, Player, Watched};
