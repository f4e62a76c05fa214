//! Training: from ready examples to weights. Files and data sets stay above this crate.

mod adamw;
mod checkpoint;
mod given;
mod lora;
mod loss;
mod observer;
mod packing;
mod parallel;
mod parameters;
mod preference;
mod schedule;
mod sequence;
mod student;
mod tape;
mod trainer;
mod weight_names;

pub use adamw::{AdamW, AdamWConfig};
pub use checkpoint::{load_checkpoint, save_checkpoint};
pub use given::Given;
pub use lora::Lora;
pub use loss::{Hits, Loss};
pub use observer::{MARKS, Observation, Observer};
pub use parallel::{in_parallel, on_device};
pub use parameters::Parameters;
pub use preference::{Preference, PreferenceLoss};
pub use schedule::Schedule;
pub use sequence::{Sequence, Target};
pub use student::{Batch, Student};
pub use tape::Tape;
pub use trainer::{StepReport, Trainer};
pub use weight_names::weight_names;
