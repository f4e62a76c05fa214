//! The isolated process: answers requests from its standard input until the input ends.

use std::io::{self, BufReader, BufWriter, Write};

use super::limits;
use super::message::Message;

/// Answers one request: writes one message.
pub type Respond<'a> = dyn FnMut(Message, &mut dyn Write) -> io::Result<()> + 'a;

/// Limits this process and answers requests on standard input with `respond`.
///
/// # Errors
/// The other end of a pipe is closed, or a message is malformed.
pub fn serve(respond: &mut Respond<'_>) -> io::Result<()> {
    // The caller reports failures. A panic message on the terminal would repeat them.
    std::panic::set_hook(Box::new(|_| {}));
    limits::limit_memory();
    let mut input = BufReader::new(io::stdin().lock());
    let mut output = BufWriter::new(io::stdout().lock());
    while let Some(request) = Message::read(&mut input, u64::MAX)? {
        limits::renew_cpu_time();
        respond(request, &mut output)?;
        output.flush()?;
    }
    Ok(())
}
