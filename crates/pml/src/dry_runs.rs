//! Dry runs that can still be confirmed, in memory.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pml_model::json::Fields;
use pml_model::name::{printable, truncate_text};
use pml_model::{CapabilityId, Definition, Digest, Principal, ToolId};
use serde_json::value::RawValue;

use crate::catalogue::{CatalogueTool, ToolSnapshot, difference};
use crate::execute::{EarlierRead, new_run_id};
use crate::plan::{ExploredChoice, PlannedTool};
use crate::planning::{RunRequest, Work};
use crate::problem::{ErrorCode, Problem};

/// 1 h: how long a dry run can be confirmed.
const KEPT: Duration = Duration::from_secs(60 * 60);
/// The dry runs of one principal that are kept; the oldest go first.
const MOST_OF_PRINCIPAL: usize = 100;
/// All dry runs that are kept.
const MOST: usize = 1_000;
/// 4 MiB: the reads of one dry run that are kept; the first ones count most, since writes make later ones useless.
const READ_BYTES: usize = 4 << 20;
/// 32 MiB: the reads of all dry runs that are kept; the oldest go first, and the dry runs stay.
const ALL_READ_BYTES: usize = 32 << 20;
/// The changed tools that a refused confirmation shows.
const MAX_CHANGES: usize = 4;
/// The lines of one tool's difference that it shows.
const MAX_DIFFERENCE_LINES: usize = 30;
/// The characters of one line that it shows.
const MAX_LINE_CHARACTERS: usize = 200;

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
    /// The reads for the first run that confirms it; later ones read anew.
    pub(crate) reads: Option<KeptReads>,
    /// The path of an exploration that it is, if it is one.
    pub(crate) explored: Option<Box<ExploredChoice>>,
    tools: Vec<KeptTool>,
    /// The arguments that were made up: whoever confirms it has to give them.
    made_up: BTreeSet<String>,
}

/// A tool that a dry run was planned with.
#[derive(Clone)]
struct KeptTool {
    id: ToolId,
    digest: Digest,
    /// The definition, unless the tool changed while the dry run went on.
    definition: Option<Arc<Definition>>,
}

/// The reads that a dry run made.
#[derive(Debug, Clone)]
pub(crate) struct KeptReads {
    /// The number of cache invalidations when they were made.
    pub(crate) generation: i64,
    pub(crate) reads: Vec<EarlierRead>,
}

impl KeptReads {
    fn size_bytes(&self) -> usize {
        self.reads.iter().map(EarlierRead::size_bytes).sum()
    }

    /// Drops the reads that exceed what is kept of one dry run.
    fn truncate(&mut self) {
        let mut bytes = 0;
        self.reads.retain(|read| {
            bytes += read.size_bytes();
            bytes <= READ_BYTES
        });
    }
}

impl KeptDryRuns {
    /// Keeps a request with the reads that were made for it, and returns the id to confirm it with.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub(crate) fn keep(
        &self,
        asked: &RunRequest,
        (planned, snapshot): (&[PlannedTool], &ToolSnapshot),
        mut reads: Option<KeptReads>,
        now: Instant,
    ) -> Result<String, Problem> {
        let id = new_dry_run_id()?;
        reads.iter_mut().for_each(KeptReads::truncate);
        let mut kept = self.kept.lock();
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
            explored: None,
            reads,
            tools: planned.iter().map(|tool| KeptTool::new(tool, snapshot)).collect(),
            made_up: BTreeSet::new(),
        });
        drop_oldest_reads(&mut kept);
        Ok(id)
    }

    /// Notes that a dry run of this principal is a path of an exploration.
    pub(crate) fn note_exploration(&self, principal: &Principal, choice: ExploredChoice) {
        let mut kept = self.kept.lock();
        let is_it = |one: &&mut KeptDryRun| one.id == choice.path_id && one.principal == *principal;
        if let Some(one) = kept.iter_mut().find(is_it) {
            one.explored = Some(Box::new(choice));
        }
    }

    /// Notes that these arguments of a dry run of this principal were made up.
    pub(crate) fn note_made_up(
        &self,
        principal: &Principal,
        id: &str,
        made_up: impl Iterator<Item = String>,
    ) {
        let mut kept = self.kept.lock();
        if let Some(one) = kept.iter_mut().find(|one| one.id == id && one.principal == *principal) {
            one.made_up.extend(made_up);
        }
    }

    /// The request of a dry run of this principal, with its reads until they are [used](Self::note_used).
    ///
    /// # Errors
    /// There is none, or no longer. That of another principal looks exactly like one that does not exist.
    pub(crate) fn find(&self, principal: &Principal, id: &str, now: Instant) -> Result<KeptDryRun, Problem> {
        let kept = self.kept.lock();
        let is_it = |one: &&KeptDryRun| one.id == id && one.principal == *principal && one.until > now;
        let Some(found) = kept.iter().find(is_it) else {
            let id = printable(id);
            return Err(Problem::new(ErrorCode::NotFound, format!("there is no dry run `{id}` to confirm"))
                .hint("dry runs are kept for one hour, by the process that made them; make it again"));
        };
        Ok(found.clone())
    }

    /// Notes that a run was given the reads of a dry run of this principal: later ones read anew.
    pub(crate) fn note_used(&self, principal: &Principal, id: &str) {
        let mut kept = self.kept.lock();
        if let Some(one) = kept.iter_mut().find(|one| one.id == id && one.principal == *principal) {
            one.reads = None;
        }
    }
}

