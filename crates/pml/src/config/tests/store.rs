//! Tests: which database a configuration names, and what of its address is secret.

use super::*;
use crate::config::database_url;

fn url(text: &str) -> Result<Option<String>, Error> {
    let home = user(text);
    let address = database_url(&home.paths(), &home.env)?;
    Ok(address.map(|address| address.url.reveal().to_owned()))
}

#[test]
fn the_address_is_found_however_it_is_written() {
    let there = Some("postgres://ann:s3cret@db/pml".to_owned());
    for text in [
        "[store]\nurl = \"postgres://ann:${TOKEN}@db/pml\"\n",
        "[store] # shared\nurl = \"postgres://ann:s3cret@db/pml\"\n",
        "[ store ]\nurl = 'postgres://ann:s3cret@db/pml'\n",
        "store.url = \"postgres://ann:s3cret@db/pml\"\n",
        "store = { url = \"postgres://ann:s3cret@db/pml\" }\nexpose = 7\n",
        "\"store\".\"url\" = \"postgres://ann:s3cret@db/pml\"\n",
    ] {
        assert_eq!(url(text).unwrap(), there, "{text}");
    }
    assert_eq!(url("# [store]\nexpose = \"full\"\n").unwrap(), None);
    assert_eq!(url("this is [ no TOML").unwrap(), None, "keys can be revoked all the same");
    assert!(url("[store\nurl = 7").is_err(), "nobody knows which database is meant");
}

#[test]
fn every_secret_of_the_address_is_known() {
    for (password, written) in [("s3cret", "${TOKEN}"), ("p@ss/w\u{f6}rd", "p%40ss%2Fw%C3%B6rd")] {
        for address in ["postgres://ann:PW@/pml?host=/run/sockets", "postgres://ann:PW@one,two:5433/pml"] {
            let config =
                user(&format!("store.url = \"{}\"\n", address.replace("PW", written))).load().unwrap();
            let known = &config.store.as_ref().unwrap().secrets;
            let certain = crate::sanitise::KnownSecret::new(crate::sanitise::Certainty::Certain, password);
            assert!(known.contains(&certain), "{address} {known:?}");
        }
    }
}
