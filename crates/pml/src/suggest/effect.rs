//! Whether a step of a request asks to read or to change something, and which of the two a tool does.
//!
//! A request that only reads must never be answered with a tool that is known to change something, however similar
//! the words are: "show the last commits" is not `git_commit`. Verbs decide on both sides. A verb that can mean
//! either ("convert", "run") decides nothing, and an undecided effect excludes nothing. French requests arrive here
//! as their English gloss.

use super::words;
use crate::approve::{Effect, Policy};
use crate::catalogue::CatalogueTool;

/// Factors of the score of a tool: `UNKNOWN` where its effect is not known and the request only reads, `ONLY_READS`
/// where the tool only reads and the request changes something.
const UNKNOWN: f64 = 0.85;
const ONLY_READS: f64 = 0.5;

/// Verbs that request to be shown something and that mark a tool as read-only. Each stands for its other forms too,
/// see [`base`].
const READING: &str = "analyse analyze browse calculate cat check compare compute count describe detect diff display echo \
    estimate evaluate examine explain explore extract fetch find get grep head identify indicate inspect \
    know learn list locate look lookup ls measure parse peek predict preview print query read recall \
    retrieve review scan search see show stat sum summarise summarize tail tell understand validate verify \
    view visualise visualize watch";

/// Words that a question begins with.
const ASKING: &str =
    "what which who whom whose where when why how is are was were does did has am whats wheres whos";

/// Verbs that request a change and that mark a tool as one that changes something.
const WRITING: &str = "add append apply approve archive assign attach book buy cancel change checkout clear clone close commit \
    configure copy create deactivate delete deploy destroy disable dismiss drop duplicate edit email empty \
    enable erase fill fix forget fork forward init initialise initialize insert install invite kill link \
    lock mail make mark merge mkdir modify move mv notify overwrite patch pay pin post prepend publish \
    purchase purge push put rebase record register reject remember remind remove rename reopen replace reply \
    reserve reset restart restore revert revoke rm save schedule send set share squash stage start stash \
    stop store submit subscribe switch tag toggle touch transfer trash truncate undo uninstall unlock \
    unstage unsubscribe update upload upsert wipe write";

/// Writing verbs that are nouns just as often. As the first word of a tool's name they decide nothing where a reading
/// verb ends it (`commit_list`).
const NOUNS: &str = "book commit copy email fix fork link lock mail mark patch post record schedule share stash store tag \
    transfer";

/// Writing verbs that remove or undo something.
const TAKING_AWAY: &str = "archive cancel clear close deactivate delete destroy disable dismiss drop empty erase forget kill \
    purge reject remove reset revert revoke rm stop trash truncate undo uninstall unlock unstage unsubscribe wipe";

/// Words before the verb that are no verbs: courtesies and openings of sentences.
const BEFORE: &str = "please kindly can could would will you i we want wants need needs like wish d ll help me us let lets s \
    to just now and then also finally next afterwards first hey hi hello so ok okay quickly simply go ahead \
    try able be have do love id";

/// Words after which a verb may stand in the middle of a step.
const LEADING: &str = "and then to or also please but";

/// Words that a phrase before the verb begins with: "in the repository, show …".
const PREPOSITIONS: &str = "in for from on at with using inside within under of about through by via out";

/// Words before a noun, after which nothing is a verb.
const DETERMINERS: &str = "the a an this that these those my your our its their his her each every last new some any no \
    all first next of in for from on at with";

/// Words that a request without a verb has near its beginning where it asks to be shown something: "the last commits".
const SHOWN: &str = "last latest recent current first all status content contents number amount size history difference \
    differences overview details summary";

/// Objects with which "open" means to create one.
const OPENED: &str = "issue ticket pr pull request bug account case order thread";

/// The effect that each step of a request asks for. A step that only says where or with what ("in the repository, …")
/// has no verb of its own and takes the effect of the other steps, where these agree.
pub(crate) fn asked_effects(steps: &[String]) -> Vec<Option<Effect>> {
    let mut effects: Vec<Option<Effect>> = steps.iter().map(|step| asked_effect(step)).collect();
    let said = |at: &usize| !is_phrase(&steps[*at]);
    let mut others = (0..steps.len()).filter(said).map(|at| effects[at]);
    let Some(shared) = others.next().filter(|first| others.all(|other| other == *first)) else {
        return effects;
    };
    for (effect, step) in effects.iter_mut().zip(steps) {
        if is_phrase(step) {
            *effect = shared;
        }
    }
    effects
}

