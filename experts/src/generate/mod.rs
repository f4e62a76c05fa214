//! Constrained decoding of a batch of texts. Every text has the format of its task.
//!
//! Literals are fed to the model. Free texts are generated greedily up to a line break or the token
//! budget; with several samples, they split where several tokens are probable. A score is chosen among
//! six tokens. With knowledge completion, a question in a free text is followed by evidence, which is
//! fed like a literal. Texts of different members, presentation orders and cases share a batch, and a
//! text does not depend on the others in the batch.

mod engine;
mod free_answer;
mod knowledge;
mod memory;
mod opening;
mod opening_in_progress;
mod panel_decoder;
mod prefix_cache;
mod sampled_tokens;
mod sampler;
mod task;
mod task_queue;
mod task_tokens;
mod tasks_in_progress;
mod text_alternative;
mod text_generation;
mod token_counts;

pub use engine::Engine;
pub use free_answer::{AnswerQueue, AnswerTask, FinishedAnswer, FreeAnswer};
pub use knowledge::{EvidencePassage, KnowledgeCompletion, KnowledgeLimits, KnowledgeSource};
pub use opening::{Opening, WrittenOpening};
pub use prefix_cache::PrefixCache;
pub use task::{GenerationSettings, GenerationTask, ImageTokens};
pub use task_queue::TaskQueue;
pub use tasks_in_progress::FinishedTask;
pub use text_alternative::{TaskTexts, TextAlternative};
pub use token_counts::TokenCounts;
