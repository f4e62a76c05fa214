//! The pickle machine, as far as a checkpoint needs it: values are noted, nothing is called.
//!
//! Values lie in one list and refer to each other by place, so that neither deep nesting nor
//! repeated sharing costs more than the pickle's own length. The codes are those of protocol 2
//! (Python's `pickletools.py`), which `torch.save` writes.

use std::collections::HashMap;

use anyhow::{Context, Result, bail};

/// The place of a value.
pub(super) type Id = usize;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PickleValue {
    None,
    Bool,
    Float,
    Int(i64),
    Text(String),
    /// `module.name`, never called.
    Global(String),
    Tuple(Vec<Id>),
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    /// What a call would have made, had it been called: callee and arguments.
    Call(Id, Id),
    /// What the archive holds outside of the pickle.
    Persistent(Id),
}

/// What may be named. Everything else has no place in a checkpoint.
const KNOWN: [&str; 4] = [
    "collections.OrderedDict",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_parameter",
    "torch.Size",
];

/// A pickle that was read through.
pub(super) struct Pickle {
    values: Vec<PickleValue>,
    root: Id,
}

impl Pickle {
    /// Reads a pickle to its end.
    pub(super) fn read(bytes: &[u8]) -> Result<Self> {
        let mut machine = Machine {
            rest: bytes,
            values: vec![PickleValue::None, PickleValue::Bool, PickleValue::Float],
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
        };
        while machine.step()? {}
        let root = machine.pop()?;
        Ok(Self {
            values: machine.values,
            root,
        })
    }

    /// The value that the pickle is.
    pub(super) fn root(&self) -> &PickleValue {
        self.get(self.root)
    }

    /// The value at a place.
    pub(super) fn get(&self, id: Id) -> &PickleValue {
        self.values.get(id).unwrap_or(&PickleValue::None)
    }
}

const NONE: Id = 0;
const BOOL: Id = 1;
const FLOAT: Id = 2;

struct Machine<'a> {
    rest: &'a [u8],
    values: Vec<PickleValue>,
    stack: Vec<Id>,
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
}