/// Whether a step is a phrase without a verb.
fn is_phrase(step: &str) -> bool {
    let words = words(step);
    let first = words.iter().position(|word| !has(BEFORE, word));
    first.is_some_and(|first| has(PREPOSITIONS, &words[first]) && verb_after(&words, first).is_none())
}

/// The index of the first verb after a preposition.
fn verb_after(words: &[String], preposition: usize) -> Option<usize> {
    let is_verb = |at: &usize| {
        let word = &words[*at];
        !has(DETERMINERS, &words[at - 1]) && (has(READING, word) || has(WRITING, word) || has(ASKING, word))
    };
    (preposition + 1..words.len()).find(is_verb)
}

/// The effect that a step asks for, by its verbs; `None` where they do not decide.
fn asked_effect(step: &str) -> Option<Effect> {
    let words = words(step);
    if let [first, second, ..] = words.as_slice()
        && matches!(first.as_str(), "do" | "have")
        && matches!(second.as_str(), "i" | "you" | "we" | "they")
    {
        return Some(Effect::Reads);
    }
    let mut first = words.iter().position(|word| !has(BEFORE, word))?;
    if has(PREPOSITIONS, &words[first]) {
        first = verb_after(&words, first)?;
    }
    let effect = verb_at(&words, first).or_else(|| {
        let shown = words[first..].iter().take(3).any(|word| has(SHOWN, word));
        shown.then_some(Effect::Reads)
    })?;
    // A second verb may request more than the first: "read it and delete it".
    let more = (first + 1..words.len()).filter(|at| has(LEADING, &words[at - 1]));
    let changes = more.into_iter().any(|at| of_verb(&words[at]) == Some(Effect::Writes));
    match effect {
        Effect::Reads if changes => None,
        effect => Some(effect),
    }
}

/// Whether a tool removes something by the verb in its name while the step asks for something else: to commit what is
/// staged is not to reset it. A step whose verb is not known may ask for anything.
pub(crate) fn removes_unasked(step: &str, tool: &CatalogueTool) -> bool {
    asks_to_keep(step) && names_taking_away(tool.id.server.as_str(), &tool.definition.name)
}

/// Whether a step asks for a change that removes nothing.
fn asks_to_keep(step: &str) -> bool {
    let words = words(step);
    let Some(first) = words.iter().position(|word| !has(BEFORE, word)) else { return false };
    let first = if has(PREPOSITIONS, &words[first]) { verb_after(&words, first) } else { Some(first) };
    let Some(first) = first.filter(|first| verb_at(&words, *first) == Some(Effect::Writes)) else {
        return false;
    };
    // "get rid of", "turn off", "check off".
    let phrasal = matches!(words[first].as_str(), "get" | "turn" | "check");
    !phrasal && !words[first..].iter().any(|word| takes_away(word))
}

/// Whether a tool removes something by the verb in its name while no step of a request may ask for that.
pub(crate) fn none_asks_to_remove(steps: &[String], tool: &CatalogueTool) -> bool {
    names_taking_away(tool.id.server.as_str(), &tool.definition.name)
        && !steps.iter().any(|step| may_ask_to_remove(step))
}

/// Whether a step may ask to remove something; one whose verb is not known may ask for anything.
fn may_ask_to_remove(step: &str) -> bool {
    asked_effect(step) != Some(Effect::Reads) && !asks_to_keep(step)
}

fn takes_away(word: &str) -> bool {
    has(TAKING_AWAY, word) || has(TAKING_AWAY, base(word))
}

fn names_taking_away(server: &str, name: &str) -> bool {
    let server = words(server);
    let words = words(name);
    words.iter().any(|word| !server.contains(word) && takes_away(word))
}

/// The effect of the verb at an index of a step.
fn verb_at(words: &[String], at: usize) -> Option<Effect> {
    let next = words.get(at + 1).map_or("", String::as_str);
    let after = &words[at + 1..];
    match (words[at].as_str(), next) {
        // "get rid of", "check out a branch", "take a look".
        ("get", "rid") | ("check", "out" | "in" | "off") => Some(Effect::Writes),
        ("take", "a") if after.get(1).is_some_and(|word| word == "look") => Some(Effect::Reads),
        // "give me the weather", but "give Ann access"; "tell me", but "tell Bob that".
        ("give", "me" | "us") => Some(Effect::Reads),
        ("tell", "me" | "us") => Some(Effect::Reads),
        ("give" | "tell", _) => None,
        ("open", _) => (!after.iter().any(|word| has(OPENED, word))).then_some(Effect::Reads),
        ("turn", "on" | "off") => Some(Effect::Writes),
        ("load", _) => Some(Effect::Reads),
        // "make a list of the files" shows something, "make a folder" does not.
        ("make", _) => None,
        (word, _) if has(ASKING, word) => Some(Effect::Reads),
        (word, _) => of_verb(word),
    }
}

