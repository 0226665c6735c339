//! Decides from a name alone whether its value is a secret.
//!
//! Case and separators do not count: `apiKey`, `API_KEY` and `x-api-key` are one name.

/// Whether a member, variable, header or parameter called `name` holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    secrecy(name.as_bytes()) != Secrecy::None
}

/// Which values under a name are secret.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Secrecy {
    /// None.
    #[default]
    None,
    /// Text that is no path: the name is also used for counts and directories.
    Text,
    /// Every value.
    All,
}

/// Bytes of a name that are examined, from its end.
pub(super) const LONGEST: usize = 64;

/// Complete names that are secret, whatever their value.
const WHOLE: [&[u8]; 18] = [
    b"pin",
    b"pincode",
    b"pinnumber",
    b"userpin",
    b"cardpin",
    b"otp",
    b"otpcode",
    b"totp",
    b"cvv",
    b"cvc",
    b"ssn",
    b"socialsecuritynumber",
    b"mdp",
    b"jwt",
    b"jeton",
    b"bearer",
    b"creds",
    b"connectsid",
];

/// Endings of secret names. `token` and `pass` have rules of their own.
const ENDS: [&[u8]; 46] = [
    b"password",
    b"passwords",
    b"passwd",
    b"passwort",
    b"passphrase",
    b"passcode",
    b"motdepasse",
    b"pwd",
    b"secret",
    b"secrets",
    b"credential",
    b"credentials",
    b"authorization",
    b"cookie",
    b"cookies",
    b"sessionid",
    b"sessid",
    b"accesstokens",
    b"authtokens",
    b"refreshtokens",
    b"apitokens",
    b"authjwt",
    b"apikey",
    b"apikeys",
    b"apisecret",
    b"accesskey",
    b"secretkey",
    b"secretkeys",
    b"privatekey",
    b"privatekeys",
    b"encryptionkey",
    b"decryptionkey",
    b"signingkey",
    b"masterkey",
    b"accountkey",
    b"sharedkey",
    b"authkey",
    b"sshkey",
    b"deploykey",
    b"servicekey",
    b"sessionkey",
    b"webhookkey",
    b"subscriptionkey",
    b"hmackey",
    b"storagekey",
    b"aeskey",
];

/// Suffixes that change nothing: `password_hash`, `api_key_prod`, `token2`.
const FOLLOWERS: [&[u8]; 17] = [
    b"hash",
    b"value",
    b"values",
    b"confirmation",
    b"confirm",
    b"repeat",
    b"prod",
    b"production",
    b"staging",
    b"dev",
    b"base",
    b"hex",
    b"pem",
    b"plain",
    b"plaintext",
    b"header",
    b"encrypted",
];

/// Tokens that mark a position in a list, a text or a conversation, and give no access.
const PLACES: [&[u8]; 27] = [
    b"page",
    b"next",
    b"prev",
    b"previous",
    b"pagination",
    b"continuation",
    b"continue",
    b"sync",
    b"cursor",
    b"resume",
    b"change",
    b"start",
    b"delta",
    b"progress",
    b"special",
    b"pad",
    b"bos",
    b"eos",
    b"unk",
    b"mask",
    b"sep",
    b"cls",
    b"stop",
    b"max",
    b"total",
    b"input",
    b"output",
];

/// Which values under `name` are secret.
pub(super) fn secrecy(name: &[u8]) -> Secrecy {
    let mut flat = [0; LONGEST];
    let mut start = LONGEST;
    for byte in name.iter().rev().filter(|byte| byte.is_ascii_alphanumeric()).take(LONGEST) {
        start -= 1;
        flat[start] = byte.to_ascii_lowercase();
    }
    let word = without_followers(&flat[start..]);
    // Most names have none of these endings, and this runs for every member.
    let [.., last_but_one, last] = word else { return Secrecy::None };
    const LAST_TWO: &[u8] =
        b"al dp ds en er es et ey de id ie in ls ns on rd rt se sn ss tp ts vc vv wd wt ys";
    if !LAST_TWO.chunks(3).any(|two| two[..2] == [*last_but_one, *last]) {
        return Secrecy::None;
    }
    if is_pass(name, word) || matches!(word, b"pwd" | b"oldpwd") {
        Secrecy::Text
    } else if WHOLE.contains(&word) || ENDS.iter().any(|end| word.ends_with(end)) || is_key_to_something(word)
    {
        Secrecy::All
    } else {
        Secrecy::None
    }
}

/// `word` without the suffixes that change nothing.
fn without_followers(word: &[u8]) -> &[u8] {
    let digits = word.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let word = &word[..word.len() - digits];
    FOLLOWERS.iter().find_map(|follower| word.strip_suffix(*follower)).unwrap_or(word)
}

/// Whether a token gives access, rather than marking a position.
fn is_key_to_something(word: &[u8]) -> bool {
    word.strip_suffix(b"token").is_some_and(|whose| !PLACES.iter().any(|place| whose.ends_with(place)))
}

/// Recognises `pass`, `DB_PASS` and `dbPass`, but not `bypass` and `compass`.
fn is_pass(name: &[u8], word: &[u8]) -> bool {
    word == b"pass"
        || name.ends_with(b"_pass")
        || name.ends_with(b"-pass")
        || name.ends_with(b"_PASS")
        || (name.ends_with(b"Pass") && name.len() > 4)
}
