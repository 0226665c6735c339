//! Dry runs that can still be confirmed, in memory.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pml_model::{CapabilityId, Principal};
use serde_json::value::RawValue;

use crate::catalogue::ToolSnapshot;
use crate::execute::new_run_id;
use crate::plan::{Plan, PlannedTool};
use crate::planning::{RunRequest, Work};
use crate::problem::{ErrorCode, Problem};

/// 1 h: how long a dry run can be confirmed.
const KEPT: Duration = Duration::from_secs(60 * 60);
/// The dry runs of one principal that are kept; the oldest go first.
const MOST_OF_PRINCIPAL: usize = 100;
/// All dry runs that are kept.
const MOST: usize = 1_000;

/// The dry runs that can be confirmed.
#[derive(Default)]
pub struct KeptDryRuns {
    kept: Mutex<VecDeque<KeptDryRun>>,
}

/// The request of a dry run.
#[derive(Clone)]
pub(crate) struct KeptDryRun {
    id: String,
    principal: Principal,
    until: Instant,
    pub(crate) intent: String,
    pub(crate) work: Work,
    pub(crate) arguments: Box<RawValue>,
    pub(crate) capability: Option<CapabilityId>,
    pub(crate) timeout: Option<Duration>,
    tools: Vec<PlannedTool>,
}

impl KeptDryRuns {
    /// Keeps a request, and returns the id to confirm it with.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub(crate) fn keep(&self, asked: &RunRequest, plan: &Plan) -> Result<String, Problem> {
        let id = new_run_id()?.to_string().replacen("run_", "dry_", 1);
        let mut kept = self.kept.lock();
        let now = Instant::now();
        kept.retain(|one| one.until > now);
        let of_principal = |one: &KeptDryRun| one.principal == asked.principal;
        if kept.iter().filter(|one| of_principal(one)).count() >= MOST_OF_PRINCIPAL
            && let Some(oldest) = kept.iter().position(of_principal)
        {
            kept.remove(oldest);
        }
        if kept.len() >= MOST {
            kept.pop_front();
        }
        kept.push_back(KeptDryRun {
            id: id.clone(),
            principal: asked.principal.clone(),
            until: now + KEPT,
            intent: asked.intent.clone(),
            work: asked.work.clone(),
            arguments: asked.arguments.clone(),
            capability: asked.capability.clone(),
            timeout: asked.timeout,
            tools: plan.tools.clone(),
        });
        Ok(id)
    }

    /// The request of a dry run of this principal.
    ///
    /// # Errors
    /// There is none, or no longer. That of another principal looks exactly like one that does not exist.
    pub(crate) fn take(&self, principal: &Principal, id: &str) -> Result<KeptDryRun, Problem> {
        let kept = self.kept.lock();
        let is_it =
            |one: &&KeptDryRun| one.id == id && one.principal == *principal && one.until > Instant::now();
        kept.iter().find(is_it).cloned().ok_or_else(|| {
            let id = pml_model::name::printable(id);
            Problem::new(ErrorCode::NotFound, format!("there is no dry run `{id}` to confirm"))
                .hint("dry runs are kept for one hour, by the process that made them; make it again")
        })
    }
}

impl KeptDryRun {
    /// Refuses the confirmation if a tool is no longer what it was.
    ///
    /// # Errors
    /// A tool has another definition, or is gone.
    pub(crate) fn check_tools(&self, snapshot: &ToolSnapshot) -> Result<(), Problem> {
        let mut changed = Vec::new();
        for planned in &self.tools {
            match snapshot.tool(&planned.id) {
                Ok(tool) if tool.definition.digest == planned.digest => {}
                Ok(tool) => changed.push(format!(
                    "`{}` had definition {} and has {} now",
                    planned.id,
                    planned.digest.short(),
                    tool.definition.digest.short()
                )),
                Err(_) => changed.push(format!("`{}` is gone or held back", planned.id)),
            }
        }
        if changed.is_empty() {
            return Ok(());
        }
        let text = format!("the tools are not those of the dry run: {}", changed.join("; "));
        Err(Problem::new(ErrorCode::ToolChanged, text)
            .hint("`pml list --changes` shows how they changed; make the dry run again and confirm that"))
    }
}
