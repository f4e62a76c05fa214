//! Knowledge completion of judges: the passages of an index are the evidence for their questions.

mod asked_evidence;
mod judge_knowledge;
mod knowledge_rounds;

pub use asked_evidence::AskedEvidence;
pub use judge_knowledge::{JudgeKnowledge, KnowledgeSettings};
pub use knowledge_rounds::KnowledgeRounds;
