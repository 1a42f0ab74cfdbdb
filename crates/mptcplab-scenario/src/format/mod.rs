//! The scenario format, declared once: the parser, the JSON Schema and the reference page are made from these tables.

mod declaration;
mod flow;
mod json_schema;
mod link;
mod reference;
mod scenario;

pub(crate) use declaration::{Field, Need, TableSpec, Type};
pub(crate) use flow::{
    ARRIVAL_LEVELS, DEFAULT_UDP_PACKET_BYTES, FLOW, LEVEL, MESSAGES, PRIORITY, REQUESTS, SCTP_KEYS,
    SIZE_LAW, SUBFLOW, TCP, TCP_FIELDS, TRAFFIC, UDP_FIELDS, VIDEO, VIDEO_LADDER_BPS,
};
pub use json_schema::json_schema;
pub(crate) use link::{
    AQM, CHANGE, CODEL_FIELDS, DEFAULT_OVERHEAD_BYTES, FQ_FIELDS, GILBERT_ELLIOTT, LINK,
    RED_FIELDS, REORDER, REVERSE, TRACE_OVERHEAD_BYTES,
};
pub use reference::reference_page;
pub(crate) use scenario::SCENARIO;