/// The effect of a tool: by the user's rules, by its annotations, else by the verb in its name; `None` where nothing
/// decides.
pub(crate) fn tool_effect(policy: &Policy, tool: &CatalogueTool) -> Option<Effect> {
    policy
        .effect(&tool.id, &tool.definition.annotations)
        .or_else(|| of_name(tool.id.server.as_str(), &tool.definition.name))
}

/// The effect according to the name of a tool.
fn of_name(server: &str, name: &str) -> Option<Effect> {
    let server = words(server);
    let all = words(name);
    // Many servers prefix their own name: `git_commit`. The name may consist of nothing else.
    let own = all.iter().take_while(|word| server.contains(word)).count();
    let words = if own < all.len() { &all[own..] } else { &all[..] };
    let joined = |at: usize| at > 0 && matches!(words[at - 1].as_str(), "and" | "or");
    if (0..words.len()).any(|at| joined(at) && of_verb(&words[at]) == Some(Effect::Writes)) {
        return Some(Effect::Writes);
    }
    let (first, last) = (words.first()?, words.last()?);
    match (of_verb(first), of_verb(last)) {
        (Some(Effect::Writes), Some(Effect::Reads)) if has(NOUNS, base(first)) => None,
        (Some(effect), _) | (None, Some(effect)) => Some(effect),
        (None, None) => words.iter().find_map(|word| of_verb(word)),
    }
}

fn of_verb(word: &str) -> Option<Effect> {
    let of = |word: &str| match word {
        word if has(READING, word) => Some(Effect::Reads),
        word if has(WRITING, word) => Some(Effect::Writes),
        _ => None,
    };
    of(word).or_else(|| of(base(word)))
}

/// A verb without its ending: `lists` and `listing` are `list`. Endings that change the stem are not undone; most
/// names and requests use the plain verb.
fn base(word: &str) -> &str {
    ["ing", "es", "s"]
        .iter()
        .find_map(|ending| word.strip_suffix(ending).filter(|base| base.len() > 2))
        .unwrap_or(word)
}

/// The factor of the score of a tool with this effect for a step; `None` where it must not be used.
pub(crate) fn suitability(asked: Option<Effect>, tool: Option<Effect>) -> Option<f64> {
    match (asked, tool) {
        (Some(Effect::Reads), Some(Effect::Writes)) => None,
        (Some(Effect::Reads), None) => Some(UNKNOWN),
        (Some(Effect::Writes), Some(Effect::Reads)) => Some(ONLY_READS),
        _ => Some(1.0),
    }
}

