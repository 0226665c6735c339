//! Classifies questions by their words, in English and French, regardless of case, accents, separators and look-alike
//! letters.

use std::collections::HashSet;
use std::sync::LazyLock;

use pml_model::name::{confusable_skeleton, is_plain};

/// The topic of a question, by its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QuestionTopic {
    /// Whether it asks for PML's own passphrase.
    pub(super) our_passphrase: bool,
    /// Whether it asks for any secret.
    pub(super) secret: bool,
}

/// Names of PML. A server has no reason to mention PML and a password in one question.
const OURS: &[&str] = &["pml", "procedural memory layer"];
/// Words that suggest PML's passphrase. Other programs use them too, so they count only near a word for passphrase.
const NEAR_OURS: &[&str] = &[
    "gateway",
    "passerelle",
    "dashboard",
    "tableau de bord",
    "approval",
    "approvals",
    "approve",
    "approuver",
    "approbation",
    "approbations",
    "memory layer",
];
const PASSPHRASES: &[&str] =
    &["passphrase", "passphrases", "phrase secrete", "phrase de passe", "phrase de securite"];
const PASSWORDS: &[&str] =
    &["password", "passwords", "passwd", "passcode", "mot de passe", "mots de passe", "mdp"];
/// Words for other secrets.
const SECRETS: &[&str] = &[
    "secret",
    "secrets",
    "secrete",
    "token",
    "tokens",
    "jeton",
    "jetons",
    "api key",
    "api keys",
    "cle api",
    "cle d api",
    "cle secrete",
    "cle privee",
    "cle d acces",
    "access key",
    "private key",
    "signing key",
    "encryption key",
    "credential",
    "credentials",
    "identifiants",
    "pwd",
    "pin",
    "code pin",
    "otp",
    "totp",
    "2fa",
    "mfa",
    "one time code",
    "verification code",
    "security code",
    "recovery code",
    "backup code",
    "recovery phrase",
    "seed phrase",
    "code secret",
    "code de verification",
    "code de securite",
    "code a usage unique",
    "code confidentiel",
    "cvv",
    "cvc",
    "ssn",
    "social security number",
    "card number",
    "numero de carte",
    "numero de securite sociale",
];

/// Maximum distance, in words, of two words that belong together.
const NEAR: usize = 8;
/// Maximum number of words in one of the names above.
const LONGEST: usize = 4;

struct SecretWords {
    ours: HashSet<String>,
    near_ours: HashSet<String>,
    passphrases: HashSet<String>,
    passwords: HashSet<String>,
    secrets: HashSet<String>,
}

static NAMES: LazyLock<SecretWords> = LazyLock::new(|| {
    let set = |names: &[&str]| names.iter().map(|name| folded(&name.replace(' ', ""))).collect();
    SecretWords {
        ours: set(OURS),
        near_ours: set(NEAR_OURS),
        passphrases: set(PASSPHRASES),
        passwords: set(PASSWORDS),
        secrets: set(SECRETS),
    }
});

impl QuestionTopic {
    /// The topic of these texts together.
    pub(super) fn of(texts: &[&str]) -> QuestionTopic {
        let words: Vec<String> = texts.iter().flat_map(|text| words(text)).collect();
        let at = |names: &HashSet<String>| -> Vec<usize> {
            (0..words.len())
                .filter(|at| {
                    (1..=LONGEST).any(|len| {
                        words.get(*at..at + len).is_some_and(|words| names.contains(&words.concat()))
                    })
                })
                .collect()
        };
        let (ours, near_ours) = (at(&NAMES.ours), at(&NAMES.near_ours));
        let (passphrases, passwords) = (at(&NAMES.passphrases), at(&NAMES.passwords));
        let near = |one: &usize| passphrases.iter().any(|other| one.abs_diff(*other) <= NEAR);
        let asks = !passphrases.is_empty() || !passwords.is_empty();
        QuestionTopic {
            our_passphrase: (asks && !ours.is_empty()) || near_ours.iter().any(near),
            secret: asks || !at(&NAMES.secrets).is_empty(),
        }
    }
}

/// The words of `text`, folded. `apiKey` and `api_key` are two words; single letters in a row are one.
fn words(text: &str) -> Vec<String> {
    let text: String = text.chars().filter(|c| is_plain(*c) || c.is_whitespace()).collect();
    let mut words: Vec<String> = vec![String::new()];
    let mut before = ' ';
    for c in text.chars() {
        let begins = c.is_uppercase() && before.is_lowercase();
        if (begins || !c.is_alphanumeric()) && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(c);
        }
        before = c;
    }
    let mut joined: Vec<String> = Vec::new();
    let mut spelt = false;
    for word in words.into_iter().filter(|word| !word.is_empty()) {
        let is_letter = word.chars().count() == 1 && word.chars().all(char::is_alphabetic);
        match joined.last_mut() {
            Some(last) if is_letter && spelt => last.push_str(&word),
            Some(_) | None => joined.push(word),
        }
        spelt = is_letter;
    }
    joined.iter().map(|word| folded(word)).collect()
}

/// Capitals of other alphabets that look like Latin ones although their small letters do not.
const CAPITALS: (&str, &str) = ("АВЕКМНОРСТУХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEKMHOPCTYXIJSABEZHIKMNOPTYX");

/// `word` as it looks to a person who does not look closely.
fn folded(word: &str) -> String {
    let latin = |c: char| {
        let at = CAPITALS.0.chars().position(|capital| capital == c);
        at.and_then(|at| CAPITALS.1.chars().nth(at)).unwrap_or(c)
    };
    let word: String = word.chars().map(latin).collect();
    confusable_skeleton(&word).chars().filter(|c| !('\u{300}'..='\u{36f}').contains(c)).collect()
}
