//! Signatures of packages, and the signers that are remembered.

use pml_store::{PackageSignature, is_signed_by};

use super::{ann, fixture, me, open_at, raw_database};

#[test]
fn a_signature_holds_for_its_content_and_signer_alone() {
    let (fixture, other) = (fixture(), fixture());
    let signed = fixture.store.sign_package(b"content").unwrap();
    assert!(is_signed_by(&signed, b"content"));
    assert!(!is_signed_by(&signed, b"other content"));
    let of_other = other.store.sign_package(b"content").unwrap();
    assert_ne!(signed.signer, of_other.signer);
    let mixed = PackageSignature { signer: of_other.signer, ..signed.clone() };
    assert!(!is_signed_by(&mixed, b"content"));
    for wrong in ["", "zz", "é0", "0"] {
        assert!(!is_signed_by(
            &PackageSignature { signature: wrong.to_owned(), ..signed.clone() },
            b"content"
        ));
        assert!(!is_signed_by(&PackageSignature { signer: wrong.to_owned(), ..signed.clone() }, b"content"));
    }
    drop(fixture.store);
    let again = open_at(&fixture.path).unwrap().sign_package(b"content").unwrap();
    assert_eq!(again, signed, "the key is that of the database");
}

#[test]
fn a_signer_is_remembered_by_principal_and_name() {
    let fixture = fixture();
    let store = &fixture.store;
    store.remember_package_signer(&me(), "words", "aa", 1).unwrap();
    store.remember_package_signer(&me(), "lines", "bb", 1).unwrap();
    store.remember_package_signer(&me(), "words", "cc", 2).unwrap();
    assert_eq!(store.package_signer(&me(), "words").unwrap().as_deref(), Some("cc"));
    assert_eq!(store.package_signer(&me(), "lines").unwrap().as_deref(), Some("bb"));
    assert_eq!(store.package_signer(&ann(), "words").unwrap(), None, "it is another principal's");
}

#[test]
fn a_signer_that_another_program_wrote_does_not_count() {
    let fixture = fixture();
    fixture.store.remember_package_signer(&me(), "words", "aa", 1).unwrap();
    assert_eq!(raw_database(&fixture.path).try_execute("UPDATE package_signer SET signer = 'dd'"), Ok(1));
    assert_eq!(fixture.store.package_signer(&me(), "words").unwrap(), None);
}
