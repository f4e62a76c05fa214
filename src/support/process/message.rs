//! Messages between the program and an isolated process: a JSON header and bytes.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum size of a header in bytes. The largest headers contain the texts of one table row.
const MAX_HEADER_BYTES: u64 = 64 << 20;

/// A received message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// JSON text.
    pub header: Vec<u8>,
    /// Bytes such as those of an image.
    pub body: Vec<u8>,
}

impl Message {
    /// Parses the header.
    ///
    /// # Errors
    /// The header is not JSON of type `T`.
    pub fn parse_header<T: DeserializeOwned>(&self) -> io::Result<T> {
        serde_json::from_slice(&self.header).map_err(io::Error::other)
    }

    /// Reads a message; `None` at the end of the stream.
    ///
    /// # Errors
    /// I/O errors, and `InvalidData` for a header or body over its limit.
    pub fn read(reader: &mut impl Read, max_body_bytes: u64) -> io::Result<Option<Self>> {
        let mut lengths = [0; 16];
        match reader.read(&mut lengths[..1])? {
            0 => return Ok(None),
            _ => reader.read_exact(&mut lengths[1..])?,
        }
        let (header, body) = lengths.split_at(8);
        let header = read_part(reader, header, MAX_HEADER_BYTES)?;
        let body = read_part(reader, body, max_body_bytes)?;
        Ok(Some(Self { header, body }))
    }
}

fn read_part(reader: &mut impl Read, length: &[u8], limit: u64) -> io::Result<Vec<u8>> {
    let length = length.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    if length > limit {
        let problem = format!("a message of {length} bytes, the limit is {limit}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    let mut part = Vec::with_capacity(usize::try_from(length).map_err(io::Error::other)?);
    if reader.take(length).read_to_end(&mut part)? as u64 == length {
        Ok(part)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// Writes a message.
///
/// # Errors
/// I/O errors, and a header that cannot be serialised.
pub fn write(writer: &mut impl Write, header: &impl Serialize, body: &[u8]) -> io::Result<()> {
    let header = serde_json::to_vec(header)?;
    writer.write_all(&(header.len() as u64).to_le_bytes())?;
    writer.write_all(&(body.len() as u64).to_le_bytes())?;
    writer.write_all(&header)?;
    writer.write_all(body)?;
    writer.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_written() {
        let mut stream = Vec::new();
        write(&mut stream, &"first", b"bytes").unwrap();
        write(&mut stream, &2.1_f64, b"").unwrap();
        let mut reader = stream.as_slice();
        let first = Message::read(&mut reader, 5).unwrap().unwrap();
        assert_eq!(first.parse_header::<String>().unwrap(), "first");
        assert_eq!(first.body, b"bytes");
        let second = Message::read(&mut reader, 5).unwrap().unwrap();
        assert_eq!(second.parse_header::<f64>().unwrap().to_bits(), 2.1_f64.to_bits());
        assert_eq!(Message::read(&mut reader, 5).unwrap(), None);
        // The first message has 16 bytes of lengths, 7 of header and 5 of body.
        for end in 1..28 {
            assert!(Message::read(&mut &stream[..end], 5).is_err(), "{end}");
        }
    }

    #[test]
    fn bodies_over_the_limit_are_rejected() {
        let mut stream = Vec::new();
        write(&mut stream, &1, b"bytes").unwrap();
        let error = Message::read(&mut stream.as_slice(), 4).unwrap_err();
        assert!(error.to_string().contains("the limit is 4"), "{error}");
    }
}
