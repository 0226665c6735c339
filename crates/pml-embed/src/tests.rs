//! Whatever a processor can do, the vectors are the same to the last bit.

use crate::Model;
use crate::kernel::Level;

#[test]
fn every_level_gives_the_same_vectors() {
    let model = Model::embedded();
    let long = "what is longer than one block of tokens ".repeat(9);
    let texts: Vec<Vec<u32>> =
        ["", "hi", "read a file", "数据库 查询", &long].iter().map(|text| model.tokens(text)).collect();
    let expected = model.network.run(&texts, Level::Portable);
    for level in Level::all() {
        assert!(model.network.run(&texts, level) == expected, "{level:?}");
    }
}
