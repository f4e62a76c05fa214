//! The agreement that the administrator sees, computed once for the same ratings.

use std::sync::Arc;

use anyhow::Result;
use tokio::sync::Mutex;

use crate::annotation::results::study_agreement::StudyAgreement;

/// The last computed agreement. The lock is held while another one is computed, so that several visits take
/// one thread, and the others are left for the ratings.
#[derive(Debug, Default)]
pub(super) struct AgreementCache(Mutex<Option<CachedAgreement>>);

#[derive(Debug)]
struct CachedAgreement {
    /// Number of entries of the journal.
    entries: u64,
    agreement: Arc<StudyAgreement>,
}

impl AgreementCache {
    /// Returns the agreement after a number of entries of the journal. `compute` computes it.
    ///
    /// # Errors
    /// The computation panicked.
    pub(super) async fn get(
        &self,
        entries: u64,
        compute: impl FnOnce() -> StudyAgreement + Send + 'static,
    ) -> Result<Arc<StudyAgreement>> {
        let mut cached = self.0.lock().await;
        if let Some(cached) = cached.as_ref().filter(|cached| cached.entries == entries) {
            return Ok(Arc::clone(&cached.agreement));
        }
        let agreement = Arc::new(tokio::task::spawn_blocking(compute).await?);
        *cached = Some(CachedAgreement { entries, agreement: Arc::clone(&agreement) });
        Ok(agreement)
    }
}
