//! Judges of which some or all members are served over HTTP by an engine such as vLLM.
//!
//! A member gets the prompt of a local member, and the format of its evaluation as one constraint. A
//! [handshake] tests before the first case that the server obeys the constraint and sees images.

mod budget;
pub mod endpoint;
mod exchange;
pub mod free_text;
pub mod handshake;
mod image_urls;
mod member_errors;
mod panel_settings;
mod request_queue;
mod served_judge;
mod served_member;
mod served_panel;
mod transport;

pub use budget::Budget;
pub use free_text::{ServedWriter, ServedWriterSettings, TextServer};
pub use panel_settings::{PanelMember, ServedPanelSettings};
pub use served_judge::ServedJudge;
pub use transport::RequestLimits;