/// The id of a dry run.
///
/// # Errors
/// The system gives no random numbers.
pub(crate) fn new_dry_run_id() -> Result<String, Problem> {
    Ok(new_run_id()?.to_string().replacen("run_", "dry_", 1))
}

fn drop_oldest_reads(kept: &mut VecDeque<KeptDryRun>) {
    let mut bytes = 0;
    for one in kept.iter_mut().rev() {
        bytes += one.reads.as_ref().map_or(0, KeptReads::size_bytes);
        if bytes > ALL_READ_BYTES {
            one.reads = None;
        }
    }
}

impl KeptDryRun {
    /// Refuses the confirmation if a tool is no longer what it was.
    ///
    /// # Errors
    /// A tool has another definition, which the error shows, or is gone.
    pub(crate) fn check_tools(&self, snapshot: &ToolSnapshot) -> Result<(), Problem> {
        let changes: Vec<String> = self.tools.iter().filter_map(|tool| tool.change(snapshot)).collect();
        if changes.is_empty() {
            return Ok(());
        }
        let others = changes.len().saturating_sub(MAX_CHANGES);
        let mut lines: Vec<String> = changes.into_iter().take(MAX_CHANGES).collect();
        if others > 0 {
            lines.push(format!("and {others} more"));
        }
        let text = format!("the tools are not those of the dry run:\n{}", lines.join("\n"));
        Err(Problem::new(ErrorCode::ToolChanged, text).hint("make the dry run again and confirm that"))
    }
}

impl KeptDryRun {
    /// The arguments, with `given` in place of those that were made up.
    ///
    /// # Errors
    /// One of those is not given, or something else is.
    pub(crate) fn arguments_with(&self, given: &RawValue) -> Result<Box<RawValue>, Problem> {
        let given = Fields::parse(given.get()).unwrap_or_default();
        let quoted = |names: Vec<&str>| {
            names.iter().map(|name| format!("`{}`", printable(name))).collect::<Vec<_>>().join(", ")
        };
        let wrong = |text: String| Problem::new(ErrorCode::InvalidArguments, text);
        let needed = || quoted(self.made_up.iter().map(String::as_str).collect());
        let others: Vec<&str> =
            given.iter().map(|(name, _)| name).filter(|name| !self.made_up.contains(*name)).collect();
        if !others.is_empty() {
            let told = format!("what was tried takes no {}", quoted(others));
            return Err(match self.made_up.is_empty() {
                true => {
                    wrong(told).hint("leave `context` out: it runs with the values that it was tried with")
                }
                false => wrong(told).hint(format!("give {} in `context`, and nothing else", needed())),
            });
        }
        let open: Vec<&str> =
            self.made_up.iter().map(String::as_str).filter(|name| given.get(name).is_none()).collect();
        if !open.is_empty() {
            return Err(wrong(format!("it was tried with made-up values for {}", quoted(open)))
                .hint("give them in `context`: nothing is run with values that were made up"));
        }
        let mut arguments = Fields::parse(self.arguments.get()).unwrap_or_default();
        for name in &self.made_up {
            if let Some(value) = given.get(name) {
                arguments.set(name.clone(), value.to_owned());
            }
        }
        Ok(arguments.to_raw())
    }
}

