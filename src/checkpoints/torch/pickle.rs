//! Pickle interpreter for checkpoints: it records calls and executes none.
//!
//! Values are stored in one list and refer to each other by index, so memory is linear in the
//! length of the pickle, even with deep nesting or repeated sharing. Supports the opcodes of
//! protocol 2 (Python's `pickletools.py`) that `torch.save` writes.

use std::collections::HashMap;

use anyhow::{Context, Result, bail};

/// Index of a value.
pub(super) type ValueId = usize;

/// A pickled value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PickleValue {
    None,
    Bool,
    Float,
    Int(i64),
    Text(String),
    /// `module.name`, never called.
    Global(String),
    Tuple(Vec<ValueId>),
    List(Vec<ValueId>),
    Dict(Vec<(ValueId, ValueId)>),
    /// A call that was recorded, not executed: callee and arguments.
    Call(ValueId, ValueId),
    /// Reference to a storage outside the pickle.
    Persistent(ValueId),
}

/// Allowed globals in addition to storage types. No checkpoint needs others.
const ALLOWED_GLOBALS: [&str; 4] = [
    "collections.OrderedDict",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_parameter",
    "torch.Size",
];

/// A parsed pickle.
pub(super) struct Pickle {
    values: Vec<PickleValue>,
    root: ValueId,
}

impl Pickle {
    /// Parses a pickle.
    pub(super) fn read(bytes: &[u8]) -> Result<Self> {
        let mut machine = PickleMachine {
            rest: bytes,
            values: vec![PickleValue::None, PickleValue::Bool, PickleValue::Float],
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
        };
        while machine.step()? {}
        let root = machine.pop()?;
        Ok(Self { values: machine.values, root })
    }

    /// Returns the root value.
    pub(super) fn root(&self) -> &PickleValue {
        self.get(self.root)
    }

    /// Returns a value by index.
    pub(super) fn get(&self, id: ValueId) -> &PickleValue {
        self.values.get(id).unwrap_or(&PickleValue::None)
    }
}

/// Indices of the values without content, which are stored once.
const NONE: ValueId = 0;
const BOOL: ValueId = 1;
const FLOAT: ValueId = 2;

/// State of the interpreter.
struct PickleMachine<'a> {
    rest: &'a [u8],
    values: Vec<PickleValue>,
    stack: Vec<ValueId>,
    marks: Vec<usize>,
    memo: HashMap<u32, ValueId>,
}

