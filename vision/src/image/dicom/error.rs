//! Errors of DICOM objects.

use super::super::error::DecodeError;
use super::super::format::FileFormat;

/// Returns the error for an object that violates the standard.
///
/// `problem` must not quote the object, which may contain the name of a patient.
pub(super) fn damaged(problem: impl Into<String>) -> DecodeError {
    DecodeError::Damaged { format: FileFormat::Dicom, problem: problem.into() }
}

/// Returns the error for an object that is valid but not supported.
///
/// `problem` must not quote the object.
pub(super) fn unsupported(problem: impl Into<String>) -> DecodeError {
    DecodeError::UnsupportedVariant { format: FileFormat::Dicom, problem: problem.into() }
}