impl KeptTool {
    fn new(planned: &PlannedTool, snapshot: &ToolSnapshot) -> KeptTool {
        let same = |tool: &&CatalogueTool| tool.definition.digest == planned.digest;
        let now = snapshot.tool(&planned.id).ok().filter(same);
        let definition = now.map(|tool| Arc::clone(&tool.definition));
        KeptTool { id: planned.id.clone(), digest: planned.digest.clone(), definition }
    }

    /// How the tool has changed since; `None` if it has not.
    fn change(&self, snapshot: &ToolSnapshot) -> Option<String> {
        let id = &self.id;
        let (now, held_back) = match (snapshot.tool(id), snapshot.find_quarantined(id)) {
            (Ok(tool), _) if tool.definition.digest == self.digest => return None,
            (Ok(tool), _) => (&tool.definition, String::new()),
            (Err(_), Some(held)) => (&held.definition, format!(" and is held back ({})", held.hint())),
            (Err(_), None) => return Some(format!("`{id}` is gone")),
        };
        if now.digest == self.digest {
            return Some(format!("`{id}` is held back"));
        }
        let shown = self.definition.as_ref().map(|before| bounded(&difference(before, now)));
        Some(format!("`{id}` changed{held_back}:\n{}", shown.unwrap_or_default()).trim_end().to_owned())
    }
}

