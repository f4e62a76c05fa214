//! The most memory the program held during a piece of work, where the system tells.

use anyhow::Result;

use crate::training::encoders::encoder_comparison::EncoderRow;

/// Measures a row and notes the peak of the memory held meanwhile.
pub(super) fn watched(measure: impl FnOnce() -> Result<EncoderRow>) -> Result<EncoderRow> {
    // Where it is not forgotten, the peak is that of the whole run, and would be told wrongly for a
    // later row.
    let fresh = forget_peak();
    let row = measure()?;
    Ok(EncoderRow {
        peak_memory: peak().filter(|_| fresh),
        ..row
    })
}

/// Forgets the peak so far; Linux does so when asked. Whether it did.
pub fn forget_peak() -> bool {
    std::fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// The peak of the resident memory in bytes.
pub fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes * 1024)
}
