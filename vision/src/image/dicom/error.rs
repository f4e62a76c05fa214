//! Errors of DICOM objects.

use super::super::error::DecodeError;
use super::super::format::Format;

/// The error of an object that violates the standard. `what` must not quote the object: it may name a patient.
pub(super) fn damaged(what: impl Into<String>) -> DecodeError {
    DecodeError::Damaged {
        format: Format::Dicom,
        what: what.into(),
    }
}

/// The error of an object that is valid but not supported. `what` must not quote the object.
pub(super) fn unsupported(what: impl Into<String>) -> DecodeError {
    DecodeError::Unsupported {
        format: Format::Dicom,
        what: what.into(),
    }
}
