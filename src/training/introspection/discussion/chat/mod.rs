//! Requests to models behind chat endpoints, and the journal of their answers.

pub(crate) mod chat_client;
pub(crate) mod chat_flags;
pub(crate) mod image_url;
pub(crate) mod request_journal;