impl<'a> PickleMachine<'a> {
    fn read_bytes(&mut self, n: usize) -> Result<&'a [u8]> {
        let (bytes, rest) =
            self.rest.split_at_checked(n).context("unexpected end of the pickle")?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Reads a little-endian number of at most eight bytes.
    fn read_uint(&mut self, n: usize) -> Result<u64> {
        let bytes = self.read_bytes(n)?.iter().rev();
        Ok(bytes.fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn read_line(&mut self) -> Result<String> {
        let end = self.rest.iter().position(|byte| *byte == b'\n');
        let line = self.read_bytes(end.context("unexpected end of the pickle")?)?;
        self.read_bytes(1)?;
        Ok(String::from_utf8_lossy(line).into_owned())
    }

    fn push(&mut self, value: PickleValue) {
        self.stack.push(self.values.len());
        self.values.push(value);
    }

    fn pop(&mut self) -> Result<ValueId> {
        let bottom = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= bottom {
            bail!("stack underflow");
        }
        self.stack.pop().context("stack underflow")
    }

    /// Removes the values above the last mark from the stack.
    fn pop_to_mark(&mut self) -> Result<Vec<ValueId>> {
        let mark = self.marks.pop().context("opcode without a mark")?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    fn top(&mut self) -> Result<&mut PickleValue> {
        let top = *self.stack.last().context("stack underflow")?;
        self.values.get_mut(top).context("no such value")
    }

    fn extend_dict(&mut self, items: &[ValueId]) -> Result<()> {
        let pairs = items.chunks_exact(2).map(|pair| (pair[0], pair[1]));
        match self.top()? {
            PickleValue::Dict(dict) if items.len().is_multiple_of(2) => dict.extend(pairs),
            _ => bail!("SETITEM expects a dict and pairs"),
        }
        Ok(())
    }

    fn extend_list(&mut self, items: Vec<ValueId>) -> Result<()> {
        match self.top()? {
            PickleValue::List(list) => list.extend(items),
            _ => bail!("APPEND expects a list"),
        }
        Ok(())
    }

    fn push_global(&mut self) -> Result<()> {
        let name = format!("{}.{}", self.read_line()?, self.read_line()?);
        let is_storage = name.starts_with("torch.") && name.ends_with("Storage");
        if !is_storage && !ALLOWED_GLOBALS.contains(&name.as_str()) {
            bail!(
                "disallowed global `{}`; nothing was executed\n\
                 hint: do not trust this file; use a safetensors version of the checkpoint",
                name.escape_debug()
            );
        }
        self.push(PickleValue::Global(name));
        Ok(())
    }

    fn push_call(&mut self) -> Result<()> {
        let (arguments, callee) = (self.pop()?, self.pop()?);
        match self.values.get(callee) {
            Some(PickleValue::Global(name)) if name == "collections.OrderedDict" => {
                self.push(PickleValue::Dict(Vec::new()));
            }
            Some(PickleValue::Global(_)) => self.push(PickleValue::Call(callee, arguments)),
            _ => bail!("REDUCE expects a function"),
        }
        Ok(())
    }

    fn memo_put(&mut self, key: u64) -> Result<()> {
        let top = *self.stack.last().context("stack underflow")?;
        self.memo.insert(u32::try_from(key)?, top);
        Ok(())
    }

    fn memo_get(&mut self, key: u64) -> Result<()> {
        let value = self.memo.get(&u32::try_from(key)?);
        self.stack.push(*value.context("GET of an unset memo entry")?);
        Ok(())
    }

    fn push_tuple(&mut self, n: usize) -> Result<()> {
        let mut items = (0..n).map(|_| self.pop()).collect::<Result<Vec<ValueId>>>()?;
        items.reverse();
        self.push(PickleValue::Tuple(items));
        Ok(())
    }

    /// Executes one opcode. Returns false at the end.
    fn step(&mut self) -> Result<bool> {
        let opcode = self.read_uint(1)? as u8;
        match opcode {
            0x80 => drop(self.read_bytes(1)?),
            b'.' => return Ok(false),
            b'(' => self.marks.push(self.stack.len()),
            b'N' => self.stack.push(NONE),
            0x88 | 0x89 => self.stack.push(BOOL),
            b'K' => self.push_int(1)?,
            b'M' => self.push_int(2)?,
            b'J' => {
                let number = self.read_uint(4)? as u32;
                self.push(PickleValue::Int(i64::from(number.cast_signed())));
            }
            0x8a => {
                let n = self.read_uint(1)? as usize;
                if n > 8 {
                    bail!("number of {n} bytes, expected at most 8");
                }
                self.push_int(n)?;
            }
            b'G' => {
                self.read_bytes(8)?;
                self.stack.push(FLOAT);
            }
            b'X' => {
                let n = self.read_uint(4)? as usize;
                let text =
                    std::str::from_utf8(self.read_bytes(n)?).context("a string is not UTF-8")?;
                self.push(PickleValue::Text(text.to_owned()));
            }
            b'c' => self.push_global()?,
            b'R' => self.push_call()?,
            b'Q' => {
                let id = self.pop()?;
                self.push(PickleValue::Persistent(id));
            }
            b'q' | b'r' => {
                let key = self.read_uint(if opcode == b'q' { 1 } else { 4 })?;
                self.memo_put(key)?;
            }
            b'h' | b'j' => {
                let key = self.read_uint(if opcode == b'h' { 1 } else { 4 })?;
                self.memo_get(key)?;
            }
            _ => self.step_container(opcode)?,
        }
        Ok(true)
    }

    /// Executes the opcodes that create and fill containers.
    fn step_container(&mut self, opcode: u8) -> Result<()> {
        match opcode {
            b')' => self.push(PickleValue::Tuple(Vec::new())),
            0x85 => self.push_tuple(1)?,
            0x86 => self.push_tuple(2)?,
            0x87 => self.push_tuple(3)?,
            b't' => {
                let items = self.pop_to_mark()?;
                self.push(PickleValue::Tuple(items));
            }
            b']' => self.push(PickleValue::List(Vec::new())),
            b'a' => {
                let item = self.pop()?;
                self.extend_list(vec![item])?;
            }
            b'e' => {
                let items = self.pop_to_mark()?;
                self.extend_list(items)?;
            }
            b'}' => self.push(PickleValue::Dict(Vec::new())),
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.extend_dict(&[key, value])?;
            }
            b'u' => {
                let items = self.pop_to_mark()?;
                self.extend_dict(&items)?;
            }
            // The attributes of a state dict contain only version numbers.
            b'b' => drop(self.pop()?),
            _ => bail!("unsupported opcode {opcode:#04x}"),
        }
        Ok(())
    }

    fn push_int(&mut self, n: usize) -> Result<()> {
        let number = i64::try_from(self.read_uint(n)?).context("a number is too large")?;
        self.push(PickleValue::Int(number));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disallowed_global_is_rejected_by_name() {
        let error = Pickle::read(b"\x80\x02cposix\nsystem\nX\x02\x00\x00\x00ls\x85R.");
        let error = error.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(
            error.contains("`posix.system`") && error.contains("nothing was executed"),
            "{error}"
        );
    }

    #[test]
    fn nesting_and_sharing_take_linear_memory() {
        let deep: Vec<u8> = [b"\x80\x02)".to_vec(), vec![0x85; 1 << 20], b".".to_vec()].concat();
        assert!(Pickle::read(&deep).is_ok());
        // Each round doubles the expanded size.
        let round = b"q\x00h\x00\x86".repeat(1 << 16);
        let shared = [b"\x80\x02)".as_slice(), &round, b"."].concat();
        assert!(Pickle::read(&shared).is_ok());
    }

    #[test]
    fn truncated_or_malformed_pickle_is_rejected() {
        let long: &[u8] = b"X\xff\xff\xff\xffa";
        for malformed in [long, b"", b"R.", b"h\x07.", b"t.", b"(0.", b"\x8a\x09", b"]u.", b"a."] {
            assert!(Pickle::read(malformed).is_err(), "{malformed:?}");
        }
    }
}
