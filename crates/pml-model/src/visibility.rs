//! Who sees a capability beside its owner, and to which project and organisation people belong.

use serde::{Deserialize, Serialize};

/// The project and the organisation of whoever was put into none.
const DEFAULT: &str = "default";
/// Longest name of a project or an organisation, in characters.
const MAX_CHARACTERS: usize = 64;

/// Who sees a capability, the fewest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Visibility {
    /// Its owner.
    #[default]
    Private,
    /// The members of the project, too.
    Project,
    /// The members of the organisation, too.
    Org,
    /// Everybody with a key of this server, too.
    Public,
}

impl Visibility {
    /// Every visibility, the narrowest first.
    pub const ALL: [Visibility; 4] =
        [Visibility::Private, Visibility::Project, Visibility::Org, Visibility::Public];

    /// The text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Visibility::Private => "private",
            Visibility::Project => "project",
            Visibility::Org => "org",
            Visibility::Public => "public",
        }
    }

    /// The visibility with this text form.
    pub fn parse(text: &str) -> Option<Visibility> {
        Visibility::ALL.into_iter().find(|visibility| visibility.as_str() == text)
    }
}

impl std::fmt::Display for Visibility {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// The project and the organisation that somebody belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// The organisation.
    pub org: String,
    /// The project, which is one of the organisation.
    pub project: String,
}

impl Default for Membership {
    fn default() -> Membership {
        Membership { org: DEFAULT.to_owned(), project: DEFAULT.to_owned() }
    }
}

impl Membership {
    /// Whether this can be the name of a project or an organisation.
    pub fn is_name(text: &str) -> bool {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        !text.is_empty() && text.len() <= MAX_CHARACTERS && text.chars().all(plain)
    }
}

/// How far a capability is published. The project and the organisation are those that its owner belonged to then: it
/// does not follow the owner elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// Who sees it.
    pub visibility: Visibility,
    /// The project and the organisation that it was published in.
    pub place: Membership,
}

impl Publication {
    /// Whether a member sees it.
    pub fn is_for(&self, member: &Membership) -> bool {
        match self.visibility {
            Visibility::Private => false,
            Visibility::Project => self.place == *member,
            Visibility::Org => self.place.org == member.org,
            Visibility::Public => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(org: &str, project: &str) -> Membership {
        Membership { org: org.to_owned(), project: project.to_owned() }
    }

    #[test]
    fn each_visibility_reaches_further_than_the_one_before() {
        let readers = [member("acme", "web"), member("acme", "app"), member("other", "web")];
        let seen = |visibility| {
            let publication = Publication { visibility, place: member("acme", "web") };
            readers.each_ref().map(|reader| publication.is_for(reader))
        };
        assert_eq!(
            Visibility::ALL.map(seen),
            [[false, false, false], [true, false, false], [true, true, false], [true, true, true],]
        );
        assert!(Visibility::ALL.is_sorted());
        for visibility in Visibility::ALL {
            assert_eq!(Visibility::parse(visibility.as_str()), Some(visibility));
        }
    }

    #[test]
    fn names_of_projects_are_plain() {
        for name in ["web", "web-2", "a.b_c"] {
            assert!(Membership::is_name(name), "{name}");
        }
        for name in ["", "a b", "é", "a/b", &"a".repeat(65)] {
            assert!(!Membership::is_name(name), "{name}");
        }
    }
}
