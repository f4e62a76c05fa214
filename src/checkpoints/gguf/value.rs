//! The metadata of a GGUF file, read without believing the lengths it states.

use std::io::Read;

use anyhow::{Context, Result, bail};
use serde_json::{Number, Value as Json};

/// Longest metadata and list of tensors together; those of the largest vocabularies take a sixth.
const MOST: u64 = 64 << 20;
/// The tags of strings and of arrays.
const TEXT: u32 = 8;
const ARRAY: u32 = 9;

/// A value of the metadata.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// A number, truth value or text.
    One(Json),
    /// A list of values of one kind.
    List(List),
}

/// A list as it lies in the file, so that it takes the room it takes there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct List {
    kind: u32,
    /// How many values it has.
    pub len: usize,
    bytes: Vec<u8>,
}

/// What is left of a file of known length.
pub(super) struct Source<R> {
    inner: R,
    /// Bytes of the file that were not read yet.
    left: u64,
    /// Bytes that were read.
    pub(super) read: u64,
}

impl<R: Read> Source<R> {
    /// A file of `len` bytes, to be read from its beginning.
    pub(super) fn new(inner: R, len: u64) -> Self {
        Self {
            inner,
            left: len,
            read: 0,
        }
    }

    /// The reader itself.
    pub(super) fn into_inner(self) -> R {
        self.inner
    }

    /// Appends the next `n` bytes, which the file is found to hold first.
    pub(super) fn append(&mut self, n: u64, to: &mut Vec<u8>) -> Result<()> {
        if n > self.left {
            bail!(
                "it is cut off: {n} bytes should follow the first {}, it has {}\n\
                 hint: fetch the file again",
                self.read,
                self.left
            );
        }
        let got = self.inner.by_ref().take(n).read_to_end(to)? as u64;
        self.read += got;
        self.left -= got;
        if got < n {
            bail!("it ended after {} bytes while it was read", self.read);
        }
        Ok(())
    }

    /// The next bytes of the header.
    fn next(&mut self, n: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.append_header(n, &mut bytes)?;
        Ok(bytes)
    }

    fn append_header(&mut self, n: u64, to: &mut Vec<u8>) -> Result<()> {
        if self.read.saturating_add(n) > MOST {
            bail!(
                "its header takes more than {MOST} bytes, more than that of any model\n\
                 hint: the file is damaged; fetch it again"
            );
        }
        self.append(n, to)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.next(N as u64)?;
        bytes.try_into().ok().context("it is cut off")
    }

    /// A number of four bytes.
    pub(super) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// A number of eight bytes.
    pub(super) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A text.
    pub(super) fn text(&mut self) -> Result<String> {
        let n = self.u64()?;
        let text = String::from_utf8(self.next(n)?);
        text.ok().context("a text in it is not UTF-8")
    }

    /// A value with the tag of its kind before it.
    pub(super) fn value(&mut self) -> Result<Value> {
        match self.u32()? {
            TEXT => Ok(Value::One(Json::String(self.text()?))),
            ARRAY => self.list().map(Value::List),
            kind => {
                let bytes = self.next(width(kind)?)?;
                number(kind, &bytes).map(Value::One)
            }
        }
    }

    fn list(&mut self) -> Result<List> {
        let kind = self.u32()?;
        let len = self.u64()?;
        let mut bytes = Vec::new();
        if kind == TEXT {
            for _ in 0..len {
                let n = self.u64()?;
                bytes.extend(n.to_le_bytes());
                self.append_header(n, &mut bytes)?;
            }
        } else {
            let n = len
                .checked_mul(width(kind)?)
                .context("a list is too long\nhint: the file is damaged; fetch it again")?;
            self.append_header(n, &mut bytes)?;
        }
        let len = usize::try_from(len)?;
        Ok(List { kind, len, bytes })
    }
}

/// Bytes of a number of this kind (`GGUFValueType` in the `gguf` package's `constants.py`).
fn width(kind: u32) -> Result<u64> {
    match kind {
        0 | 1 | 7 => Ok(1),
        2 | 3 => Ok(2),
        4..=6 => Ok(4),
        10..=12 => Ok(8),
        ARRAY => {
            bail!("a list of lists, which no model has\nhint: take another file of this model")
        }
        other => {
            bail!("a value of the unknown kind {other}\nhint: the file is damaged; fetch it again")
        }
    }
}

