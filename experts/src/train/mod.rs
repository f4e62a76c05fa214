//! Training: from ready examples to weights. Files and data sets stay above this crate.

mod adamw;
mod checkpoint;
mod given;
mod lora;
mod observer;
mod packing;
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
pub use observer::{MARKS, Observation, Observer};
pub use parameters::Parameters;
pub use preference::{Preference, PreferenceLoss};
pub use schedule::Schedule;
pub use sequence::{Sequence, Target};
pub use student::{Batch, Student};
pub use tape::Tape;
pub use trainer::{Loss, StepReport, Trainer, in_parallel, on_device};
pub use weight_names::weight_names;
