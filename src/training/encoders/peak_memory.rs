//! Peak resident memory during a task (Linux only).

use anyhow::Result;

use crate::training::encoders::encoder_comparison::EncoderRow;

/// Calls `measure` and adds the peak memory of the call to the row.
pub(super) fn measure_peak(measure: impl FnOnce() -> Result<EncoderRow>) -> Result<EncoderRow> {
    // Without a reset, the peak would include earlier rows.
    let was_reset = reset_peak();
    let row = measure()?;
    Ok(EncoderRow { peak_memory: peak().filter(|_| was_reset), ..row })
}

/// Resets the recorded peak. Returns true on success, always false on systems other than Linux.
pub fn reset_peak() -> bool {
    std::fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// Returns the peak resident memory in bytes; `None` on systems other than Linux.
pub fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes * 1024)
}