/// Whether a list of words contains a word.
fn has(list: &str, word: &str) -> bool {
    list.split(' ').any(|one| one == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const READS: Option<Effect> = Some(Effect::Reads);
    const WRITES: Option<Effect> = Some(Effect::Writes);

    /// French is read as its English gloss, as in requests.
    fn of_request(text: &str) -> Option<Effect> {
        asked_effect(pml_language::french::gloss(text).as_deref().unwrap_or(text))
    }

    #[test]
    fn a_phrase_without_a_verb_asks_for_what_the_rest_of_the_request_does() {
        let steps =
            |texts: &[&str]| asked_effects(&texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>());
        assert_eq!(
            steps(&["in the repository /srv/app", "show the commit message of v1.2.0"]),
            [READS, READS]
        );
        assert_eq!(steps(&["from the folder /tmp/x", "delete the old logs"]), [WRITES, WRITES]);
        assert_eq!(steps(&["in /srv/app", "show the log", "delete the branch next"]), [None, READS, WRITES]);
        assert_eq!(steps(&["in the repository /srv/app"]), [None]);
    }

    #[test]
    fn requests_that_read_are_known_by_their_verbs() {
        for text in [
            "show the last 5 commits of /srv/app",
            "print there.txt",
            "What's in my notes?",
            "could you please list the branches",
            "I'd like to see the log of today",
            "open my diary",
            "load the poem",
            "take a look at setup.cfg",
            "how many lines does a.csv have",
            "give me the weather in Lyon",
            "tell me what changed since Monday",
            "check whether the tests pass",
            "is there a branch called next",
            "show me the last commit",
            "compare the two reports",
            "count the records in orders.csv",
            "find out who wrote this",
            "do we have a branch for that",
            "in the commit history of /srv/app, show who changed a.rs",
            "the last 3 commits of /srv/app",
        ] {
            assert_eq!(of_request(text), READS, "{text}");
        }
    }

    #[test]
    fn french_requests_that_read_are_known_too() {
        for text in [
            "affiche les 5 derniers commits du dépôt",
            "montre-moi le fichier notes.txt",
            "lis le fichier config.json",
            "quelle heure est-il à Tokyo",
            "liste les branches du dépôt",
            "ouvre mon journal",
            "combien de fichiers y a-t-il dans ce dossier",
            "donne-moi le contenu de README.md",
            "cherche le mot erreur dans les logs",
            "peux-tu me montrer les différences",
            "je voudrais voir le statut du dépôt",
            "compte les lignes de a.csv",
            "où se trouve le fichier de configuration",
            "dans le dépôt /srv/app, affiche les dix derniers commits",
        ] {
            let gloss = pml_language::french::gloss(text);
            assert_eq!(of_request(text), READS, "{text}: {gloss:?}");
        }
    }

    #[test]
    fn requests_that_change_something_or_could_are_no_readings() {
        for text in [
            "commit the changes with the message 'fix'",
            "delete the file old.txt",
            "write hello to a.txt",
            "please remember that Ann likes tea",
            "check out the branch next",
            "get rid of the temporary files",
            "can you send it to Bob",
            "crée un dossier backup",
            "supprime le fichier old.txt",
            "écris bonjour dans a.txt",
            "renomme a.txt en b.txt",
            "ajoute tous les fichiers à l'index",
        ] {
            assert_eq!(of_request(text), WRITES, "{text}: {:?}", pml_language::french::gloss(text));
        }
        for text in [
            "open an issue about the login page",
            "convert the picture to PNG",
            "run the tests",
            "read the list and delete what is old",
            "make sure that it works",
            "tell Bob that I am late",
            "the usual",
            "",
        ] {
            assert_eq!(of_request(text), None, "{text}");
        }
    }

    #[test]
    fn names_of_tools_tell_what_they_do() {
        for (server, name, expected) in [
            ("git", "git_commit", WRITES),
            ("git", "git_log", None),
            ("git", "git_show", READS),
            ("github", "list_commits", READS),
            ("github", "getCommit", READS),
            ("github", "commit_list", None),
            ("tracker", "issue_create", WRITES),
            ("tracker", "deleteIssue", WRITES),
            ("db", "get_or_create_user", WRITES),
            ("text", "search_and_replace", WRITES),
            ("notes", "notes-update-page", WRITES),
            ("notes", "page_retrieve", READS),
            ("shell", "run_command", None),
            ("read", "read", READS),
        ] {
            assert_eq!(of_name(server, name), expected, "{server}:{name}");
        }
    }

    #[test]
    fn names_of_tools_tell_whether_they_take_something_away() {
        for (server, name, expected) in [
            ("git", "git_reset", true),
            ("git", "git_commit", false),
            ("files", "delete_file", true),
            ("files", "move_file", false),
            ("reset", "reset", false),
            ("calendar", "cancelEvent", true),
        ] {
            assert_eq!(names_taking_away(server, name), expected, "{server}:{name}");
        }
    }

    #[test]
    fn only_steps_that_may_ask_for_it_let_a_tool_take_something_away() {
        for (step, expected) in [
            ("list the old notes", false),
            ("commit the changes", false),
            ("add a note about tea", false),
            ("delete the old notes", true),
            ("get rid of the old notes", true),
            ("tidy the notes", true),
            ("read the list and delete what is old", true),
        ] {
            assert_eq!(may_ask_to_remove(step), expected, "{step}");
        }
    }

    #[test]
    fn only_what_is_known_to_change_something_is_kept_from_a_reading_request() {
        assert_eq!(suitability(READS, WRITES), None);
        assert!(suitability(READS, None).is_some_and(|factor| factor < 1.0));
        assert_eq!(suitability(READS, READS), Some(1.0));
        assert_eq!(suitability(None, WRITES), Some(1.0));
        assert!(suitability(WRITES, READS).is_some_and(|factor| factor < 1.0));
    }
}
