//! What texts mean.

use pml_model::Digest;
use pml_store::StoredVector;

use super::{ann, fixture, me};

fn vector(first: i8) -> StoredVector {
    StoredVector { scale: 0.25, numbers: vec![first, 127, -127, 0] }
}

#[test]
fn vectors_are_kept_by_principal_model_and_text() {
    let at = fixture();
    let (one, two) = (Digest::of(b"one"), Digest::of(b"two"));
    at.store
        .store_vectors(&me(), "small", vec![(one.clone(), vector(-1)), (two.clone(), vector(2))])
        .unwrap();
    at.store.store_vectors(&me(), "large", vec![(one.clone(), vector(3))]).unwrap();
    at.store.store_vectors(&ann(), "small", vec![(one.clone(), vector(4))]).unwrap();

    let small = at.store.vectors(&me(), "small").unwrap();
    assert_eq!(small.len(), 2);
    assert_eq!(small[&one], vector(-1));
    assert_eq!(small[&two], vector(2));
    assert_eq!(at.store.vectors(&me(), "large").unwrap()[&one], vector(3));
    assert_eq!(at.store.vectors(&ann(), "small").unwrap()[&one], vector(4));
}

#[test]
fn a_vector_is_replaced_and_those_of_other_models_are_forgotten_together() {
    let at = fixture();
    let one = Digest::of(b"one");
    for (model, first) in [("old", 1), ("old", 2), ("new", 3)] {
        at.store.store_vectors(&me(), model, vec![(one.clone(), vector(first))]).unwrap();
    }
    at.store.store_vectors(&ann(), "old", vec![(one.clone(), vector(5))]).unwrap();
    assert_eq!(at.store.vectors(&me(), "old").unwrap()[&one], vector(2));

    assert_eq!(at.store.forget_vectors_of_other_models(&me(), "new").unwrap(), 1);
    assert_eq!(at.store.forget_vectors_of_other_models(&me(), "new").unwrap(), 0);
    assert!(at.store.vectors(&me(), "old").unwrap().is_empty());
    assert_eq!(at.store.vectors(&me(), "new").unwrap().len(), 1);
    assert_eq!(at.store.vectors(&ann(), "old").unwrap().len(), 1, "another principal's");
}

#[test]
fn vectors_of_texts_that_are_gone_are_forgotten() {
    let at = fixture();
    let (one, two) = (Digest::of(b"one"), Digest::of(b"two"));
    for whose in [me(), ann()] {
        at.store
            .store_vectors(&whose, "m", vec![(one.clone(), vector(1)), (two.clone(), vector(2))])
            .unwrap();
    }
    at.store.forget_vectors(&me(), "m", vec![one.clone(), Digest::of(b"unknown")]).unwrap();
    assert_eq!(at.store.vectors(&me(), "m").unwrap().into_keys().collect::<Vec<_>>(), [two]);
    assert_eq!(at.store.vectors(&ann(), "m").unwrap().len(), 2);
}
