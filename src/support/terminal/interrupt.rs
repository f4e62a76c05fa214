//! Ctrl-C and termination: the first asks the run to stop after its batch, the second ends it.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

use crate::support::terminal::exit::{Exit, Interrupted};

/// Whether the person has asked to stop. Clones share the answer.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens to the process's signals from now on; possible once per process.
    pub fn listen() -> anyhow::Result<Self> {
        let interrupt = Self::default();
        let asked = Arc::clone(&interrupt.0);
        ctrlc::set_handler(move || {
            if asked.swap(true, Ordering::SeqCst) {
                std::process::exit(i32::from(Exit::Interrupted.code()));
            }
            let note = "stopping after the current batch; press Ctrl-C again to stop at once\n";
            let _ = io::stderr().write_all(note.as_bytes());
        })
        .context("cannot listen to interruptions")?;
        Ok(interrupt)
    }

    /// Asks as a person would.
    #[cfg(test)]
    pub(crate) fn request(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Ends what is under way once the person has asked to stop; `then` says what becomes of it.
    ///
    /// # Errors
    ///
    /// That alone.
    pub fn check(&self, then: &'static str) -> Result<(), Interrupted> {
        if self.requested() {
            Err(Interrupted(then))
        } else {
            Ok(())
        }
    }

    /// True once the person has asked to stop.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