/// A number of this kind. One in single precision becomes the shortest decimal that means it, as
/// people and other files write it.
fn number(kind: u32, bytes: &[u8]) -> Result<Json> {
    let mut wide = [0; 8];
    let part = wide
        .get_mut(..bytes.len())
        .context("a number is too wide")?;
    part.copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    let float = |value: f64| Number::from_f64(value).map(Json::Number);
    let known = match kind {
        0 | 2 | 4 | 10 => Some(bits.into()),
        1 => Some((bits as i8).into()),
        3 => Some((bits as i16).into()),
        5 => Some((bits as i32).into()),
        11 => Some((bits.cast_signed()).into()),
        6 => {
            let text = f32::from_bits(bits as u32).to_string();
            text.parse().ok().and_then(float)
        }
        7 if bits < 2 => Some((bits == 1).into()),
        12 => float(f64::from_bits(bits)),
        _ => None,
    };
    known.with_context(|| format!("a value of kind {kind} means nothing"))
}

impl List {
    /// Its texts.
    pub(crate) fn texts(&self) -> Result<Vec<&str>> {
        if self.kind != TEXT && self.len > 0 {
            bail!("it is not a list of texts");
        }
        let mut rest = self.bytes.as_slice();
        let mut texts = Vec::new();
        for _ in 0..self.len {
            let (n, after) = rest.split_first_chunk::<8>().context("it is cut off")?;
            let n = usize::try_from(u64::from_le_bytes(*n))?;
            let (text, after) = after.split_at_checked(n).context("it is cut off")?;
            texts.push(std::str::from_utf8(text).context("a text in it is not UTF-8")?);
            rest = after;
        }
        Ok(texts)
    }

    /// Its numbers.
    pub(crate) fn numbers(&self) -> Result<Vec<f64>> {
        let width = usize::try_from(width(self.kind).context("it is not a list of numbers")?)?;
        let each = self.bytes.chunks_exact(width);
        each.map(|bytes| match number(self.kind, bytes)? {
            Json::Number(number) => number.as_f64().context("a number is too large"),
            _ => bail!("it is not a list of numbers"),
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(bytes: &[u8]) -> Result<Value> {
        Source::new(bytes, bytes.len() as u64).value()
    }

    fn tagged(tags: &[u32], rest: &[u8]) -> Vec<u8> {
        let tags = tags.iter().flat_map(|tag| tag.to_le_bytes());
        tags.chain(rest.iter().copied()).collect()
    }

    #[test]
    fn numbers_are_what_they_were_written_as() -> Result<()> {
        let one = |bytes: &[u8]| value(bytes);
        let eps = tagged(&[6], &1e-5f32.to_le_bytes());
        assert_eq!(one(&eps)?, Value::One(serde_json::json!(1e-5)));
        let below = tagged(&[5], &(-7i32).to_le_bytes());
        assert_eq!(one(&below)?, Value::One(serde_json::json!(-7)));
        assert_eq!(one(&tagged(&[7], &[1]))?, Value::One(true.into()));
        assert!(one(&tagged(&[7], &[2])).is_err());
        assert!(one(&tagged(&[6], &f32::NAN.to_le_bytes())).is_err());
        assert!(one(&tagged(&[13], &[0; 8])).is_err());
        Ok(())
    }

    #[test]
    fn lengths_are_not_believed() {
        for (tags, len) in [
            (&[TEXT][..], u64::MAX),
            (&[TEXT], 1 << 40),
            (&[ARRAY, 4], u64::MAX),
            (&[ARRAY, 12], 1 << 61),
            (&[ARRAY, TEXT], 1 << 30),
            (&[ARRAY, ARRAY], 1),
        ] {
            let bytes = tagged(tags, &[&len.to_le_bytes()[..], b"short"].concat());
            assert!(value(&bytes).is_err(), "{tags:?} {len}");
        }
    }

    #[test]
    fn lists_come_back() -> Result<()> {
        let mut bytes = tagged(&[ARRAY, TEXT], &2u64.to_le_bytes());
        for text in ["a b", "ü"] {
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        let Value::List(list) = value(&bytes)? else {
            bail!("no list")
        };
        assert_eq!(list.texts()?, ["a b", "ü"]);
        assert!(list.numbers().is_err());
        let bytes = tagged(&[ARRAY, 3, 2, 0], &[0xff, 0xff, 3, 0]);
        let Value::List(list) = value(&bytes)? else {
            bail!("no list")
        };
        assert_eq!(list.numbers()?, [-1.0, 3.0]);
        assert!(list.texts().is_err());
        Ok(())
    }
}
