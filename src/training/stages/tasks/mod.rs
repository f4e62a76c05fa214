//! Training tasks: their examples, their losses, and the caches that they read.

pub(crate) mod attribute_task;
pub(crate) mod dpo_task;
pub(crate) mod epoch_sampler;
pub(crate) mod evaluation_set;
pub(crate) mod own_judging;
pub(crate) mod preference_cache;
pub(crate) mod preference_source;
pub(crate) mod sft_task;
pub(crate) mod training_task;
