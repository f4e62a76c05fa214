//! Removes a torn last line: a line without its line break, left by a killed writer.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Removes a torn last line from a file and returns the length of the line in bytes.
pub(super) fn truncate_torn_line(file: &mut File) -> io::Result<u64> {
    const BLOCK: u64 = 1 << 16;
    let length = file.metadata()?.len();
    let mut end = length;
    let mut block = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(start))?;
        block.clear();
        Read::by_ref(file).take(end - start).read_to_end(&mut block)?;
        if let Some(last) = block.iter().rposition(|byte| *byte == b'\n') {
            end = start + last as u64 + 1;
            break;
        }
        end = start;
    }
    if end < length {
        file.set_len(end)?;
    }
    Ok(length - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_lines_are_kept() {
        let long = "x".repeat(200_000);
        for (text, kept) in [
            (String::new(), 0),
            ("a\nb\n".to_owned(), 4),
            ("a\nb".to_owned(), 2),
            ("torn".to_owned(), 0),
            (format!("a\n{long}"), 2),
            (format!("{long}\n{long}"), 200_001),
        ] {
            let mut file = tempfile::tempfile().unwrap();
            io::Write::write_all(&mut file, text.as_bytes()).unwrap();
            assert_eq!(truncate_torn_line(&mut file).unwrap(), (text.len() - kept) as u64);
            assert_eq!(file.metadata().unwrap().len(), kept as u64);
        }
    }
}