/// The beginning of a difference, safe to print: definitions are texts of servers.
fn bounded(difference: &str) -> String {
    let mut lines: Vec<String> = difference
        .lines()
        .take(MAX_DIFFERENCE_LINES)
        .map(|line| printable(&truncate_text(line, MAX_LINE_CHARACTERS)))
        .collect();
    let others = difference.lines().count().saturating_sub(MAX_DIFFERENCE_LINES);
    if others > 0 {
        lines.push(format!("and {others} more lines; `pml list --changes` shows all"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pml_mcp::Caller;
    use pml_model::json::empty_object;
    use pml_model::question::Answerer;
    use serde_json::json;

    use super::*;
    use crate::config::{DynamicPolicy, ToolNaming};

    fn nothing() -> ToolSnapshot {
        ToolSnapshot::new(Vec::new(), ToolNaming::default())
    }

    fn request(principal: &Principal) -> RunRequest {
        RunRequest {
            principal: principal.clone(),
            key: None,
            session: "session".to_owned(),
            intent: "a test".to_owned(),
            work: Work::Code("return 1".to_owned()),
            arguments: empty_object(),
            timeout: None,
            caller: Caller::silent(),
            idempotency: None,
            max_wait: Duration::ZERO,
            answerer: Answerer::Human,
            dynamic: DynamicPolicy::Refuse,
            learn: false,
            capability: None,
            use_cache: true,
            speculate: true,
        }
    }

    /// The refusal of a confirmation, with the id replaced.
    #[track_caller]
    fn refusal(kept: &KeptDryRuns, principal: &Principal, id: &str, now: Instant) -> String {
        let problem = kept.find(principal, id, now).err().expect("it is refused");
        assert_eq!((problem.code, problem.http_status().as_u16()), (ErrorCode::NotFound, 404));
        serde_json::to_string(&problem).unwrap().replace(id, "ID")
    }

    #[test]
    fn an_expired_dry_run_and_that_of_another_principal_look_like_one_that_does_not_exist() {
        let (kept, start) = (KeptDryRuns::default(), Instant::now());
        let (owner, other) = (Principal("owner".to_owned()), Principal("other".to_owned()));
        let id = kept.keep(&request(&owner), (&[], &nothing()), None, start).unwrap();
        let just_before = start + KEPT - Duration::from_millis(1);
        assert_eq!(kept.find(&owner, &id, just_before).ok().unwrap().intent, "a test");
        let unknown = refusal(&kept, &owner, "dry_00000000000000000000000000", start);
        assert_eq!(refusal(&kept, &other, &id, start), unknown);
        assert_eq!(refusal(&kept, &owner, &id, start + KEPT), unknown);
        assert_eq!(refusal(&kept, &other, &id, start + KEPT), unknown);
    }

    #[test]
    fn the_oldest_dry_runs_of_a_principal_go_first_and_those_of_others_stay() {
        let (kept, now) = (KeptDryRuns::default(), Instant::now());
        let (many, few) = (Principal("many".to_owned()), Principal("few".to_owned()));
        let keep = |of: &Principal| kept.keep(&request(of), (&[], &nothing()), None, now).unwrap();
        let own = keep(&few);
        let ids: Vec<String> = (0..=MOST_OF_PRINCIPAL).map(|_| keep(&many)).collect();
        refusal(&kept, &many, &ids[0], now);
        assert!(kept.find(&many, &ids[1], now).is_ok());
        assert!(kept.find(&few, &own, now).is_ok());
    }

    fn read(bytes: usize) -> EarlierRead {
        EarlierRead::of_size(bytes)
    }

    #[test]
    fn the_reads_that_are_kept_are_bounded_and_the_dry_runs_stay() {
        let (kept, now) = (KeptDryRuns::default(), Instant::now());
        let owner = Principal::local();
        let keep = |reads: Vec<EarlierRead>| {
            let reads = KeptReads { generation: 0, reads };
            kept.keep(&request(&owner), (&[], &nothing()), Some(reads), now).unwrap()
        };
        let reads_of = |id: &str| {
            let reads = kept.find(&owner, id, now).expect("it is kept").reads;
            kept.note_used(&owner, id);
            reads.map_or(0, |reads| reads.reads.len())
        };
        let large = READ_BYTES / 4;
        let first = keep(vec![read(1)]);
        let most = keep((0..6).map(|_| read(large)).collect());
        assert_eq!((reads_of(&most), reads_of(&most)), (4, 0), "they are used once");
        let ids: Vec<String> =
            (0..ALL_READ_BYTES / READ_BYTES).map(|_| keep((0..4).map(|_| read(large)).collect())).collect();
        assert_eq!(reads_of(&first), 0);
        assert_eq!(reads_of(&ids[0]), 4);
    }

    fn definition(description: &str, schema: &serde_json::Value) -> Arc<Definition> {
        let text = json!({ "name": "read", "description": description, "inputSchema": schema }).to_string();
        Arc::new(Definition::parse(RawValue::from_string(text).unwrap()).unwrap())
    }

    #[test]
    fn reads_stay_until_a_run_is_given_them() {
        let (kept, now, owner) = (KeptDryRuns::default(), Instant::now(), Principal::local());
        let reads = KeptReads { generation: 0, reads: vec![read(1)] };
        let id = kept.keep(&request(&owner), (&[], &nothing()), Some(reads), now).unwrap();
        let has_reads = || kept.find(&owner, &id, now).expect("it is kept").reads.is_some();
        assert!(has_reads() && has_reads(), "a refused confirmation takes nothing away");
        kept.note_used(&Principal("other".to_owned()), &id);
        assert!(has_reads(), "another principal cannot");
        kept.note_used(&owner, &id);
        assert!(!has_reads());
    }

    #[test]
    fn a_long_difference_is_cut_and_shows_hidden_characters() {
        let long: serde_json::Map<String, serde_json::Value> =
            (0..200).map(|number| (format!("p{number:03}"), json!({ "type": "string" }))).collect();
        let before = definition("reads", &json!({ "type": "object" }));
        let after = definition("reads\u{202e} all", &json!({ "type": "object", "properties": long }));
        let shown = bounded(&difference(&before, &after));
        assert_eq!(shown.lines().count(), MAX_DIFFERENCE_LINES + 1, "{shown}");
        assert!(shown.contains("reads\\u{202e} all") && shown.contains("p000"), "{shown}");
        assert!(shown.ends_with("more lines; `pml list --changes` shows all"), "{shown}");
    }
}
