//! Receiving new work between two steps.

use std::sync::mpsc::{Receiver, RecvError, TryRecvError};

/// Returns the next message, or `None` if there is none and a text is in progress. An idle thread waits
/// for a message.
///
/// # Errors
///
/// The sender is gone.
pub(super) fn receive<T>(messages: &Receiver<T>, is_idle: bool) -> Result<Option<T>, RecvError> {
    match messages.try_recv() {
        Ok(message) => Ok(Some(message)),
        Err(TryRecvError::Empty) if is_idle => messages.recv().map(Some),
        Err(TryRecvError::Empty) => Ok(None),
        Err(TryRecvError::Disconnected) => Err(RecvError),
    }
}
