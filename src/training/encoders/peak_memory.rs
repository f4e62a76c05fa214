//! Peak resident memory during a task (Linux only).

use anyhow::Result;

use crate::training::encoders::encoder_comparison::EncoderRow;

/// Measures a row and records the peak memory meanwhile.
pub(super) fn watched(measure: impl FnOnce() -> Result<EncoderRow>) -> Result<EncoderRow> {
    // Without a reset, the peak is that of the whole run and would be wrong for later rows.
    let fresh = forget_peak();
    let row = measure()?;
    Ok(EncoderRow {
        peak_memory: peak().filter(|_| fresh),
        ..row
    })
}

/// Resets the recorded peak. Returns true on success, which only Linux supports.
pub fn forget_peak() -> bool {
    std::fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// Returns the peak resident memory in bytes.
pub fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes * 1024)
}
