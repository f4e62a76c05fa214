//! Damaged lines of a records file: they do not count, and the user is told where they are.

use serde::Serialize;

/// Maximum number of damaged lines that are described; the others are only counted.
const MAX_DESCRIBED: usize = 100;
/// Maximum number of damaged lines in a message.
const MAX_IN_MESSAGE: usize = 5;

/// A line of records that was changed after it was written, or is no record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DamagedLine {
    /// Number of the line, from 1.
    pub line: u64,
    /// Id of its case, if it can still be read. The damage may have changed it.
    pub case: Option<String>,
    /// What is wrong.
    pub problem: String,
}

/// The damaged lines of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    described: Vec<DamagedLine>,
    count: u64,
}

impl DamagedLine {
    /// Describes a damaged line.
    pub fn new(line: u64, bytes: &[u8], problem: impl Into<String>) -> Self {
        Self { line, case: find_case(bytes), problem: problem.into() }
    }

    /// Describes the line: number, case and problem.
    pub fn describe(&self) -> String {
        let case = self.case.as_ref().map_or(String::new(), |case| format!(" (case {case})"));
        format!("line {}{case}: {}", self.line, self.problem)
    }
}

impl Damage {
    /// Adds a line.
    pub fn add(&mut self, line: DamagedLine) {
        self.count += 1;
        if self.described.len() < MAX_DESCRIBED {
            self.described.push(line);
        }
    }

    /// Returns the number of damaged lines.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns true if no line is damaged.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the first damaged lines.
    pub fn described(&self) -> &[DamagedLine] {
        &self.described
    }

    /// Describes the first damaged lines and counts the others.
    pub fn describe(&self) -> String {
        let shown = self.described.iter().take(MAX_IN_MESSAGE);
        let mut parts: Vec<String> = shown.map(DamagedLine::describe).collect();
        let others = self.count - parts.len() as u64;
        if others > 0 {
            parts.push(format!("and {others} more"));
        }
        parts.join("; ")
    }
}

/// Finds the id of the case in the bytes of a damaged line.
fn find_case(bytes: &[u8]) -> Option<String> {
    const FIELD: &[u8] = b"\"case\":";
    let start = bytes.windows(FIELD.len()).position(|window| window == FIELD)? + FIELD.len();
    let value = serde_json::Deserializer::from_slice(bytes.get(start..)?);
    value.into_iter::<String>().next()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_of_a_damaged_line_is_found() {
        let case = |bytes: &[u8]| DamagedLine::new(1, bytes, "x").case;
        assert_eq!(case(b"{\"schema\":1,\"case\":\"a\\\"b\",\"pa"), Some("a\"b".to_owned()));
        assert_eq!(case(b"{\"schema\":1,\"case\":\"a"), None);
        assert_eq!(case(b"{\"schema\":1,\"case\":null,"), None);
        assert_eq!(case(b"\0\0\xff"), None);
    }

    #[test]
    fn many_damaged_lines_are_counted() {
        let mut damage = Damage::default();
        (1..=300).for_each(|line| damage.add(DamagedLine::new(line, b"", "x")));
        assert_eq!((damage.count(), damage.described().len()), (300, MAX_DESCRIBED));
        assert!(damage.describe().ends_with("line 5: x; and 295 more"), "{}", damage.describe());
    }
}