impl<'a> Machine<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(n).context("it is cut off")?;
        self.rest = rest;
        Ok(taken)
    }

    /// A number of at most eight bytes, the lowest first.
    fn number(&mut self, n: usize) -> Result<u64> {
        let bytes = self.take(n)?.iter().rev();
        Ok(bytes.fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn line(&mut self) -> Result<String> {
        let end = self.rest.iter().position(|byte| *byte == b'\n');
        let line = self.take(end.context("it is cut off")?)?;
        self.take(1)?;
        Ok(String::from_utf8_lossy(line).into_owned())
    }

    fn push(&mut self, value: PickleValue) {
        self.stack.push(self.values.len());
        self.values.push(value);
    }

    fn pop(&mut self) -> Result<Id> {
        let above = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= above {
            bail!("it takes a value that is not there");
        }
        self.stack
            .pop()
            .context("it takes a value that is not there")
    }

    /// The values above the last mark.
    fn marked(&mut self) -> Result<Vec<Id>> {
        let mark = self.marks.pop().context("it goes back to no mark")?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    fn top(&mut self) -> Result<&mut PickleValue> {
        let top = *self
            .stack
            .last()
            .context("it changes a value that is not there")?;
        self.values.get_mut(top).context("no such value")
    }

    fn extend_dict(&mut self, items: &[Id]) -> Result<()> {
        let pairs = items.chunks_exact(2).map(|pair| (pair[0], pair[1]));
        match self.top()? {
            PickleValue::Dict(dict) if items.len().is_multiple_of(2) => dict.extend(pairs),
            _ => bail!("it sets items of what has none"),
        }
        Ok(())
    }

    fn extend_list(&mut self, items: Vec<Id>) -> Result<()> {
        match self.top()? {
            PickleValue::List(list) => list.extend(items),
            _ => bail!("it appends to what is no list"),
        }
        Ok(())
    }

    fn global(&mut self) -> Result<()> {
        let name = format!("{}.{}", self.line()?, self.line()?);
        let storage = name.starts_with("torch.") && name.ends_with("Storage");
        if !storage && !KNOWN.contains(&name.as_str()) {
            bail!(
                "it names `{}`, which no checkpoint needs; nothing was executed\n\
                 hint: do not trust this file; use a safetensors version of the checkpoint",
                name.escape_debug()
            );
        }
        self.push(PickleValue::Global(name));
        Ok(())
    }

    fn reduce(&mut self) -> Result<()> {
        let (arguments, callee) = (self.pop()?, self.pop()?);
        match self.values.get(callee) {
            Some(PickleValue::Global(name)) if name == "collections.OrderedDict" => {
                self.push(PickleValue::Dict(Vec::new()));
            }
            Some(PickleValue::Global(_)) => self.push(PickleValue::Call(callee, arguments)),
            _ => bail!("it calls what is no function"),
        }
        Ok(())
    }

    fn remember(&mut self, key: u64) -> Result<()> {
        let top = *self.stack.last().context("it remembers nothing")?;
        self.memo.insert(u32::try_from(key)?, top);
        Ok(())
    }

    fn recall(&mut self, key: u64) -> Result<()> {
        let known = self.memo.get(&u32::try_from(key)?);
        self.stack
            .push(*known.context("it recalls what it never saw")?);
        Ok(())
    }

    fn tuple(&mut self, n: usize) -> Result<()> {
        let mut items = (0..n).map(|_| self.pop()).collect::<Result<Vec<Id>>>()?;
        items.reverse();
        self.push(PickleValue::Tuple(items));
        Ok(())
    }

    /// One code; false at the end.
    fn step(&mut self) -> Result<bool> {
        let code = self.number(1)? as u8;
        match code {
            0x80 => drop(self.take(1)?),
            b'.' => return Ok(false),
            b'(' => self.marks.push(self.stack.len()),
            b'N' => self.stack.push(NONE),
            0x88 | 0x89 => self.stack.push(BOOL),
            b'K' => self.int(1)?,
            b'M' => self.int(2)?,
            b'J' => {
                let number = self.number(4)? as u32;
                self.push(PickleValue::Int(i64::from(number.cast_signed())));
            }
            0x8a => {
                let n = self.number(1)? as usize;
                if n > 8 {
                    bail!("it holds a number of {n} bytes");
                }
                self.int(n)?;
            }
            b'G' => {
                self.take(8)?;
                self.stack.push(FLOAT);
            }
            b'X' => {
                let n = self.number(4)? as usize;
                let text = std::str::from_utf8(self.take(n)?).context("a text is not UTF-8")?;
                self.push(PickleValue::Text(text.to_owned()));
            }
            b'c' => self.global()?,
            b'R' => self.reduce()?,
            b'Q' => {
                let id = self.pop()?;
                self.push(PickleValue::Persistent(id));
            }
            b'q' | b'r' => {
                let key = self.number(if code == b'q' { 1 } else { 4 })?;
                self.remember(key)?;
            }
            b'h' | b'j' => {
                let key = self.number(if code == b'h' { 1 } else { 4 })?;
                self.recall(key)?;
            }
            _ => self.container(code)?,
        }
        Ok(true)
    }

    /// The codes that make and fill containers.
    fn container(&mut self, code: u8) -> Result<()> {
        match code {
            b')' => self.push(PickleValue::Tuple(Vec::new())),
            0x85 => self.tuple(1)?,
            0x86 => self.tuple(2)?,
            0x87 => self.tuple(3)?,
            b't' => {
                let items = self.marked()?;
                self.push(PickleValue::Tuple(items));
            }
            b']' => self.push(PickleValue::List(Vec::new())),
            b'a' => {
                let item = self.pop()?;
                self.extend_list(vec![item])?;
            }
            b'e' => {
                let items = self.marked()?;
                self.extend_list(items)?;
            }
            b'}' => self.push(PickleValue::Dict(Vec::new())),
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.extend_dict(&[key, value])?;
            }
            b'u' => {
                let items = self.marked()?;
                self.extend_dict(&items)?;
            }
            // The attributes of a state dict are notes on versions.
            b'b' => drop(self.pop()?),
            _ => bail!("it holds the code {code:#04x}, which torch.save does not write"),
        }
        Ok(())
    }

    fn int(&mut self, n: usize) -> Result<()> {
        let number = i64::try_from(self.number(n)?).context("a number is too large")?;
        self.push(PickleValue::Int(number));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_of_anything_else_is_an_error_that_names_it() {
        let error = Pickle::read(b"\x80\x02cposix\nsystem\nX\x02\x00\x00\x00ls\x85R.");
        let error = error.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(
            error.contains("`posix.system`") && error.contains("nothing was executed"),
            "{error}"
        );
    }

    #[test]
    fn nesting_and_sharing_cost_no_more_than_their_length() {
        let deep: Vec<u8> = [b"\x80\x02)".to_vec(), vec![0x85; 1 << 20], b".".to_vec()].concat();
        assert!(Pickle::read(&deep).is_ok());
        // Each round doubles what the last one said.
        let round = b"q\x00h\x00\x86".repeat(1 << 16);
        let shared = [b"\x80\x02)".as_slice(), &round, b"."].concat();
        assert!(Pickle::read(&shared).is_ok());
    }

    #[test]
    fn what_is_cut_off_or_out_of_place_is_an_error() {
        let long: &[u8] = b"X\xff\xff\xff\xffa";
        for bad in [
            long,
            b"",
            b"R.",
            b"h\x07.",
            b"t.",
            b"(0.",
            b"\x8a\x09",
            b"]u.",
            b"a.",
        ] {
            assert!(Pickle::read(bad).is_err(), "{bad:?}");
        }
    }
}
