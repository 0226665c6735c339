//! French morphology: from a form in a text to the forms it may be listed under.
//!
//! Rules only propose candidates; the caller checks them against the lexicon. So they may be generous: a wrong
//! candidate is listed nowhere. Everything is in folded form (lower case, no accents).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Map keyed by words of the lexicon.
pub(super) type WordMap<K, V> = HashMap<K, V, BuildHasherDefault<WordHasher>>;

/// FNV-1a: the words are short and built in, so only speed counts.
pub(super) struct WordHasher(u64);

impl Default for WordHasher {
    fn default() -> WordHasher {
        WordHasher(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

const PLURAL: &[(&str, &str)] = &[("", ""), ("aux", "al"), ("aux", "ail"), ("s", ""), ("x", "")];

const FEMININE: &[(&str, &str)] = &[
    ("trice", "teur"),
    ("euse", "eur"),
    ("euse", "eux"),
    ("ive", "if"),
    ("ere", "er"),
    ("enne", "en"),
    ("onne", "on"),
    ("elle", "el"),
    ("ette", "et"),
    ("sse", "s"),
    ("e", ""),
];

/// First singular of `word` that `listed` knows, `word` itself included.
pub(super) fn find_singular<T>(word: &str, listed: impl Fn(&str) -> Option<T>) -> Option<T> {
    replaced(word, PLURAL, &listed)
}

/// First masculine singular of `word` that `listed` knows.
pub(super) fn find_masculine<T>(word: &str, listed: impl Fn(&str) -> Option<T>) -> Option<T> {
    replaced(word, PLURAL, &|singular: &str| replaced(singular, FEMININE, &listed))
}

fn replaced<T>(word: &str, rules: &[(&str, &str)], listed: &impl Fn(&str) -> Option<T>) -> Option<T> {
    rules.iter().find_map(|(from, to)| {
        let stem = word.strip_suffix(from).filter(|stem| !stem.is_empty())?;
        if to.is_empty() { listed(stem) } else { listed(&format!("{stem}{to}")) }
    })
}

/// A verb that a form may belong to.
pub(super) struct VerbProposal {
    pub(super) infinitive: &'static str,
    pub(super) is_participle: bool,
}

/// From an ending of a form to possible infinitive endings.
pub(super) struct Conjugation(WordMap<&'static str, Vec<VerbProposal>>);

/// Length of the longest conjugated ending, in bytes.
const LONGEST_ENDING: usize = 12;

impl Conjugation {
    pub(super) fn new() -> Conjugation {
        let mut endings: WordMap<&str, Vec<VerbProposal>> = WordMap::default();
        for (infinitive, finite, participles) in FAMILIES {
            let finite = finite.split(' ').map(|ending| (ending, false));
            let participles = participles.split(' ').filter(|ending| !ending.is_empty());
            for (ending, participle) in finite.chain(participles.map(|ending| (ending, true))) {
                endings
                    .entry(ending)
                    .or_default()
                    .push(VerbProposal { infinitive, is_participle: participle });
            }
        }
        Conjugation(endings)
    }

    /// First verb that `form` may belong to and that `listed` knows, longest ending first because it is the most
    /// specific; and whether the form is a past participle.
    pub(super) fn find_verb<T>(&self, form: &str, listed: impl Fn(&str) -> Option<T>) -> Option<(T, bool)> {
        if !form.is_ascii() {
            return None;
        }
        let mut candidate = String::with_capacity(form.len() + LONGEST_ENDING);
        (form.len().saturating_sub(LONGEST_ENDING)..=form.len()).find_map(|cut| {
            let (stem, ending) = form.split_at(cut);
            self.0.get(ending)?.iter().find_map(|proposal| {
                candidate.clear();
                candidate.push_str(stem);
                candidate.push_str(proposal.infinitive);
                Some((listed(&candidate)?, proposal.is_participle))
            })
        })
    }
}

/// Conjugation classes: the ending of the infinitive, the endings that replace it, and which of them are past
/// participles.
#[rustfmt::skip]
const FAMILIES: &[(&str, &str, &str)] = &[
    ("er", "e es ons ez ent ais ait ions iez aient erai eras era erons erez eront erais erait erions \
            eriez eraient ant eons eais eait eaient eant", "ee ees"),
    ("yer", "ie ies ient ierai ieras iera ierons ierez ieront ierais ierait ieraient", ""),
    ("envoyer", "enverrai enverras enverra enverrons enverrez enverront enverrais enverrait", ""),
    ("eler", "elle elles ellent ellerai ellera ellerons elleront", ""),
    ("eter", "ette ettes ettent etterai ettera etterons etteront", ""),
    ("ir", "is it issons issez issent issais issait issions issiez issaient issant irai iras ira irons \
            irez iront irais irait irions iriez iraient isse isses", "i ie ies"),
    ("re", "s  ons ez ent ais ait ions iez aient rai ras ra rons rez ront rais rait rions riez raient ant \
            e es", "u ue us ues"),
    ("tir", "s t tons tez tent tais tait taient tant te tes", ""),
    ("mir", "s t mons mez ment mais mait maient mant me mes", ""),
    ("vir", "s t vons vez vent vais vait vaient vant ve ves", ""),
    ("rir", "re res rons rez rent rais rait raient rant", ""),
    ("vrir", "", "vert verte verts vertes"),
    ("ffrir", "", "ffert fferte fferts ffertes"),
    ("courir", "cours court courrai courra courrons courront", "couru courue courus courues"),
    ("mourir", "meurs meurt meurent", "mort morte morts mortes"),
    ("querir", "quiers quiert querons querez quierent querait querant querrai querra",
     "quis quise quises"),
    ("cueillir", "cueille cueilles cueillons cueillez cueillent cueillait", ""),
    ("enir", "iens ient enons enez iennent enais enait enaient enant iendrai iendras iendra iendrons \
              iendrez iendront iendrais iendrait iendraient ienne iennes", "enu enue enus enues"),
    ("prendre", "prends prend prenons prenez prennent prenais prenait prenaient prenant prenne prennes",
     "pris prise prises"),
    ("mettre", "mets met", "mis mise mises"),
    ("battre", "bats bat", ""),
    ("crire", "cris crit crivons crivez crivent crivais crivait crivaient crivant crive crives",
     "crite crits crites"),
    ("lire", "lis lit lisons lisez lisent lisais lisait lisaient lisant lise lises", "lu lue lus lues"),
    ("dire", "dis dit disons dites disez disent disais disait disaient disant dise", "dits"),
    ("uire", "uis uisons uisez uisent uisais uisait uisaient uisant uise uises", "uit uite uits uites"),
    ("aindre", "ains aignons aignez aignent aignait aignant", "aint ainte aints aintes"),
    ("eindre", "eins eignons eignez eignent eignait eignant", "eint einte eints eintes"),
    ("oindre", "oins oignons oignez oignent oignait oignant", "oint ointe oints ointes"),
    ("aitre", "ais ait aissons aissez aissent aissait aissant aisse", "u ue us ues"),
    ("oitre", "ois oit oissons oissez oissent oissait oissant", "u ue us ues"),
    ("evoir", "ois oit evons evez oivent evais evait evaient evant evrai evra evrons evront evrais evrait",
     "u ue us ues"),
    ("voir", "vois voit voyons voyez voient voyais voyait voyaient voyant verrai verras verra verrons \
              verrez verront verrait voie voies", "vu vue vus vues"),
    ("savoir", "sais sait savons savez savent savais savait savaient sachant saurai saura sauront sache",
     "su"),
    ("pouvoir", "peux peut pouvons pouvez peuvent pouvais pouvait pourrai pourra pourrons pourront", "pu"),
    ("vouloir", "veux veut voulons voulez veulent voulais voulait voudrai voudra voudront", "voulu"),
    ("devoir", "dois doit devons devez doivent devais devait devra devront devrais devrait", "due dus"),
    ("valoir", "vaux vaut valons valez valent valait vaudra vaudrait vaille", "valu"),
    ("falloir", "faut fallait faudra faudrait faille", "fallu"),
    ("mouvoir", "meus meut meuvent", "mu mue mus mues"),
    ("pleuvoir", "pleut pleuvait pleuvra pleuve", "plu"),
    ("suivre", "suis suit", "suivi suivie suivis suivies"),
    ("vivre", "vis vit", "vecu vecue vecus vecues"),
    ("boire", "bois boit buvons buvez boivent buvait buvant", "bu bue bus bues"),
    ("croire", "crois croit croyons croyez croient croyait croyant", "cru crue crus crues"),
    ("rompre", "rompt", ""),
    ("vaincre", "vainc vaincs vainquons vainquez vainquent", ""),
    ("soudre", "sous sout solvons solvez solvent solvait solvant solve", "solu solue solus solues"),
    ("clure", "clus clut cluons cluez cluent cluait cluant", "clu clue cluse cluses"),
    ("raire", "rais rayons rayez raient rayait", "rait raite raits raites"),
    ("faire", "fais faisons faites font faisais faisait faisant fasse fassent ferai feras fera ferons \
               ferez feront ferais ferait", "fait faite faits"),
    ("avoir", "ai as a avons avez ont avais avait avaient aurai auras aura aurons aurez auront aurais \
               aurait auraient ait", "eu eue eus eues"),
    ("etre", "es est sommes etes sont etais etait etaient serai seras sera serons serez seront serait",
     "ete"),
    ("aller", "vais vas va vont irai iras ira irons irez iront", ""),
    ("rire", "ris rit rions riez rient riait", "ri"),
];

/// Past participle of the English verb or phrase `english`: `turn on` gives `turned on`.
pub(super) fn english_participle(english: &str) -> String {
    let (verb, rest) = english.split_at(english.find(' ').unwrap_or(english.len()));
    if let Some((_, irregular)) = IRREGULAR.iter().find(|(infinitive, _)| *infinitive == verb) {
        return format!("{irregular}{rest}");
    }
    let vowel_before_y = ["ay", "ey", "oy", "uy"].iter().any(|end| verb.ends_with(end));
    match verb.strip_suffix('y') {
        Some(stem) if !vowel_before_y => format!("{stem}ied{rest}"),
        _ if verb.ends_with('e') => format!("{verb}d{rest}"),
        _ if doubles(verb) => format!("{verb}{}ed{rest}", &verb[verb.len() - 1..]),
        _ => format!("{verb}ed{rest}"),
    }
}

/// Whether a short verb doubles its last letter: `stop`, not `open` or `look`.
fn doubles(verb: &str) -> bool {
    let vowel = |byte: &u8| b"aeiou".contains(byte);
    match verb.as_bytes() {
        [head @ .., middle, last] => {
            vowel(middle)
                && !vowel(last)
                && !b"wxy".contains(last)
                && !head.is_empty()
                && !head.iter().any(vowel)
        }
        _ => false,
    }
}

/// Irregular English participles.
#[rustfmt::skip]
const IRREGULAR: &[(&str, &str)] = &[
    ("be", "been"), ("beat", "beaten"), ("become", "become"), ("begin", "begun"), ("bet", "bet"),
    ("break", "broken"), ("bring", "brought"), ("build", "built"), ("burn", "burnt"), ("buy", "bought"),
    ("choose", "chosen"), ("cost", "cost"), ("cut", "cut"), ("debug", "debugged"), ("dig", "dug"),
    ("do", "done"), ("draw", "drawn"), ("drink", "drunk"), ("drive", "driven"), ("eat", "eaten"),
    ("fall", "fallen"), ("feed", "fed"), ("feel", "felt"), ("fight", "fought"), ("find", "found"),
    ("fly", "flown"), ("forbid", "forbidden"), ("forget", "forgotten"), ("freeze", "frozen"),
    ("get", "got"), ("give", "given"), ("go", "gone"), ("grow", "grown"), ("hang", "hung"),
    ("have", "had"), ("hear", "heard"), ("hide", "hidden"), ("hit", "hit"), ("hold", "held"),
    ("keep", "kept"), ("know", "known"), ("lead", "led"), ("leave", "left"), ("lend", "lent"),
    ("lose", "lost"), ("make", "made"), ("mean", "meant"),
    ("meet", "met"), ("pay", "paid"),
    ("put", "put"), ("read", "read"), ("ring", "rung"), ("run", "run"), ("say", "said"), ("see", "seen"),
    ("sell", "sold"), ("send", "sent"), ("set", "set"), ("sing", "sung"),
    ("sleep", "slept"), ("speak", "spoken"), ("spend", "spent"), ("split", "split"), ("spread", "spread"),
    ("steal", "stolen"), ("submit", "submitted"), ("swim", "swum"),
    ("take", "taken"), ("teach", "taught"), ("tell", "told"), ("think", "thought"),
    ("throw", "thrown"), ("transfer", "transferred"), ("undo", "undone"),
    ("understand", "understood"), ("wear", "worn"), ("win", "won"), ("withdraw", "withdrawn"),
    ("write", "written"),
];

/// Plural of the English noun or phrase `english`: `credit card` gives `credit cards`.
pub(super) fn english_plural(english: &str) -> String {
    let (before, noun) = english.split_at(english.rfind(' ').map_or(0, |at| at + 1));
    if let Some((_, plural)) = IRREGULAR_PLURALS.iter().find(|(singular, _)| *singular == noun) {
        return format!("{before}{plural}");
    }
    let vowel_before_y = ["ay", "ey", "oy", "uy"].iter().any(|end| noun.ends_with(end));
    let hisses = ["s", "x", "z", "ch", "sh"].iter().any(|end| noun.ends_with(end));
    match noun.strip_suffix('y') {
        _ if noun.ends_with('s') && !noun.ends_with("ss") => english.to_owned(),
        Some(stem) if !vowel_before_y => format!("{before}{stem}ies"),
        _ if hisses => format!("{english}es"),
        _ => format!("{english}s"),
    }
}

/// Irregular English plurals, and nouns without one.
#[rustfmt::skip]
const IRREGULAR_PLURALS: &[(&str, &str)] = &[
    ("accommodation", "accommodation"), ("advice", "advice"), ("advertising", "advertising"),
    ("aircraft", "aircraft"), ("child", "children"), ("clothing", "clothing"), ("content", "content"),
    ("criterion", "criteria"), ("data", "data"), ("equipment", "equipment"), ("fish", "fish"),
    ("food", "food"), ("foot", "feet"), ("furniture", "furniture"), ("hair", "hair"),
    ("hardware", "hardware"), ("homework", "homework"), ("housing", "housing"),
    ("information", "information"), ("jewelry", "jewelry"), ("knowledge", "knowledge"), ("leaf", "leaves"),
    ("luggage", "luggage"), ("mail", "mail"), ("man", "men"), ("matrix", "matrices"), ("media", "media"),
    ("metadata", "metadata"), ("money", "money"), ("mouse", "mice"), ("music", "music"), ("person", "people"),
    ("real estate", "real estate"), ("research", "research"), ("sheep", "sheep"), ("software", "software"),
    ("staff", "staff"), ("tooth", "teeth"), ("training", "training"), ("waste", "waste"), ("wife", "wives"),
    ("woman", "women"),
];

/// Words that can be elided before an apostrophe.
const ELIDED: [&str; 14] =
    ["l", "d", "qu", "j", "n", "s", "c", "m", "t", "jusqu", "lorsqu", "puisqu", "quelqu", "presqu"];
/// Maximum offset of the apostrophe after an elided word, in bytes.
const ELIDED_BYTES: usize = 9;

/// Splits `l'eau` at its apostrophe; `aujourd'hui` is one word.
pub(super) fn split_elision(core: &str) -> Option<(&str, &str)> {
    let at = crate::byte_prefix(core, ELIDED_BYTES).find(['\'', '’'])?;
    let (before, after) = (&core[..at], core[at..].trim_start_matches(['\'', '’']));
    let both_capital = before.starts_with(char::is_uppercase) && after.starts_with(char::is_uppercase);
    let elided = ELIDED.contains(&before.to_lowercase().as_str()) && !after.is_empty();
    (elided && !both_capital).then_some((before, after))
}
