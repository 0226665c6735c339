//! Tests of the embedding settings.

use super::complaints::complaints;
use super::*;

#[test]
fn the_model_is_in_the_program_in_a_directory_a_service_or_nowhere() {
    let embedding = |text: &str| user(text).load().unwrap().embedding;
    assert_eq!(embedding(""), EmbeddingSettings::BuiltIn);
    assert_eq!(embedding("[embedding]\nmodel = \"built-in\""), EmbeddingSettings::BuiltIn);
    assert_eq!(embedding("[embedding]\nmodel = \"none\""), EmbeddingSettings::None);
    let EmbeddingSettings::Directory(path) = embedding("[embedding]\ndirectory = \"models/m\"") else {
        panic!("no directory");
    };
    assert!(path.is_absolute() && path.ends_with(Path::new("models/m")), "{path:?}");
    let service = "[embedding]\nurl = \"http://127.0.0.1:9/v1\"\nname = \"m\"\nkey = \"k$$1\"";
    let EmbeddingSettings::Endpoint(endpoint) = embedding(service) else { panic!("no service") };
    assert_eq!((endpoint.url.as_str(), endpoint.name.as_str()), ("http://127.0.0.1:9/v1", "m"));
    assert_eq!(endpoint.key.unwrap().reveal(), "k$1");
}

#[test]
fn a_model_that_is_named_wrongly_is_told_with_its_place() {
    expect![[r#"
        ~/pml/pml.toml:2:9: `embedding.model` is `large`
        hint: it may be `built-in` or `none`; for others give `directory` or `url`
        ~/pml/pml.toml:2:9: `embedding` names more than one model
        hint: give one of `model`, `directory` and `url`
        ~/pml/pml.toml:2:8: `embedding.name` stands without `url`
        hint: give the `url` of the service, or remove it
        ~/pml/pml.toml:2:7: `embedding.url` stands without `name`
        hint: give the `name` of the model at that service
        ~/pml/pml.toml:2:7: `embedding.url` is no plain address
        hint: write it as `https://host/v1`; credentials go into `key`
        ~/pml/pml.toml:4:7: the variable `NOT_SET` is not set
        hint: set `NOT_SET` in the environment PML is started in
    "#]]
    .assert_eq(&complaints(&[
        "[embedding]\nmodel = \"large\"",
        "[embedding]\nmodel = \"none\"\ndirectory = \"m\"",
        "[embedding]\nname = \"m\"",
        "[embedding]\nurl = \"http://127.0.0.1/v1\"",
        "[embedding]\nurl = \"ftp://127.0.0.1/v1\"\nname = \"m\"",
        "[embedding]\nurl = \"http://127.0.0.1/v1\"\nname = \"m\"\nkey = \"${NOT_SET}\"",
    ]));
}
