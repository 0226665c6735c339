//! Tests of argument origins and of denials that are not asked about twice.

use super::*;

#[test]
fn a_text_is_found_in_the_result_it_is_from() {
    let found = texts(r#"{"to":"me","text":"long enough","list":[{"name":"also long"}]}"#);
    let places: Vec<&str> = found.iter().map(|(place, _)| place.as_str()).collect();
    assert_eq!(places, ["text", "list[0].name"], "short texts are equal by chance");
}

#[test]
fn a_no_counts_for_the_same_call_and_three_of_them_for_the_tool() {
    let mut refused = DeniedCalls::default();
    let value = |text: &str| Some(Digest::of(text.as_bytes()));
    for (at, text) in [(1, "a"), (1, "b"), (1, "c"), (2, "a"), (3, "a")] {
        refused.add("fs:delete", value(text), at);
    }
    assert!(refused.covers("fs:delete", value("c").as_ref()));
    assert!(!refused.covers("fs:delete", value("d").as_ref()), "three calls, and one no");
    assert!(!refused.covers("fs:write", value("a").as_ref()));
    refused.add("fs:delete", value("d"), 4);
    refused.add("fs:delete", value("e"), 5);
    assert!(refused.covers("fs:delete", value("f").as_ref()));
}
