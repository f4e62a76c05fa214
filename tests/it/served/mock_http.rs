//! Requests and replies of the mock of a serving engine.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::net::TcpStream;

use serde_json::Value;

/// Reads the headers of a request, by name in lower case.
pub(super) fn read_headers(reader: &mut impl BufRead) -> std::io::Result<BTreeMap<String, String>> {
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim().split_once(':') else {
            return Ok(headers);
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
}

/// Writes a reply with a JSON body.
pub(super) fn write_reply(
    stream: &mut TcpStream,
    status: u16,
    body: &Value,
    retry_after: Option<&str>,
) -> std::io::Result<()> {
    write_text_reply(stream, status, &body.to_string(), retry_after)
}

/// Writes a reply.
pub(super) fn write_text_reply(
    stream: &mut TcpStream,
    status: u16,
    body: &str,
    retry_after: Option<&str>,
) -> std::io::Result<()> {
    let retry = retry_after.map_or(String::new(), |pause| format!("retry-after: {pause}\r\n"));
    let length = body.len();
    let reply = format!("HTTP/1.1 {status} X\r\n{retry}content-length: {length}\r\n\r\n{body}");
    stream.write_all(reply.as_bytes())
}

/// Writes a redirect.
pub(super) fn write_redirect(stream: &mut TcpStream, target: &str) -> std::io::Result<()> {
    let reply = format!("HTTP/1.1 307 X\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(reply.as_bytes())
}
