//! Numbers of zero, which a configuration need not state.

/// Returns true for zero.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) fn is_zero(value: &f64) -> bool {
    *value <= 0.0
}
